"""Who writes a tensor before who reads it."""

from __future__ import annotations

from collections.abc import Iterator

from harness.model.codes import finding
from harness.model.finding import Finding
from harness.model.graph import Operator, Tensor
from harness.model.rules.scope import Scope
from harness.units import safe_text

#: Inputs that the kernel of an operator never reads: TFLM takes their meaning from the output tensor's shape.
_UNREAD_INPUTS = {"RESHAPE": {1}, "TRANSPOSE_CONV": {0}}


def check_order(scope: Scope) -> Iterator[Finding]:
    subgraph = scope.subgraph
    written = {tensor.index for tensor in scope.tensors if _needs_no_writer(scope, tensor)}
    written.update(subgraph.inputs)
    for operator in subgraph.operators:
        for place, index in enumerate(operator.inputs):
            if index >= 0 and index not in written and place not in _UNREAD_INPUTS.get(operator.name, ()):
                written.add(index)  # say it once
                yield _unwritten(scope, operator, index)
        yield from _outputs(scope, operator)
        written.update(operator.outputs)
    for index in subgraph.outputs:
        if index not in written:
            written.add(index)
            yield finding("graph.output_never_written", scope.at(tensor=index), "no operator writes this graph output")
    yield from _ends(scope)


def _needs_no_writer(scope: Scope, tensor: Tensor) -> bool:
    if scope.data_sizes[tensor.index] or tensor.is_variable or 0 in tensor.dims:
        return True
    # data outside the file: another rule's business
    return bool(tensor.external_buffer) or scope.model.buffers[tensor.buffer].external is not None


def _unwritten(scope: Scope, operator: Operator, index: int) -> Finding:
    later = scope.writers.get(index)
    if later is None:
        message = "the operator reads this tensor, and no operator writes it"
        return finding("graph.never_written", scope.at(operator, index), message)
    writer = scope.subgraph.operators[later[0]]
    message = (
        f"the operator reads this tensor, and operator {writer.index} ({safe_text(writer.name, 60)}) writes it later"
    )
    return finding("graph.not_topological", scope.at(operator, index), message)


def _outputs(scope: Scope, operator: Operator) -> Iterator[Finding]:
    read = set(operator.inputs)
    for index in operator.outputs:
        if index in read:
            message = "the operator writes the tensor that it reads"
            yield finding("operator.in_place", scope.at(operator, index), message)
        if scope.data_sizes[index] and not scope.tensors[index].is_variable:
            message = f"the operator writes a tensor that has {scope.data_sizes[index]:,} bytes of constant data"
            yield finding("graph.output_is_constant_data", scope.at(operator, index), message)
        if scope.writers[index][0] != operator.index and scope.writers[index][1] == operator.index:
            message = f"operators {scope.writers[index][:4]} write this tensor"
            yield finding("graph.written_twice", scope.at(operator, index), message)


def _ends(scope: Scope) -> Iterator[Finding]:
    for index in dict.fromkeys(scope.subgraph.inputs):
        if scope.data_sizes[index]:
            yield finding("graph.constant_input", scope.at(tensor=index), "the graph input has constant data")
    for index in dict.fromkeys(scope.subgraph.outputs):
        if scope.data_sizes[index] and index not in scope.writers:
            yield finding("graph.constant_output", scope.at(tensor=index), "the graph output is a constant")
