"""Every index of a model against what it points into."""

from __future__ import annotations

from collections.abc import Iterator

from harness.model.finding import Finding, Severity
from harness.model.graph import Model, Operator, SubGraph
from harness.units import quoted

_REMEDY = "the file is damaged or its writer is faulty: convert the model again"
#: Tensor index of an absent optional input (kTfLiteOptionalTensor, tensorflow/lite/core/c/common.h).
ABSENT = -1


def find_index_faults(model: Model) -> Iterator[Finding]:
    """Every index that is out of range, in file order. TFLM reads past its tables for each of them."""
    buffers = len(model.buffers)
    for subgraph in model.subgraphs:
        for tensor in subgraph.tensors:
            if tensor.buffer >= buffers:
                yield _fault(
                    "index.buffer",
                    f"subgraph {subgraph.index}, tensor {tensor.index}",
                    f"buffer {tensor.buffer} is out of range: the model has {buffers} buffers",
                )
        yield from _subgraph_faults(model, subgraph)
    for number, entry in enumerate(model.metadata):
        if entry.buffer >= buffers:
            yield _fault(
                "index.metadata_buffer",
                f"metadata {number} ({quoted(entry.name, 60)})",
                f"buffer {entry.buffer} is out of range: the model has {buffers} buffers",
            )
    yield from _signature_faults(model)


def _subgraph_faults(model: Model, subgraph: SubGraph) -> Iterator[Finding]:
    count = len(subgraph.tensors)
    place = f"subgraph {subgraph.index}"
    for kind, indices in (("input", subgraph.inputs), ("output", subgraph.outputs)):
        for index in indices:
            if not 0 <= index < count:
                yield _fault("index.graph_" + kind, place, f"graph {kind} {index} is out of range{_has(count)}")
    for operator in subgraph.operators:
        for kind, indices, lowest in (
            ("input", operator.inputs, ABSENT),
            ("output", operator.outputs, 0),
            ("intermediate", operator.intermediates, 0),
        ):
            if indices and (min(indices) < lowest or max(indices) >= count):
                bad = next(index for index in indices if not lowest <= index < count)
                message = f"{kind} tensor {bad} is out of range{_has(count)}"
                yield _fault("index.operator_" + kind, _place(subgraph, operator), message)
        if operator.opcode.index >= len(model.operator_codes):
            message = (
                f"operator code {operator.opcode.index} is out of range: "
                f"the model has {len(model.operator_codes)} operator codes"
            )
            yield _fault("index.opcode", _place(subgraph, operator), message)


def _signature_faults(model: Model) -> Iterator[Finding]:
    for signature in model.signatures:
        place = f"signature {quoted(signature.key, 60)}"
        if signature.subgraph >= len(model.subgraphs):
            message = f"subgraph {signature.subgraph} is out of range: the model has {len(model.subgraphs)} subgraphs"
            yield _fault("index.signature", place, message)
            continue
        count = len(model.subgraphs[signature.subgraph].tensors)
        for name, index in (*signature.inputs, *signature.outputs):
            if index >= count:
                yield _fault(
                    "index.signature", place, f"tensor {index} ({quoted(name, 60)}) is out of range{_has(count)}"
                )


def _has(count: int) -> str:
    return f": the subgraph has {count} tensors"


def _place(subgraph: SubGraph, operator: Operator) -> str:
    return f"subgraph {subgraph.index}, operator {operator.index} ({quoted(operator.name, 60)[1:-1]})"


def _fault(code: str, where: str, message: str) -> Finding:
    return Finding(code, Severity.REFUSED, where, message, _REMEDY)
