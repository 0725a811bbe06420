"""From what a worker brings back to what a job is: passed, failed, error, flaky."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import msgspec

from harness.board.lab_file import RigEntry
from harness.errors import ExitCode, UsageError
from harness.lab.baseline import BaselineStore, Found
from harness.lab.conditions import conditions_of
from harness.lab.dispatch import JobState
from harness.lab.job import Job
from harness.lab.metrics import METRICS, Number
from harness.lab.order import Result
from harness.lab.suite import BaselineSettings
from harness.lab.verdict import Measured, Rules, is_timing_only, judge
from harness.record.lab_run import (
    AttemptRecord,
    ConditionsRecord,
    JobRecord,
    JobStatus,
    MetricRecord,
    MetricStatus,
)
from harness.record.schema import ErrorRecord, SweepRecord
from harness.record.store import read_record
from harness.units import safe_text

#: (rig, job, metric, conditions) → the rig's earlier values, oldest first.
PastValues = Callable[[str, Job, str, ConditionsRecord], Sequence[Number]]


#: The error of an attempt that measured everything, and not what it should.
_OUT_OF_TOLERANCE = "out_of_tolerance"


class Blame(str, Enum):
    """Whose fault an error is: it decides whether another try, and another rig, makes sense."""

    MODEL = "model"  # unfit, does not fit, faults with an ample arena: the same everywhere
    BUILD = "build"  # files, packages, compiler: the same until somebody changes them
    RIG = "rig"  # probe, flash, link, the worker's process
    BUSY = "busy"  # another process has the rig


def blame(error: ErrorRecord, exit_code: int) -> Blame:
    if error.code == "rig.busy":
        return Blame.BUSY
    if error.code.startswith("trial.") or exit_code == ExitCode.RESULT_BAD:
        return Blame.MODEL
    if exit_code in {ExitCode.PROBE, ExitCode.LINK} and error.code not in {"board.unknown", "board.invalid"}:
        return Blame.RIG
    return Blame.BUILD


@dataclass(frozen=True, slots=True)
class Verdict:
    """``attempt`` is kept; ``record`` is the job's end, None where it is to be tried again. ``rig_error``: why the
    rig is to blame, "" where it is not."""

    attempt: AttemptRecord
    record: JobRecord | None
    rig_error: str = ""


@dataclass(frozen=True, slots=True)
class Evaluator:
    """The rules of one run."""

    baselines: BaselineStore
    settings: BaselineSettings
    retries: int
    past: PastValues

    def evaluate(self, state: JobState, rig: RigEntry, result: Result, started: str, finished: str) -> Verdict:
        """One attempt that has ended."""
        metrics: tuple[MetricRecord, ...] = ()
        conditions = ConditionsRecord()
        status, reason, rig_error, again = "ok", "", "", False
        if result.error is not None:
            whose = blame(result.error, result.exit_code)
            status = "failed" if whose is Blame.MODEL else "error"
            reason = f"{result.error.code}: {' '.join(result.error.message.split())}"
            rig_error = reason if whose is Blame.RIG else ""
            again = whose is Blame.RIG
        elif result.record is not None:
            conditions = conditions_of(result.record)
            metrics = self._judge(state.job, rig, result.record, conditions)
            failed = [metric for metric in metrics if metric.status is MetricStatus.FAILED]
            if failed:
                status, reason, again = (
                    "failed",
                    "; ".join(metric.message for metric in failed),
                    is_timing_only(metrics),
                )
        attempt = AttemptRecord(
            number=len(state.attempts) + 1,
            rig=rig.name,
            status=status,
            started=started,
            seconds=result.seconds,
            error=result.error or (ErrorRecord(_OUT_OF_TOLERANCE, reason) if reason else None),
            exit_code=result.exit_code,
            record_path=result.record_path,
        )
        attempts = (*state.attempts, attempt)
        if again and len(attempts) <= self.retries:
            return Verdict(attempt, None, rig_error)
        record = _job_record(state.job, rig, result, attempts, metrics, conditions, reason, finished)
        return Verdict(attempt, record, rig_error)

    def give_up(self, state: JobState, why: str, exit_code: int, rigs: Sequence[RigEntry], finished: str) -> JobRecord:
        """The end of a job that is not tried any more, with what its last attempt measured: read back from its record,
        since that may be an attempt of a run that was killed."""
        record = given_up(state, why, exit_code, finished)
        last = state.attempts[-1] if state.attempts else None
        rig = next((rig for rig in rigs if last and rig.name == last.rig), None)
        sweep = _measured_by(last)
        if rig is None or sweep is None:
            return record
        conditions = conditions_of(sweep)
        return msgspec.structs.replace(
            record,
            board=rig.board,
            kernels=conditions.kernels or record.kernels,
            probe_uid=rig.probe,
            build_id=sweep.device.build_id if sweep.device else "",
            metrics=self._judge(state.job, rig, sweep, conditions),
            conditions=conditions,
        )

    def _judge(
        self, job: Job, rig: RigEntry, record: SweepRecord, conditions: ConditionsRecord
    ) -> tuple[MetricRecord, ...]:
        found = self.baselines.find(job.model.name, rig.board, conditions) if not job.tflm else Found(None)
        settings = self.settings if not job.tflm else None
        records = []
        for name in job.metrics:
            metric = METRICS[name]
            past = self.past(rig.name, job, name, conditions)
            measured = Measured(metric, metric.take(record), conditions, past, job.model.sha256)
            records.append(judge(measured, Rules(job.limits, settings, job.tolerances.get(name)), found))
        return tuple(records)


def _measured_by(attempt: AttemptRecord | None) -> SweepRecord | None:
    """The record of an attempt whose numbers count; None where there is none."""
    if attempt is None or attempt.error is None or attempt.error.code != _OUT_OF_TOLERANCE or not attempt.record_path:
        return None
    try:
        return read_record(Path(attempt.record_path))
    except UsageError:  # gone, or damaged: the attempt's reason is all that is left
        return None


def _job_record(
    job: Job,
    rig: RigEntry,
    result: Result,
    attempts: tuple[AttemptRecord, ...],
    metrics: tuple[MetricRecord, ...],
    conditions: ConditionsRecord,
    reason: str,
    finished: str,
) -> JobRecord:
    last = attempts[-1]
    status = {"ok": JobStatus.PASSED, "failed": JobStatus.FAILED, "error": JobStatus.ERROR}[last.status]
    first_bad = next((attempt for attempt in attempts if attempt.status != "ok"), None)
    if status is JobStatus.PASSED and first_bad is not None:
        status = JobStatus.FLAKY
        error = first_bad.error
        reason = f"attempt {first_bad.number} on {first_bad.rig}: {error.code}: {error.message}" if error else ""
    exit_code = {JobStatus.FAILED: int(ExitCode.RESULT_BAD), JobStatus.ERROR: result.exit_code}.get(status, 0)
    device = result.record.device if result.record else None
    return msgspec.structs.replace(
        planned_record(job),
        board=rig.board,
        kernels=conditions.kernels or job.kernels,
        status=status,
        reason=reason,
        remedy=result.error.remedy if result.error else "",
        rig=rig.name,
        probe_uid=rig.probe,
        build_id=device.build_id if device else "",
        exit_code=exit_code,
        seconds=round(sum(attempt.seconds for attempt in attempts), 3),
        metrics=metrics,
        attempts=attempts,
        conditions=conditions,
        protocol_tail=result.protocol_tail,
        finished=finished,
    )


def given_up(state: JobState, why: str, exit_code: int, finished: str) -> JobRecord:
    """The end of a job that is not tried any more: blocked, or the error of its last attempt where there was one."""
    record = planned_record(state.job)
    last = state.attempts[-1] if state.attempts else None
    if last is None or last.error is None:
        return msgspec.structs.replace(record, reason=why, exit_code=exit_code, finished=finished)
    return msgspec.structs.replace(
        record,
        status=JobStatus.FAILED if last.status == "failed" else JobStatus.ERROR,
        reason=f"{last.error.code}: {last.error.message}; not tried again: {why}",
        remedy=last.error.remedy,
        rig=last.rig,
        exit_code=last.exit_code or int(ExitCode.RESULT_BAD),
        seconds=round(sum(attempt.seconds for attempt in state.attempts), 3),
        attempts=tuple(state.attempts),
        finished=finished,
    )


def planned_record(job: Job) -> JobRecord:
    """The record of a job that has not run."""
    return JobRecord(
        id=job.id,
        model=job.model.name,
        model_path=safe_text(str(job.model.path), 1000),
        model_sha256=job.model.sha256,
        board=job.board,
        kernels=job.kernels,
        tflm=job.tflm,
        repeat=job.repeat,
        tags=job.tags,
        status=JobStatus.BLOCKED,
    )
