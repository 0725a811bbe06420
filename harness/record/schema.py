"""The record of one sweep, version 1. Old records stay readable for ever: fields are added with defaults only.

Sizes are bytes. ``None`` means not measured, never 0.
"""

from __future__ import annotations

from pathlib import PureWindowsPath
from typing import Any

import msgspec

SCHEMA = "harness.record"
SCHEMA_VERSION = 1


class ModelIdentity(msgspec.Struct, frozen=True):
    path: str
    sha256: str
    bytes: int


class ErrorRecord(msgspec.Struct, frozen=True):
    code: str
    message: str
    remedy: str = ""


class TrialRecord(msgspec.Struct, frozen=True):
    """A Trial (trial.py): ``outcome`` and ``reason`` by their values."""

    arena_bytes: int
    outcome: str
    reason: str | None = None
    detail: str = ""
    used_bytes: int | None = None
    output_digest: str = ""
    seconds: float = 0.0
    attempts: int = 1


class ContradictionRecord(msgspec.Struct, frozen=True):
    failing_bytes: int
    working_bytes: int


class SearchRecord(msgspec.Struct, frozen=True):
    """``min_bytes`` None: the search did not end. ``flashes`` counts programmings of the board in this run."""

    min_bytes: int | None
    largest_failing_bytes: int | None
    step_bytes: int
    trials: tuple[TrialRecord, ...]
    flashes: int
    ample_bytes: int
    resumed_trials: int = 0
    contradictions: tuple[ContradictionRecord, ...] = ()


class CategoryRecord(msgspec.Struct, frozen=True):
    """One category of TFLM's recording allocator, by TFLM's name."""

    name: str
    requested_bytes: int
    used_bytes: int
    count: int


class MeasuredRecord(msgspec.Struct, frozen=True):
    """What the device told in the run with ``arena_bytes`` (the ample one). ``used_bytes`` is arena_used_bytes().
    Cycles are raw counts of ``timing`` (cycles | instructions | host_ns | systick)."""

    arena_bytes: int
    used_bytes: int | None
    head_bytes: int | None = None
    tail_bytes: int | None = None
    categories: tuple[CategoryRecord, ...] = ()
    output_digest: str = ""
    stack_used_bytes: int | None = None
    allocate_cycles: int | None = None
    invoke_cycles: int | None = None
    timing: str = ""
    clock_hz: int | None = None


class RunTimesRecord(msgspec.Struct, frozen=True):
    """Timed Invokes in an arena of ``arena_bytes``, in raw counts of the measurement's ``timing``. Median and standard
    deviation are of the ``samples`` that the device kept, the rest of all ``runs``. ``first_deviation``: the first run
    whose outputs were not those of the first."""

    arena_bytes: int
    warm_up: int
    runs: int
    samples: int
    first: int
    minimum: int
    median: float
    maximum: int
    mean: float
    stdev: float | None
    output_digest: str
    first_deviation: int | None = None
    used_bytes: int | None = None
    stack_used_bytes: int | None = None


class OperatorTimeRecord(msgspec.Struct, frozen=True):
    """``kernel`` is cmsis_nn or reference, as linked; empty where it is not known."""

    name: str
    count: int
    kernel: str = ""


class ProfileRecord(msgspec.Struct, frozen=True):
    """One Invoke under the profiler: ``unattributed`` is in none of the rows, ``truncated`` events were not kept."""

    operators: tuple[OperatorTimeRecord, ...]
    invoke: int
    unattributed: int
    truncated: int = 0


class ClockRecord(msgspec.Struct, frozen=True):
    """The counter's rate by the host's clock over ``span_s``."""

    hz: float
    uncertainty_hz: float
    span_s: float


class TimingRecord(msgspec.Struct, frozen=True):
    """``timing``: cycles | instructions | host_ns | systick: only cycles and systick are time on hardware, and only
    ``clock`` turns them into seconds. ``minimum`` is measured in the smallest arena that works."""

    timing: str
    ample: RunTimesRecord
    minimum: RunTimesRecord | None = None
    profile: ProfileRecord | None = None
    clock: ClockRecord | None = None


class StaticTrialRecord(msgspec.Struct, frozen=True):
    """A firmware whose arena is a compile-time constant, and what came of it."""

    arena_bytes: int
    build_id: str
    outcome: str
    reason: str | None = None
    detail: str = ""
    used_bytes: int | None = None


class CertificateRecord(msgspec.Struct, frozen=True):
    """The minimum proven in the form that is shipped: ``works`` in a static arena, and ``fails`` one step below (None
    where nothing smaller can be built)."""

    works: StaticTrialRecord
    fails: StaticTrialRecord | None
    flashes: int


class OverwrittenRecord(msgspec.Struct, frozen=True):
    """A tensor of the main subgraph that an operator wrote over while it was still needed."""

    tensor: int
    name: str
    by_operator: int
    by_name: str


class OperatorDifferenceRecord(msgspec.Struct, frozen=True):
    """The first operator of the main subgraph whose outputs differ; ``operator`` None: those of each are the same, and
    an output of the model was written over afterwards. ``outputs`` are its tensors' names. ``overwritten`` None: no
    other operator had written over its inputs when it began."""

    operator: int | None = None
    name: str = ""
    outputs: tuple[str, ...] = ()
    overwritten: OverwrittenRecord | None = None


class NoReuseRecord(msgspec.Struct, frozen=True):
    """The outputs of the firmware under test against those of the same one with preserve_all_tensors, which reuses no
    memory. ``verdict``: equal | different | not_run. ``detail``: why it was not run, or why no operator is named.
    ``planned_bytes`` is the smallest arena without reuse by the plan, ``arena_bytes`` the one it ran in. ``vectors``
    inferences were compared; ``differing_vector`` (from 0) is the first that differs. ``offline_plan_removed``: the
    model's offline memory plan was left out, as TFLM has none without reuse."""

    verdict: str
    detail: str = ""
    arena_bytes: int | None = None
    planned_bytes: int | None = None
    build_id: str = ""
    output_digest: str = ""
    vectors: int = 0
    differing_vector: int | None = None
    first_difference: OperatorDifferenceRecord | None = None
    offline_plan_removed: bool = False
    flashes: int = 0


class SoakDeviationRecord(msgspec.Struct, frozen=True):
    """The first run that was not as the others. It is one of ``first_run`` … ``last_run`` (counted from 0; equal where
    it is known exactly). ``what``: outputs | used_bytes | cycles | stack | guard | fill | restart | invoke_failed |
    fault | timeout | reset, or a trial's reason, for a boot that did not begin as the first. ``fault`` is the device's
    fault record, as it told it."""

    what: str
    first_run: int
    last_run: int
    detail: str
    fault: dict[str, Any] | None = None


class SoakChunkRecord(msgspec.Struct, frozen=True):
    """``runs`` timed runs from ``first_run`` on in one boot, after its untimed ones. ``opening_digest`` and
    ``opening_deviation`` are of the first runs of the boot, ``output_digest`` of the trial before. ``guards`` and
    ``fill``: intact, or not_checked. ``restarted``: the model's state was reset in the boot and gave the first outputs
    again."""

    first_run: int
    runs: int
    seconds: float
    output_digest: str
    opening_digest: str
    min_count: int
    max_count: int
    opening_deviation: int | None = None
    keeps_state: bool = False
    used_bytes: int | None = None
    stack_used_bytes: int | None = None
    guards: str = "not_checked"
    fill: str = "not_checked"
    restarted: bool = False


class SoakRecord(msgspec.Struct, frozen=True):
    """Many runs in an arena of ``arena_bytes``. ``verdict``: constant | stateful (its outputs depend on earlier runs
    even after a reset of its state, and repeat from boot to boot) | unstable | unfinished. ``stateful``: the model has
    state, which was reset before each run. ``boots`` fresh boots, in ``restarts`` of which the model was
    reset too. Counts are of ``timing``; ``allowed_spread_percent`` None: counts were not judged."""

    verdict: str
    arena_bytes: int
    runs: int
    boots: int
    restarts: int
    seconds: float
    timing: str
    min_count: int | None = None
    max_count: int | None = None
    allowed_spread_percent: float | None = None
    allowed_stack_bytes: int = 0
    output_digest: str = ""
    used_bytes: int | None = None
    stack_used_bytes: int | None = None
    guards: str = "not_checked"
    fill: str = "not_checked"
    stateful: bool = False
    resumed_runs: int = 0
    asked_runs: int | None = None
    asked_minutes: float | None = None
    deviation: SoakDeviationRecord | None = None


class DeviceRecord(msgspec.Struct, frozen=True):
    """The device's hello."""

    build_id: str
    tflm_commit: str
    kernels: str
    interpreter: str
    abi: str
    timing: str
    capacity_bytes: int
    base_alignment: int
    base_address: int | None = None
    clock_hz: int | None = None
    protocol: str = ""
    struct_sizes: dict[str, int] = {}


class EnvironmentRecord(msgspec.Struct, frozen=True):
    """What makes timing comparable, as the device told it. Empty or None: not told, or not there."""

    compiler: str = ""
    optimisation: str = ""
    arena_region: str = ""
    core_clock_hz: int | None = None
    flash_wait_states: int | None = None
    icache_enabled: bool | None = None
    dcache_enabled: bool | None = None
    flash_accelerator_enabled: bool | None = None
    flash_bytes: int | None = None
    ram_bytes: int | None = None
    stack_bytes: int | None = None
    baud: int | None = None
    reset_cause: str = ""


class ReferenceRecord(msgspec.Struct, frozen=True):
    """``backend`` computed the outputs that the device's were compared with. ``litert_refused``: why LiteRT is not it.
    ``agreement``: bit_exact | close | different | unknown | self (what was measured is the reference). ``unit`` of the
    differences: steps (of quantised outputs) | values (of float ones), "" where both are among them. ``vectors``
    inferences were compared: several for a model with state, in sequence and each after a reset. ``others`` are further
    references for the same outputs. ``refused``: why this one has no outputs."""

    backend: str
    agreement: str
    max_difference: float | None = None
    mean_difference: float | None = None
    litert_refused: str = ""
    vectors: int = 1
    tolerance_steps: float = 1
    others: tuple[ReferenceRecord, ...] = ()
    refused: str = ""
    unit: str = ""

    @property
    def largest(self) -> str:
        """The largest difference in words: ``1 step``, ``0.25``, "" where it is not known."""
        if self.max_difference is None:
            return ""
        steps = " step" if self.max_difference == 1 else " steps"
        return f"{self.max_difference:g}{steps if self.unit == 'steps' else ''}"


class LinkRecord(msgspec.Struct, frozen=True):
    """What the line did: requests, and what had to be repeated or dropped."""

    requests: int = 0
    retransmissions: int = 0
    damaged: int = 0
    stale: int = 0
    noise_bytes: int = 0


class RecommendationRecord(msgspec.Struct, frozen=True):
    """The size to give the arena: the measured minimum × ``headroom``, rounded up to a multiple of 16."""

    headroom: float
    arena_bytes: int


class SweepRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One model on one board. ``status``: ok | failed (the model) | error (the rig, the device, the environment).
    ``shared_by``: the models that share the arena, in the order of their setup; ``model`` then stands for all of them,
    with the SHA-256 of their digests."""

    schema: str = SCHEMA
    schema_version: int = SCHEMA_VERSION
    created: str
    harness_version: str
    model: ModelIdentity
    shared_by: tuple[ModelIdentity, ...] = ()
    board: str
    kernels: str
    variant: dict[str, str] = {}
    status: str
    error: ErrorRecord | None = None
    inputs: str = ""
    plan: dict[str, Any] | None = None
    measured: MeasuredRecord | None = None
    search: SearchRecord | None = None
    reconciliation: dict[str, Any] | None = None
    reference: ReferenceRecord | None = None
    device: DeviceRecord | None = None
    environment: EnvironmentRecord | None = None
    link: LinkRecord | None = None
    timing: TimingRecord | None = None
    recommendation: RecommendationRecord | None = None
    certificate: CertificateRecord | None = None
    no_reuse: NoReuseRecord | None = None
    soak: SoakRecord | None = None
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
    record_path: str | None = None

    @property
    def model_name(self) -> str:
        """The file's name, or those of all that share the arena: ``a.tflite + b.tflite``."""
        return " + ".join(PureWindowsPath(model.path).name for model in self.shared_by or (self.model,))
