"""MEAN, SUM, REDUCE_MAX, REDUCE_MIN and REDUCE_ALL (kernels/reduce*.cc)."""

from __future__ import annotations

from harness.model.graph import TensorType
from harness.plan.kernels.registry import register
from harness.plan.node import Node
from harness.plan.tensor import LiveTensor


@register("MEAN", "SUM", init="OpDataReduce")
def mean_or_sum(node: Node) -> None:
    source, output, axis = node.temp_input(0), node.temp_output(), node.temp_input(1)
    if source.type in (TensorType.INT8, TensorType.INT16):
        node.scratch(4 * output.element_count, "accumulators")
    _iterators(node, source, axis)
    _prepare_simple(node)


@register("REDUCE_MAX", "REDUCE_MIN", init="OpDataReduce")
def reduce_max_or_min(node: Node) -> None:
    _prepare_simple(node)
    source = node.temp_input(0)
    node.temp_output()
    _iterators(node, source, node.temp_input(1))


@register("REDUCE_ALL", init="OpDataReduce")
def reduce_all(node: Node) -> None:
    source = node.temp_input(0)
    node.temp_output()
    axis = node.temp_input(1)
    node.ensure_type(source, TensorType.BOOL)
    _prepare_simple(node)
    _iterators(node, source, axis)


def _prepare_simple(node: Node) -> None:
    """PrepareSimple: looks the tensors up once more, the output only for int8."""
    source = node.temp_input(0)
    node.ensure_counts(inputs=2, outputs=1)
    node.ensure_type(node.temp_input(1), TensorType.INT32)
    if source.type == TensorType.INT8:
        node.temp_output()


def _iterators(node: Node, source: LiveTensor, axis: LiveTensor) -> None:
    node.scratch(node.abi.size("int") * source.rank, "input iterator")
    node.scratch(node.abi.size("int") * axis.element_count, "resolved axes")
