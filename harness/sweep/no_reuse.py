"""The baseline without reuse: the same model with preserve_all_tensors, where no tensor lies over another. Outputs that
differ from it mean that operators write over each other's tensors, or read what nobody wrote."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.device.bench import Bench, TrialRun
from harness.errors import DeviceError, DoesNotFitError, HarnessError, UnfitModelError, UsageError
from harness.model.graph import Model
from harness.model.reader import read_model
from harness.plan.offline import without_offline_plan
from harness.plan.shared import plan_models
from harness.plan.target import Interpreter
from harness.record.schema import NoReuseRecord
from harness.record.store import results_error
from harness.sweep.ample import ample_run, ample_sizes
from harness.sweep.image import Program
from harness.sweep.measuring import does_not_work
from harness.sweep.overlap import Traced, describe, locate
from harness.sweep.request import Strategy, SweepRequest
from harness.sweep.session import Session, bench_for
from harness.sweep.vectors import Vector, run_vector, vectors_for
from harness.trial import Outcome, Reason
from harness.units import align_down, format_size, quoted, safe_text
from harness.wire import messages as wire

EQUAL, DIFFERENT, NOT_RUN = "equal", "different", "not_run"


class _NotRun(Exception):
    """The baseline cannot be run here, which says nothing against the model."""

    def __init__(self, detail: str, planned_bytes: int | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.planned_bytes = planned_bytes


@dataclass(frozen=True, slots=True)
class _Baseline:
    """``planned_bytes`` None: the plan says nothing about the model."""

    model: Model
    program: Program
    planned_bytes: int | None
    offline_plan_removed: bool


def require_comparable(request: SweepRequest) -> None:
    """Raises UsageError for what has no baseline without reuse."""
    if not request.no_reuse:
        return
    if request.interpreter == Interpreter.PRESERVE_ALL.value:
        raise UsageError(
            "--preserve-all-tensors compares a firmware that reuses memory with one that does not; "
            "--interpreter preserve_all never does",
            remedy="leave --interpreter away, or take plain or recording",
        )
    if request.strategy is Strategy.REFLASH:
        raise UsageError(
            "--preserve-all-tensors compares with the firmware of the ample run, which --strategy reflash overwrites",
            remedy="leave --strategy away",
        )


def compare_without_reuse(session: Session, arena_bytes: int, output_digest: int) -> NoReuseRecord:
    """Build, flash and run the baseline, and hold its outputs against those in ``arena_bytes`` of the session's
    firmware, whose first are ``output_digest``. Where they differ the first operator that differs is looked for.
    Costs one flash, and a second one to look. Raises DeviceError or LinkError where a device gave no answer."""
    flashed_before = session.flashes
    try:
        baseline = _build(session)
        vectors = _vectors(session)
        with_reuse = _digests_with_reuse(session, arena_bytes, output_digest, vectors)
        bench, run, without = _run(session, baseline, vectors)
    except _NotRun as exc:
        return NoReuseRecord(
            NOT_RUN, exc.detail, planned_bytes=exc.planned_bytes, flashes=session.flashes - flashed_before
        )
    differing = next((n for n, pair in enumerate(zip(with_reuse, without, strict=True)) if pair[0] != pair[1]), None)
    difference, detail = None, ""
    if differing is not None:
        session.progress.stage("no reuse: the outputs differ")
        seen = vectors[: differing + 1]
        ours = Traced(session.bench, arena_bytes, seen)
        theirs = Traced(bench, run.trial.arena_bytes, seen)
        difference, detail = locate(session, ours, theirs)
    return NoReuseRecord(
        EQUAL if differing is None else DIFFERENT,
        detail,
        arena_bytes=run.trial.arena_bytes,
        planned_bytes=baseline.planned_bytes,
        build_id=baseline.program.image.build_id,
        output_digest=f"{without[0]:016x}",
        vectors=len(vectors),
        differing_vector=differing,
        first_difference=difference,
        offline_plan_removed=baseline.offline_plan_removed,
        flashes=session.flashes - flashed_before,
    )


def require_no_overlap(request: SweepRequest, found: NoReuseRecord | None) -> None:
    """Raises HarnessError where outputs differ between reuse and no reuse."""
    if found is None or found.verdict != DIFFERENT:
        return
    place = f"rig {request.rig.name} ({request.board})" if request.rig else request.board
    when = f" (inference {found.differing_vector} of a sequence)" if found.differing_vector else ""
    where = describe(found.first_difference) if found.first_difference else f"no operator is named: {found.detail}"
    offline = (
        "the offline memory plan in its metadata, which TFLM obeys, places tensors over one another: plan it again"
    )
    kernel = (
        "a kernel writes beyond its tensor, or reads what nobody wrote: --kernels reference tells whether it is one "
    )
    raise HarnessError(
        f"{quoted(Path(request.model_path).name)} on {safe_text(place)}: with memory reused the outputs are others "
        f"than without{when}; {where}",
        remedy=f"{offline} (harness check), or remove it"
        if found.offline_plan_removed
        else f"{kernel}of CMSIS-NN; harness check looks at the model",
        code="outputs.overlap",
    )


def _build(session: Session) -> _Baseline:
    """A model with an offline plan is run without it: TFLM's linear planner refuses one."""
    session.progress.stage("no reuse: build")
    firmware = session.firmware.without_reuse()
    model = without_offline_plan(session.model)
    planned_bytes = None
    try:
        planned_bytes = plan_models((model,), firmware.target).min_exact_bytes
    except UnfitModelError as exc:
        if session.plan is not None:
            raise _NotRun(safe_text(f"TFLM cannot run it without reuse: {exc.message}")) from exc
    if model is not session.model:
        model = _written(model, session.request)
    try:
        program = firmware.program(model, planned_bytes or session.predicted_bytes)
    except DoesNotFitError as exc:
        raise _NotRun(_too_large(session, planned_bytes, exc), planned_bytes) from exc
    if program.rtt_address != session.program.rtt_address:
        raise _NotRun("its RTT control block lies elsewhere: talk by --transport uart", planned_bytes)
    return _Baseline(model, program, planned_bytes, offline_plan_removed=model.sha256 != session.model.sha256)


def _written(model: Model, request: SweepRequest) -> Model:
    """The model in a file of its own: the host board reads files, and whoever doubts the answer can run it."""
    path = request.results / "firmware" / f"{model.sha256[:12]}-without-offline-plan.tflite"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(model.data)
    except OSError as exc:
        raise results_error(path, exc) from exc
    return read_model(path, lenient=True)


def _too_large(session: Session, planned_bytes: int | None, exc: DoesNotFitError) -> str:
    needs = "" if planned_bytes is None else f"without reuse it needs an arena of {format_size(planned_bytes)}, "
    has = f"with it {format_size(session.predicted_bytes)}: "
    return safe_text(f"{needs}{has if needs else ''}{exc.message.splitlines()[0].rstrip(':')}; {exc.remedy}", 500)


def _vectors(session: Session) -> list[Vector]:
    vectors = vectors_for(session.models, session.request.inputs)
    return vectors if session.hello.can(wire.Capability.MEASURE) else vectors[:1]


def _digests_with_reuse(session: Session, arena_bytes: int, output_digest: int, vectors: Sequence[Vector]) -> list[int]:
    """Of the session's firmware, which is on the board. The first is known."""
    if len(vectors) == 1:
        return [output_digest]
    session.progress.stage("no reuse: the sequence with reuse")
    run = session.bench.run(arena_bytes, output_digest, session.deadline)
    if run.trial.outcome is not Outcome.WORKS:
        raise does_not_work(run.trial, was_given=False)
    return [output_digest, *_later_digests(session, session.bench, session.hello, vectors)]


def _run(session: Session, baseline: _Baseline, vectors: Sequence[Vector]) -> tuple[Bench, TrialRun, list[int]]:
    """(bench, ample run, digest for each vector) of the baseline."""
    session.progress.stage("no reuse: flash")
    session.flashes += session.rig.probe.flash(baseline.program.image, session.deadline)
    bench = bench_for(session.rig, session.device, baseline.program, session.inputs, session.request)
    hello = bench.boot(session.deadline)
    session.progress.stage("no reuse: run")
    try:
        run = ample_run(bench, _sizes(baseline, hello), session.deadline)
    except DoesNotFitError as exc:
        raise _NotRun(_too_large(session, baseline.planned_bytes, exc), baseline.planned_bytes) from exc
    trial = run.trial
    if trial.outcome is Outcome.ERROR and trial.reason is Reason.LINK_LOST:
        raise DeviceError(f"the baseline without reuse gave no answer: {trial.detail}", remedy="run again")
    if trial.outcome is not Outcome.WORKS or run.report is None:
        why = f"{trial.reason.value if trial.reason else trial.outcome.value} {trial.detail}".rstrip()
        detail = f"without reuse it does not run in {format_size(trial.arena_bytes)}: {why}"
        raise _NotRun(safe_text(detail, 500), baseline.planned_bytes)
    return bench, run, [run.report.output_digest, *_later_digests(session, bench, hello, vectors)]


def _sizes(baseline: _Baseline, hello: wire.Hello) -> Iterator[int]:
    """All there is, where no plan says what is ample."""
    if baseline.planned_bytes is None:
        return iter([align_down(hello.capacity_bytes, 16)])
    return ample_sizes(baseline.planned_bytes, hello.capacity_bytes)


def _later_digests(session: Session, bench: Bench, hello: wire.Hello, vectors: Sequence[Vector]) -> list[int]:
    return [run_vector(bench, hello, vector, session.deadline) for vector in vectors[1:]]
