"""The record of one lab run, version 1: its jobs, their attempts, and what each metric was judged to be.

Old records stay readable for ever: fields are added with defaults only. Times are UTC, sizes are bytes; ``None`` means
not measured, never 0.
"""

from __future__ import annotations

from enum import Enum

import msgspec

from harness.record.schema import ErrorRecord
from harness.record.upgrade import UpgradeRecord

SCHEMA = "harness.regress"
SCHEMA_VERSION = 1


class JobStatus(str, Enum):
    """How a job ended. FLAKY: it passed in the end, after an attempt that did not."""

    PASSED = "passed"
    FAILED = "failed"  # measured, and not as it should be; or the model is unfit
    ERROR = "error"  # build, flash, link: nothing was measured
    FLAKY = "flaky"
    SKIPPED = "skipped"  # no rig of the lab fits
    BLOCKED = "blocked"  # it was not begun: rigs benched or held by others, or no time left


class MetricStatus(str, Enum):
    PASSED = "passed"
    IMPROVED = "improved"  # better than the baseline by more than the tolerance
    FAILED = "failed"
    NO_BASELINE = "no_baseline"  # measured, nothing to compare it with
    NOT_MEASURED = "not_measured"


class MetricRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One number and what was held against it. ``tolerance`` is in the metric's unit."""

    name: str
    unit: str
    value: float | int | None
    status: MetricStatus
    message: str = ""
    baseline: float | int | None = None
    tolerance: float | None = None


class AttemptRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One try of a job on one rig. ``status``: ok | failed (the model, or a number) | error (rig, build, link)."""

    number: int
    rig: str
    status: str
    started: str
    seconds: float
    error: ErrorRecord | None = None
    exit_code: int = 0
    record_path: str = ""


class ConditionsRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What must be equal for two results to be comparable. ``None`` or "": not known."""

    kernels: str = ""
    tflm_commit: str = ""
    toolchain: str = ""
    optimise: str = ""
    interpreter: str = ""
    timing: str = ""  # unit of the counter: cycles | instructions | host_ns | systick
    clock_hz: int | None = None
    arena_region: str = ""
    caches: str = ""
    inputs: str = ""
    step_bytes: int | None = None


class JobRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One model on one board with one kernel set, once. ``id`` is the same in every run of the suite. ``remedy``: what
    to do about the error in ``reason``, "" where nothing is known."""

    id: str
    model: str
    model_path: str
    model_sha256: str
    board: str
    kernels: str
    tflm: str = ""
    repeat: int = 1
    tags: tuple[str, ...] = ()
    status: JobStatus
    reason: str = ""
    remedy: str = ""
    rig: str = ""
    probe_uid: str = ""
    build_id: str = ""
    exit_code: int = 0
    seconds: float = 0.0
    metrics: tuple[MetricRecord, ...] = ()
    attempts: tuple[AttemptRecord, ...] = ()
    conditions: ConditionsRecord = ConditionsRecord()
    protocol_tail: tuple[str, ...] = ()
    finished: str = ""


class RigRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a rig did in the run. ``busy_s`` is the time in which it had a job; ``benched``: why it was taken out."""

    name: str
    board: str
    probe_uid: str = ""
    jobs: int = 0
    attempts: int = 0
    busy_s: float = 0.0
    benched: str = ""


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """``suite_path`` as it was named, ``suite_file`` in full on the computer of the run: two may have one name."""

    schema: str = SCHEMA
    schema_version: int = SCHEMA_VERSION
    run_id: str
    suite: str
    suite_path: str
    suite_file: str = ""
    harness_version: str
    started: str
    finished: str
    seconds: float
    resumed_jobs: int = 0
    host: str = ""
    platform: str = ""
    python: str = ""
    rigs: tuple[RigRecord, ...] = ()
    jobs: tuple[JobRecord, ...] = ()
    exit_code: int = 0
    notes: tuple[str, ...] = ()
    upgrades: tuple[UpgradeRecord, ...] = ()

    def count(self, status: JobStatus) -> int:
        return sum(job.status is status for job in self.jobs)
