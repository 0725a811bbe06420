"""What an outcome means: one table. Only the ample run's success makes a failure at a smaller size *too small*."""

from __future__ import annotations

from dataclasses import dataclass

from harness.trial import Outcome, Reason
from harness.units import safe_text
from harness.wire.messages import FaultKind, FaultRecord, GuardState, Stage, TrialReport, TrialStatus


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """The trial did not end in ``seconds``; the device answered again after a reset. ``stage``: where it was."""

    seconds: float
    stage: Stage | None


#: What one trial left behind.
Evidence = TrialReport | FaultRecord | NoAnswer


@dataclass(frozen=True, slots=True)
class Verdict:
    """``reason`` is None when it works, and when the device itself is at fault (``outcome`` is ERROR then)."""

    outcome: Outcome
    reason: Reason | None = None
    detail: str = ""


_FAULT_REASONS = {
    FaultKind.NONE: Reason.RESET,
    FaultKind.HALT: Reason.HALTED,
    FaultKind.WATCHDOG: Reason.TIMEOUT,
}
_DEVICE_AT_FAULT = {
    TrialStatus.RESOLVER_FAILED: "an operator could not be registered",
    TrialStatus.ARENA_TOO_LARGE: "the size is beyond the arena's capacity",
    TrialStatus.INPUT_FAILED: "the input could not be set",
    TrialStatus.UNKNOWN: "the device reports a status that this version does not know",
}


def judge(evidence: Evidence, arena_bytes: int, ample_digest: int | None) -> Verdict:
    """``ample_digest`` is the output digest of the ample run, None when this is the ample run itself."""
    if isinstance(evidence, TrialReport):
        reason, detail = _judge_report(evidence, ample_digest)
    elif isinstance(evidence, FaultRecord):
        reason, detail = _judge_fault(evidence)
        if evidence.arena_bytes != arena_bytes and evidence.kind is not FaultKind.NONE:
            detail = f"a fault record of {evidence.arena_bytes} bytes where {arena_bytes} were under test: {detail}"
            return Verdict(Outcome.ERROR, None, detail)
    else:
        reason, detail = Reason.TIMEOUT, _no_answer_text(evidence)
    if reason is None:
        return Verdict(Outcome.ERROR if detail else Outcome.WORKS, None, detail)
    return Verdict(Outcome.ERROR if ample_digest is None else Outcome.TOO_SMALL, reason, detail)


def _judge_report(report: TrialReport, ample_digest: int | None) -> tuple[Reason | None, str]:
    detail = safe_text(report.detail)
    if report.status in _DEVICE_AT_FAULT:
        return None, _DEVICE_AT_FAULT[report.status] + (f": {detail}" if detail else "")
    if report.status is TrialStatus.ALLOC_FAILED:
        return Reason.ALLOC_FAILED, detail
    if report.status is TrialStatus.INVOKE_FAILED:
        return Reason.INVOKE_FAILED, detail
    if report.status is TrialStatus.GUARD_OVERRUN or report.guard is GuardState.OVERRUN:
        offset = report.guard_offset - (1 << 32 if report.guard_offset >> 31 else 0)
        return Reason.GUARD_OVERRUN, f"bytes outside the arena were written, the first at offset {offset}"
    if ample_digest is not None and report.output_digest != ample_digest:
        return Reason.WRONG_OUTPUT, f"outputs {report.output_digest:016x}, in the ample arena {ample_digest:016x}"
    return None, ""


def _judge_fault(record: FaultRecord) -> tuple[Reason, str]:
    reason = _FAULT_REASONS.get(record.kind, Reason.FAULT)
    return reason, describe_fault(record)


def describe_fault(record: FaultRecord) -> str:
    """A fault record on one line."""
    if record.kind is FaultKind.NONE:
        return "the device reset itself and left no fault record"
    parts = [f"{record.kind.name.lower().replace('_', ' ')} in stage {record.stage.name.lower()}"]
    if record.signal:
        parts.append(f"signal {record.signal}")
    parts += [f"{name} {value:#010x}" for name, value in _registers(record) if value]
    if record.text:
        parts.append(safe_text(record.text))
    return ", ".join(parts)


def _registers(record: FaultRecord) -> list[tuple[str, int]]:
    names = ("pc", "lr", "cfsr", "hfsr", "mmfar", "bfar")
    return [(name, getattr(record, name)) for name in names]


def _no_answer_text(evidence: NoAnswer) -> str:
    if evidence.stage is Stage.INVOKE:
        return f"Invoke did not return in {evidence.seconds:g} s"
    where = f" in stage {evidence.stage.name.lower()}" if evidence.stage is not None else ""
    return f"no answer in {evidence.seconds:g} s{where}"
