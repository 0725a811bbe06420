"""Control flow: IF and WHILE with their subgraphs."""

from __future__ import annotations

from collections.abc import Sequence

from harness.model.builder.graph import Graph, Value
from harness.model.graph import TensorType


def compare(g: Graph, operator: str, a: Value, b: Value) -> Value:
    """LESS, GREATER, EQUAL, …: a BOOL tensor of the first operand's shape."""
    y = g.tensor(g.next_name(operator), a.shape, TensorType.BOOL)
    options_name = "".join(part.title() for part in operator.split("_")) + "Options"
    g.operator(operator, [a, b], [y], options_name)
    return y


def if_(g: Graph, condition: Value, inputs: Sequence[Value], then: Graph, otherwise: Graph) -> list[Value]:
    """IF: ``condition`` is one BOOL; both branches take ``inputs`` and return tensors of equal shapes."""
    outputs = _outputs_like(g, "IF", then)
    options = {"then_subgraph_index": then.index, "else_subgraph_index": otherwise.index}
    g.operator("IF", [condition, *inputs], outputs, "IfOptions", options)
    return outputs


def while_(g: Graph, inputs: Sequence[Value], condition: Graph, body: Graph) -> list[Value]:
    """WHILE: ``condition`` returns one BOOL, ``body`` returns the next values of its inputs."""
    outputs = _outputs_like(g, "WHILE", body)
    options = {"cond_subgraph_index": condition.index, "body_subgraph_index": body.index}
    g.operator("WHILE", inputs, outputs, "WhileOptions", options)
    return outputs


def _outputs_like(g: Graph, operator: str, branch: Graph) -> list[Value]:
    name = g.next_name(operator)
    records = [branch.tensors[index] for index in branch.outputs]
    return [
        g.tensor(f"{name}/{position}", record.shape, TensorType(record.type)) for position, record in enumerate(records)
    ]
