"""Where outputs begin to differ between a firmware that reuses memory and one that does not: both are asked for a
digest of each operator's outputs, right after it, before their memory is used again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from harness.deadline import Deadline
from harness.device.bench import Bench
from harness.errors import DeviceError, HarnessError
from harness.model.graph import Model, Operator, SubGraph, Tensor
from harness.record.schema import OperatorDifferenceRecord, OverwrittenRecord
from harness.sweep.session import Session
from harness.sweep.vectors import Vector, run_vector
from harness.units import quoted, safe_text
from harness.wire import messages as wire

_STRIPPED = "this TFLM was built with TF_LITE_STRIP_ERROR_STRINGS and says nothing of its operators"


@dataclass(frozen=True, slots=True)
class Traced:
    """A firmware to trace while it is on the board: in ``arena_bytes``, the last of ``vectors`` after the others."""

    bench: Bench
    arena_bytes: int
    vectors: Sequence[Vector]

    def digests(self, deadline: Deadline, tensor: int = wire.OWN_OUTPUTS) -> tuple[list[int], int]:
        """(digests, how many there were) of a fresh boot, as ``Device.operator_digests``. The trial invokes nothing, so
        that the first vector finds what it found in its own trial."""
        bench, device = self.bench, self.bench.device
        soon = deadline.sooner(bench.trial_timeout_s)
        hello = bench.boot(deadline)
        bench.set_inputs(hello, deadline)
        report = device.trial(self.arena_bytes, soon, invoke=False)
        if report.status is not wire.TrialStatus.OK:
            raise DeviceError(f"its arena worked before, and now: {report.status.name.lower()}", remedy="run again")
        *before, last = self.vectors
        for vector in before:
            run_vector(bench, hello, vector, deadline)
        if before:
            bench.set_inputs(hello, deadline, last.inputs.plan)
            if last.reset:
                device.restart(deadline)
        return device.operator_digests(deadline.sooner(bench.trial_timeout_s), tensor=tensor)


def locate(session: Session, ours: Traced, theirs: Traced) -> tuple[OperatorDifferenceRecord | None, str]:
    """The first difference between ``ours`` and ``theirs``, which reuses no memory and is on the board; or None and why
    not. Flashes ``ours``. Never raises: that the outputs differ is known, and must not be lost."""
    why_not = why_not_traceable(session.hello)
    if why_not:
        return None, why_not
    try:
        right, made = theirs.digests(session.deadline)
        session.progress.stage("no reuse: flash")
        session.restore_program()
        session.progress.stage("no reuse: the first operator that differs")
        found, _ = ours.digests(session.deadline)
        return first_difference(
            session.model, found, right, made, lambda tensor: ours.digests(session.deadline, tensor)[0]
        )
    except HarnessError as exc:
        return None, safe_text(f"the operators could not be traced: {exc.message}", 500)


def why_not_traceable(hello: wire.Hello) -> str:
    """Why a device cannot be asked for digests of operators; empty where it can."""
    if hello.can(wire.Capability.OPERATOR_DIGESTS):
        return ""
    if hello.board == "host":
        return "the host board does not tell its tensors while it runs; a twin does (--board sim:…)"
    if hello.minor < 2:
        return f"the device speaks protocol {hello.major}.{hello.minor}, which has no digests of operators"
    return _STRIPPED


def first_difference(
    model: Model, found: Sequence[int], right: Sequence[int], made: int, watch: Callable[[int], Sequence[int]]
) -> tuple[OperatorDifferenceRecord | None, str]:
    """(the difference, ``""``), or (None, why there is none to name). ``found`` and ``right`` are the digests of each
    operator's outputs with and without reuse, of ``made``; ``watch`` gives those of one tensor, with reuse, before each
    operator and at the end."""
    if not right:
        return None, _STRIPPED
    operators = model.subgraphs[0].operators
    at = next((number for number, pair in enumerate(zip(found, right, strict=False)) if pair[0] != pair[1]), None)
    if at is None and len(right) < made:
        return None, f"the first {len(right)} of {made} operators, which the device can keep, compute the same"
    overwritten = _overwritten(model, at, watch)
    if at is not None:
        names = tuple(model.subgraphs[0].tensors[index].name for index in operators[at].outputs)
        return OperatorDifferenceRecord(at, operators[at].name, names, overwritten), ""
    if overwritten is not None:
        return OperatorDifferenceRecord(overwritten=overwritten), ""
    return None, "in a further run each operator computed the same: the outputs are not repeatable (harness soak)"


def _overwritten(model: Model, reader: int | None, watch: Callable[[int], Sequence[int]]) -> OverwrittenRecord | None:
    """The first input of operator ``reader`` (None: output of the model) that another operator wrote over after it was
    made. Constants lie elsewhere."""
    main = model.subgraphs[0]
    needed = main.outputs if reader is None else main.operators[reader].inputs
    for index in dict.fromkeys(index for index in needed if index >= 0):
        tensor = main.tensors[index]
        if model.buffers[tensor.buffer].size_bytes:
            continue
        row = watch(index)  # before each operator, and after all of them
        changed = (
            operator for operator, pair in zip(main.operators, pairwise(row), strict=False) if pair[0] != pair[1]
        )
        for operator in changed:
            if _may_not_change(main, tensor, reader, operator):
                return OverwrittenRecord(index, tensor.name, operator.index, operator.name)
    return None


def _may_not_change(main: SubGraph, tensor: Tensor, reader: int | None, operator: Operator) -> bool:
    """Whether the tensor must be as it is while ``operator`` runs, for ``reader`` to read it. A variable is kept from
    one inference to the next, and changed by those that have it as an input."""
    if tensor.is_variable:
        return tensor.index not in operator.inputs
    end = len(main.operators) if reader is None else reader
    made_by = max((one.index for one in main.operators[:end] if tensor.index in one.outputs), default=-1)
    return made_by < operator.index < end


def describe(found: OperatorDifferenceRecord) -> str:
    """One clause for a person."""
    over = found.overwritten
    if found.operator is None:
        assert over is not None
        return (
            f"each operator computes the same, and output {quoted(over.name, 60)} (tensor {over.tensor}) is then "
            f"written over by operator {over.by_operator}, {safe_text(over.by_name, 60)}"
        )
    outputs = ", ".join(quoted(name, 60) for name in found.outputs)
    first = f"the first operator that computes otherwise is {found.operator}, {safe_text(found.name, 60)} ({outputs})"
    if over is None:
        return f"{first}; no other operator had written over its inputs when it began"
    return (
        f"{first}: its input {quoted(over.name, 60)} (tensor {over.tensor}) was written over by operator "
        f"{over.by_operator}, {safe_text(over.by_name, 60)}"
    )
