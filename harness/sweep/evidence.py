"""From what planner, device and search say to the parts of a record, and to what the reconciliation compares."""

from __future__ import annotations

from harness.board.record import Board
from harness.device.bench import TrialRun
from harness.device.client import LinkCounts
from harness.plan.arena import ArenaPlan, Confidence
from harness.plan.shared import SharedPlan
from harness.reconcile import CategoryBytes, MeasuredArena, PlannedArena, planned_struct_sizes
from harness.record.schema import (
    CategoryRecord,
    ContradictionRecord,
    DeviceRecord,
    EnvironmentRecord,
    LinkRecord,
    MeasuredRecord,
    SearchRecord,
    TrialRecord,
)
from harness.search import SearchResult
from harness.trial import Outcome, Reason, Trial
from harness.wire import messages as wire

#: RecordingMicroAllocator's own names (TFLM recording_micro_allocator.cc, PrintAllocations).
CATEGORY_NAMES = {
    wire.AllocationCategory.EVAL_TENSOR_DATA: "TfLiteEvalTensor data",
    wire.AllocationCategory.PERSISTENT_TENSOR_DATA: "Persistent TfLiteTensor data",
    wire.AllocationCategory.PERSISTENT_TENSOR_QUANTIZATION_DATA: "Persistent TfLiteTensor quantization data",
    wire.AllocationCategory.PERSISTENT_BUFFER_DATA: "Persistent buffer data",
    wire.AllocationCategory.TENSOR_VARIABLE_BUFFER_DATA: "TfLiteTensor variable buffer data",
    wire.AllocationCategory.NODE_AND_REGISTRATION_ARRAY: "NodeAndRegistration struct",
    wire.AllocationCategory.OP_DATA: "Operator runtime data",
    wire.AllocationCategory.COMPRESSION_DATA: "Persistent compression data",
    wire.AllocationCategory.UNKNOWN: "a category that this version does not know",
}


#: ``Environment``: not present or not known.
_NOT_THERE = 255


def _known(value: int) -> int | None:
    return None if value == wire.UNKNOWN_U32 else value


def trial_record(trial: Trial) -> TrialRecord:
    return TrialRecord(
        arena_bytes=trial.arena_bytes,
        outcome=trial.outcome.value,
        reason=trial.reason.value if trial.reason else None,
        detail=trial.detail,
        used_bytes=trial.used_bytes,
        output_digest=trial.output_digest,
        seconds=trial.seconds,
        attempts=trial.attempts,
    )


def trial_from_record(record: TrialRecord) -> Trial:
    return Trial(
        arena_bytes=record.arena_bytes,
        outcome=Outcome(record.outcome),
        reason=Reason(record.reason) if record.reason else None,
        detail=record.detail,
        used_bytes=record.used_bytes,
        output_digest=record.output_digest,
        seconds=record.seconds,
        attempts=record.attempts,
    )


def timing_of(hello: wire.Hello, board: Board) -> str:
    """What the device's counts are counts of. A twin counts instructions, whatever its firmware takes them for."""
    return "instructions" if board.is_simulated else hello.timing.name.lower()


def device_record(hello: wire.Hello, timing: str, struct_sizes: dict[str, wire.SizeRow] | None = None) -> DeviceRecord:
    return DeviceRecord(
        build_id=hello.build_id.hex(),
        tflm_commit=hello.tflm_commit,
        kernels=hello.kernels.name.lower(),
        interpreter=hello.interpreter.name.lower(),
        abi=hello.abi.name.lower(),
        timing=timing,
        capacity_bytes=hello.capacity_bytes,
        base_alignment=hello.base_alignment,
        base_address=None if hello.base_address == wire.UNKNOWN_U64 else hello.base_address,
        clock_hz=hello.clock_hz or None,
        protocol=f"{hello.major}.{hello.minor}",
        struct_sizes={name: row.size_bytes for name, row in (struct_sizes or {}).items()},
    )


def environment_record(told: wire.Environment) -> EnvironmentRecord:
    return EnvironmentRecord(
        compiler=told.compiler,
        optimisation=told.optimisation,
        arena_region=told.arena_region,
        core_clock_hz=told.core_clock_hz or None,
        flash_wait_states=None if told.flash_wait_states == _NOT_THERE else told.flash_wait_states,
        icache_enabled=_switch(told.icache_enabled),
        dcache_enabled=_switch(told.dcache_enabled),
        flash_accelerator_enabled=_switch(told.flash_accelerator_enabled),
        flash_bytes=told.flash_bytes or None,
        ram_bytes=told.ram_bytes or None,
        stack_bytes=told.stack_bytes or None,
        baud=told.baud or None,
        reset_cause=told.reset_cause,
    )


def _switch(told: int) -> bool | None:
    return None if told == _NOT_THERE else bool(told)


def measured_record(
    run: TrialRun, hello: wire.Hello, timing: str, allocations: wire.Allocations | None
) -> MeasuredRecord:
    """What the ample run told; ``run`` worked."""
    report = run.report
    assert report is not None
    rows = allocations.rows if allocations else ()
    return MeasuredRecord(
        arena_bytes=report.arena_bytes,
        used_bytes=_known(report.used_bytes),
        head_bytes=_known(report.head_bytes),
        tail_bytes=_known(report.tail_bytes),
        categories=tuple(
            CategoryRecord(CATEGORY_NAMES[row.category], row.requested_bytes, row.used_bytes, row.count) for row in rows
        ),
        output_digest=f"{report.output_digest:016x}",
        stack_used_bytes=_known(report.stack_used_bytes),
        allocate_cycles=report.allocate_cycles or None,
        invoke_cycles=report.invoke_cycles or None,
        timing=timing,
        clock_hz=hello.clock_hz or None,
    )


def search_record(result: SearchResult, *, flashes: int, ample_bytes: int, resumed_trials: int) -> SearchRecord:
    return SearchRecord(
        min_bytes=result.min_bytes,
        largest_failing_bytes=result.largest_failing_bytes,
        step_bytes=result.step_bytes,
        trials=tuple(trial_record(trial) for trial in result.trials),
        flashes=flashes,
        ample_bytes=ample_bytes,
        resumed_trials=resumed_trials,
        contradictions=tuple(ContradictionRecord(c.failing_bytes, c.working_bytes) for c in result.contradictions),
    )


def link_record(counts: LinkCounts) -> LinkRecord:
    return LinkRecord(counts.requests, counts.retransmissions, counts.damaged, counts.stale, counts.noise_bytes)


def planned_arena(plan: ArenaPlan | SharedPlan) -> PlannedArena:
    return PlannedArena(
        used_bytes=plan.used_bytes,
        head_bytes=plan.head_bytes,
        tail_bytes=plan.tail_bytes,
        min_exact_bytes=plan.min_exact_bytes,
        exact=plan.confidence is Confidence.EXACT,
        categories={
            name: CategoryBytes(entry.requested_bytes, entry.used_bytes, entry.count)
            for name, entry in plan.categories.items()
        },
        struct_sizes=planned_struct_sizes(plan.target.abi),
        reasons=plan.reasons,
        tflm_commit=plan.target.tflm_commit,
    )


def measured_arena(measured: MeasuredRecord, search: SearchRecord, device: DeviceRecord) -> MeasuredArena:
    return MeasuredArena(
        used_bytes=measured.used_bytes,
        head_bytes=measured.head_bytes,
        tail_bytes=measured.tail_bytes,
        min_bytes=search.min_bytes,
        largest_failing_bytes=search.largest_failing_bytes,
        step_bytes=search.step_bytes,
        categories={
            entry.name: CategoryBytes(entry.requested_bytes, entry.used_bytes, entry.count)
            for entry in measured.categories
        },
        struct_sizes=device.struct_sizes,
        tflm_commit=device.tflm_commit,
    )
