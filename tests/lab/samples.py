"""Records made up for tests of what stores and reports them: no number here was measured."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from harness.record.lab_run import (
    AttemptRecord,
    ConditionsRecord,
    JobRecord,
    JobStatus,
    MetricRecord,
    MetricStatus,
    RigRecord,
    RunRecord,
)
from harness.record.schema import (
    DeviceRecord,
    ErrorRecord,
    MeasuredRecord,
    ModelIdentity,
    RunTimesRecord,
    SearchRecord,
    SweepRecord,
    TimingRecord,
    TrialRecord,
)

START = datetime(2026, 1, 1, tzinfo=timezone.utc)


def time_text(number: int) -> str:
    return (START + timedelta(minutes=number)).strftime("%Y-%m-%dT%H:%M:%SZ")


#: What the one cold Invoke of a trial took, as every trial tells it.
COLD_CYCLES = 9000


def sweep(
    number: int = 0, *, min_bytes: int | None = 12936, cycles: int | None = 1000, commit: str = "aaa"
) -> SweepRecord:
    """``cycles``: the median of timed runs; None where nothing was timed."""
    trials = (
        TrialRecord(arena_bytes=32768, outcome="works", used_bytes=10030, seconds=0.1),
        TrialRecord(arena_bytes=12928, outcome="too_small", reason="alloc_failed", seconds=0.1),
    )
    return SweepRecord(
        created=time_text(number),
        harness_version="0.1.0",
        model=ModelIdentity("models/kws.tflite", "ab" * 32, 1000),
        board="nucleo-f746zg",
        kernels="cmsis_nn",
        status="ok",
        plan={"arena": {"min_bytes": 12960, "used_bytes": 10032}},
        measured=MeasuredRecord(arena_bytes=32768, used_bytes=10030, invoke_cycles=COLD_CYCLES),
        timing=TimingRecord("cycles", run_times(cycles)) if cycles is not None else None,
        search=SearchRecord(min_bytes, 12928, 16, trials, 1, 32768),
        device=DeviceRecord(
            "00" * 16, commit, "cmsis_nn", "recording", "ilp32", "cycles", 65536, 16, clock_hz=216000000
        ),
    )


def run_times(cycles: int) -> RunTimesRecord:
    return RunTimesRecord(32768, 1, 10, 10, *[cycles] * 5, 0.0, "00")


def metric(
    name: str = "arena_min_bytes", status: MetricStatus = MetricStatus.PASSED, value: int = 12936
) -> MetricRecord:
    bad = status is MetricStatus.FAILED
    return MetricRecord(
        name=name, unit="B", value=value, status=status, baseline=12936, message=f"{name}: no good" if bad else ""
    )


def job(
    name: str = "kws",
    status: JobStatus = JobStatus.PASSED,
    *,
    rig: str = "left",
    number: int = 0,
    metrics: tuple[MetricRecord, ...] = (),
    commit: str = "aaa",
    reason: str = "",
    remedy: str = "",
) -> JobRecord:
    error = ErrorRecord("link.silent", "no answer", "check the cable")
    bad = AttemptRecord(number=1, rig="right", status="error", started=time_text(number), seconds=1.0, error=error)
    last = AttemptRecord(number=2, rig=rig, status="ok", started=time_text(number), seconds=1.0)
    attempts = {JobStatus.FLAKY: (bad, last), JobStatus.ERROR: (bad,)}.get(status, (last,) if rig else ())
    return JobRecord(
        id=f"{name}/nucleo-f746zg/cmsis_nn",
        model=name,
        model_path=f"models/{name}.tflite",
        model_sha256="ab" * 32,
        board="nucleo-f746zg",
        kernels="cmsis_nn",
        status=status,
        reason=reason,
        remedy=remedy,
        rig=rig,
        seconds=2.0,
        metrics=metrics,
        attempts=attempts,
        conditions=ConditionsRecord(kernels="cmsis_nn", tflm_commit=commit, timing="cycles", clock_hz=216000000),
        finished=time_text(number),
        protocol_tail=("0.154 -> TrialRequest(arena_bytes=12928)",),
    )


def run(*jobs: JobRecord, run_id: str = "run-1") -> RunRecord:
    return RunRecord(
        run_id=run_id,
        suite="night",
        suite_path="lab/night.yaml",
        harness_version="0.1.0",
        started=time_text(0),
        finished=time_text(9),
        seconds=60.0,
        host="lab",
        rigs=(
            RigRecord(name="left", board="nucleo-f746zg", probe_uid="066A", jobs=3, attempts=3, busy_s=50.0),
            RigRecord(name="right", board="nucleo-f746zg", benched="3 errors in a row, the last: probe.gone: no probe"),
        ),
        jobs=jobs,
    )
