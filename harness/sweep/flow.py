"""The flow of a sweep, on one screen: it computes nothing itself."""

from __future__ import annotations

import logging

from harness.board.catalogue import load_board
from harness.board.record import Board
from harness.deadline import Deadline
from harness.device.bench import Bench
from harness.device.client import Device
from harness.errors import DeviceError, HarnessError, InternalError, UnfitModelError
from harness.inputs import ModelInputs, resolve_inputs
from harness.model.checks import refuse_unfit
from harness.model.graph import Model
from harness.model.reader import read_model
from harness.plan.arena import ArenaPlan, plan_arena
from harness.reconcile import reconcile
from harness.record.journal import Journal
from harness.record.schema import SweepRecord
from harness.record.store import write_record
from harness.rig.opening import OpenRig, RigOptions, open_rig
from harness.sweep import evidence
from harness.sweep.ample import ample_sizes
from harness.sweep.draft import Draft
from harness.sweep.image import Firmware, Program, firmware_for
from harness.sweep.observation import Observation
from harness.sweep.request import Progress, SweepRequest
from harness.sweep.trials import TrialSeries
from harness.units import safe_text
from harness.wire.messages import BOOT_LINE_PREFIX

_LOG = logging.getLogger(__name__)

#: Where the search starts when there is no plan (a model that the planner refuses, with --no-check).
_UNPLANNED_BYTES = 16 * 1024


def sweep_model(request: SweepRequest, progress: Progress) -> Draft:
    """One model on one board. What goes wrong is in the draft's status and error, never an exception."""
    draft = Draft.of(request)
    try:
        _sweep(request, progress, draft)
    except HarnessError as exc:
        _LOG.debug("the sweep of %s ended early", request.model_path, exc_info=True)
        draft.fail(exc)
    except Exception as exc:
        _LOG.debug("not foreseen", exc_info=True)
        text = safe_text(f"{type(exc).__name__}: {exc}")
        draft.fail(
            InternalError(f"a bug of harness: {text}", remedy="run again with --debug and report what it prints")
        )
    return draft


def keep_record(draft: Draft) -> SweepRecord:
    """Write the draft's record where the model could be read. A full disk is an error of the draft."""
    record = draft.finish()
    if not draft.is_identified:
        return record
    try:
        path = write_record(record, draft.request.results)
    except HarnessError as exc:
        draft.fail(exc)
        return draft.finish()
    return draft.finish(record_path=path.as_posix())


def _sweep(request: SweepRequest, progress: Progress, draft: Draft) -> None:
    deadline = Deadline.after(request.timeout_s)
    progress.stage("read")
    model = read_model(request.model_path, lenient=request.check)
    draft.identify(model)
    board = load_board(request.board, request.boards_dirs)
    firmware = firmware_for(board, request)
    draft.kernels = firmware.target.kernels.value
    if request.check:
        progress.stage("check")
        refuse_unfit(model, draft.kernels)
    inputs = resolve_inputs(model, request.inputs)
    draft.inputs = inputs.source
    progress.stage("plan")
    plan = _plan(model, firmware, request, draft)
    predicted = plan.min_exact_bytes if plan else _UNPLANNED_BYTES
    progress.stage("build")
    program = firmware.program(model, predicted)
    with open_rig(board, rig_options(request, firmware.interpreter)) as rig:
        _measure_and_search(rig, program, model, inputs, plan, predicted, progress, deadline, draft)


def rig_options(request: SweepRequest, interpreter: str) -> RigOptions:
    """What the request says about the rig."""
    return RigOptions(
        interpreter,
        request.transcript,
        request.rig,
        save_to=request.results / "saved-firmware" if request.save_foreign else None,
        own_mark=BOOT_LINE_PREFIX.encode(),
    )


def _plan(model: Model, firmware: Firmware, request: SweepRequest, draft: Draft) -> ArenaPlan | None:
    try:
        plan = plan_arena(model, firmware.target)
    except UnfitModelError as exc:
        if request.check:
            raise
        draft.warnings.append(f"no plan: {exc.message}")
        return None
    draft.take_plan(plan)
    return plan


def _measure_and_search(
    rig: OpenRig,
    program: Program,
    model: Model,
    inputs: ModelInputs,
    plan: ArenaPlan | None,
    predicted: int,
    progress: Progress,
    deadline: Deadline,
    draft: Draft,
) -> None:
    request = draft.request
    image = program.image
    progress.stage("flash")
    flashes = rig.probe.flash(image, deadline)
    device = Device(rig.link, on_text=progress.device_text)
    bench = Bench(
        rig.probe,
        device,
        image,
        inputs.plan,
        trial_timeout_s=request.trial_timeout_s,
        symbol_at=program.symbol_at,
    )
    progress.stage("boot")
    hello = bench.boot(deadline)
    timing = evidence.timing_of(hello, rig.board)
    draft.device = evidence.device_record(hello, timing)
    require_alignment(hello.base_alignment, rig.board)
    observation = Observation(device, hello, timing, model, inputs, deadline, compare=request.reference)
    identity = {
        "model": model.sha256,
        "board": request.board,
        "build": image.build_id,
        "inputs": inputs.source,
        "step": request.step_bytes,
    }
    with Journal(request.results / "journal", identity) as journal:
        series = TrialSeries(bench, journal, progress, deadline, request.step_bytes, predicted)
        try:
            if request.resume:
                series.resume()
            else:
                journal.clear()
            progress.stage("search")
            series.run_ample(ample_sizes(predicted, hello.capacity_bytes), observation.take)
            result = series.search()
        finally:
            _keep_trials(series, draft, device, flashes)
        _reconcile(plan, draft)
        if not result.is_monotonic:
            draft.warnings.append("the answers are not monotonic: a larger arena failed where a smaller one worked")
        journal.remove()


def _keep_trials(series: TrialSeries, draft: Draft, device: Device, flashes: int) -> None:
    draft.measured, draft.reference = series.measured, series.reference
    draft.link = evidence.link_record(device.counts)
    draft.search = evidence.search_record(
        series.result(), flashes=flashes, ample_bytes=series.ample_bytes, resumed_trials=series.resumed
    )


def _reconcile(plan: ArenaPlan | None, draft: Draft) -> None:
    if plan and draft.measured and draft.search and draft.device:
        measured = evidence.measured_arena(draft.measured, draft.search, draft.device)
        draft.reconciliation = reconcile(evidence.planned_arena(plan), measured).to_document()


def require_alignment(base_alignment: int, board: Board) -> None:
    """Sizes are told for a 16-aligned base; from another one they would be wrong by up to 15 bytes."""
    if base_alignment % 16:
        raise DeviceError(
            f"the arena's base on {board.name} is aligned to {base_alignment}, not to 16",
            remedy="rebuild the firmware: its arena must be alignas(16)",
            code="device.alignment",
        )
