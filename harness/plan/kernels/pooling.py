"""AVERAGE_POOL_2D, MAX_POOL_2D and L2_POOL_2D (kernels/pooling*.cc, l2_pool_2d.cc, cmsis_nn/pooling.cc)."""

from __future__ import annotations

from harness.model.graph import TensorType
from harness.plan.kernels import cmsis_nn
from harness.plan.kernels.registry import register
from harness.plan.node import Node
from harness.plan.target import Kernels
from harness.plan.tensor import LiveTensor

_INTEGER = (TensorType.INT8, TensorType.INT16)


@register("AVERAGE_POOL_2D", "MAX_POOL_2D", init="OpDataPooling")
def pool_2d(node: Node) -> None:
    _pooling(node)


@register("MAX_POOL_2D", init="cmsis_nn_pooling::OpData", kernels=Kernels.CMSIS_NN)
def max_pool_2d_cmsis_nn(node: Node) -> None:
    _pooling(node)


@register("AVERAGE_POOL_2D", init="cmsis_nn_pooling::OpData", kernels=Kernels.CMSIS_NN)
def average_pool_2d_cmsis_nn(node: Node) -> None:
    source = _pooling(node)
    node.temp_input(0)
    node.temp_output()
    size = cmsis_nn.average_pool(source.dims[-1], node.core) if source.type in _INTEGER else 0
    if size:
        node.scratch(size, "channel sums")


def _pooling(node: Node) -> LiveTensor:
    """PoolingPrepare."""
    source, output = node.temp_input(0), node.temp_output()
    if source.type in _INTEGER:
        node.ensure(abs(source.scale - output.scale) <= 1.0e-6, "scale_diff <= 1.0e-6 was not true.")
        node.ensure(source.zero_point == output.zero_point, "input and output zero_point differ")
    node.ensure_type(source, TensorType.FLOAT32, *_INTEGER)
    return source


@register("L2_POOL_2D")
def l2_pool_2d(node: Node) -> None:
    node.ensure_counts(inputs=1, outputs=1)
    output, source = node.temp_output(), node.temp_input(0)
    for tensor in (source, output):
        node.ensure(tensor.rank == 4, f"NumDimensions != kTensorShapeRank ({tensor.rank} != 4)")
        node.ensure_type(tensor, TensorType.FLOAT32)
    # the new height and width are those of the file, unless the file is wrong
    node.persist_dims(output)
