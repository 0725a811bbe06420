"""Subgraphs, resource variables and streaming state (kernels/if.cc, while.cc, call_once.cc, var_handle.cc,
assign_variable.cc, read_variable.cc, circular_buffer*.cc)."""

from __future__ import annotations

from harness.model.graph import TensorType
from harness.plan.kernels.registry import register
from harness.plan.node import Node


@register("IF", init="if::OpData")
def if_(node: Node) -> None:
    node.ensure(node.input_count > 0, "node->inputs->size > 0 was not true.")
    condition = node.temp_input(0)
    node.ensure_type(condition, TensorType.BOOL)
    node.ensure(condition.element_count == 1, f"NumElements(cond) != 1 ({condition.element_count} != 1)")
    then_index, else_index = node.option("then_subgraph_index"), node.option("else_subgraph_index")
    _ensure_subgraph(node, then_index, "then_subgraph_index")
    _ensure_subgraph(node, else_index, "else_subgraph_index")
    _ensure_interface(node, then_index, inputs=node.input_count - 1, outputs=node.output_count)


@register("WHILE", init="while::OpData")
def while_(node: Node) -> None:
    condition, body = node.option("cond_subgraph_index"), node.option("body_subgraph_index")
    _ensure_subgraph(node, condition, "cond_subgraph_index")
    _ensure_subgraph(node, body, "body_subgraph_index")
    _ensure_interface(node, condition, inputs=node.input_count)
    _ensure_interface(node, body, inputs=node.input_count, outputs=node.output_count)
    node.ensure(node.input_count == node.output_count, f"num_inputs != num_outputs ({node.input_count})")


@register("CALL_ONCE", init="call_once::OpData")
def call_once(node: Node) -> None:
    node.ensure_counts(inputs=0, outputs=0)
    _ensure_subgraph(node, node.option("init_subgraph_index"), "init_subgraph_index")


def _ensure_subgraph(node: Node, index: int, name: str) -> None:
    count = len(node.preparation.model.subgraphs)
    node.ensure(0 <= index < count, f"op_data->{name} < graph_info.NumSubgraphs() was not true ({index} of {count}).")


def _ensure_interface(node: Node, index: int, inputs: int, outputs: int | None = None) -> None:
    subgraph = node.preparation.model.subgraphs[index]
    count = len(subgraph.inputs)
    node.ensure(inputs == count, f"num_inputs != graph_info.NumSubgraphInputs({index}) ({inputs} != {count})")
    count = len(subgraph.outputs)
    if outputs is not None:
        node.ensure(outputs == count, f"num_outputs != graph_info.NumSubgraphOutputs({index}) ({outputs} != {count})")


@register("VAR_HANDLE", init="var_handle::OpData")
def var_handle(node: Node) -> None:
    """Points its output at the id in its op data, so the planner leaves that tensor alone. Allocates nothing."""
    resources = node.preparation.resources
    container, shared_name = node.text("container"), node.text("shared_name")
    number = next(
        (
            known
            for (other, name), known in resources.items()
            if name == shared_name and (container is None or container == other)
        ),
        None,
    )
    if number is None:
        number = resources[container, shared_name] = len(resources)
    output = node.output()
    node.ensure(output is not None, "output != nullptr was not true.")
    if output is not None:
        output.has_data = True
        node.preparation.resource_of_tensor[node.subgraph.index, node.operator.outputs[0]] = number


def _assign_variable_init(node: Node) -> None:
    if node.abi.compression:
        node.persist_struct("assign_variable::OpData")


@register("ASSIGN_VARIABLE", init=_assign_variable_init)
def assign_variable(node: Node) -> None:
    """Allocates the variable's buffer at the first assignment whose handle is known during Prepare."""
    node.ensure_counts(inputs=2, outputs=0)
    handle = node.input(0)
    node.ensure(
        handle is not None and handle.type in (TensorType.RESOURCE, TensorType.INT32) and handle.element_count == 1,
        "input_resource_id_tensor is not one RESOURCE or INT32 element",
    )
    value = node.temp_input(1)
    number = node.preparation.resource_of_tensor.get((node.subgraph.index, node.operator.inputs[0]))
    if number is not None and number not in node.preparation.resource_buffers:
        node.preparation.resource_buffers.add(number)
        node.persist(value.size_bytes, f"resource variable {number}")


@register("READ_VARIABLE")
def read_variable(node: Node) -> None:
    one_each = node.input_count == node.output_count == 1
    node.expect(one_each, "NumInputs(node) == 1 && NumOutputs(node) == 1 was not true.")
    handle = node.temp_input(0)
    node.expect(handle.type == TensorType.RESOURCE, "input_resource_id_tensor->type == kTfLiteResource was not true.")


@register("CIRCULAR_BUFFER", init="OpDataCircularBuffer", custom=True)
def circular_buffer(node: Node) -> None:
    source, output = node.temp_input(0), node.temp_output()
    node.ensure(source.rank >= 4 and output.rank >= 4, "a circular buffer needs four dimensions")
    node.ensure(source.dims[0] == output.dims[0], "input->dims->data[0] != output->dims->data[0]")
    node.ensure(source.dims[1] == 1, f"1 != input->dims->data[1] (1 != {source.dims[1]})")
    node.ensure(source.dims[2:4] == output.dims[2:4], "input->dims->data[2..3] != output->dims->data[2..3]")
    node.ensure_same_type(source, output)
    node.ensure_type(source, TensorType.INT8)
