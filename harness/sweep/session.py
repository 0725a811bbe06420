"""One model, or several in one arena, on one opened rig: what a sweep, a measurement or a soak needs to begin."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from harness.board.catalogue import load_board
from harness.board.record import Board, HardwareBoard
from harness.deadline import Deadline
from harness.device.bench import Bench, TrialRun
from harness.device.client import Device
from harness.device.line_speed import LineSpeed
from harness.errors import DeviceError, HarnessError, UnfitModelError
from harness.inputs import ModelInputs, resolve_inputs
from harness.model.checks import refuse_unfit
from harness.model.graph import Model, joint_sha256
from harness.model.reader import read_model
from harness.plan.arena import ArenaPlan
from harness.plan.shared import SharedPlan, plan_models
from harness.rig.opening import OpenRig, open_rig, require_rig
from harness.rig.options import RigOptions
from harness.sweep import evidence
from harness.sweep.agreement import OutputComparison
from harness.sweep.ample import ample_failure, ample_run, ample_sizes, tflm_log
from harness.sweep.boot import meet
from harness.sweep.draft import Draft
from harness.sweep.image import Firmware, Program, firmware_for
from harness.sweep.observation import Observation
from harness.sweep.request import Progress, Strategy, SweepRequest
from harness.sweep.vectors import vectors_for
from harness.trial import Outcome
from harness.units import align_down
from harness.wire import messages as wire
from harness.wire.messages import BOOT_LINE_PREFIX

#: Where the search starts when there is no plan (a model that the planner refuses, with --no-check).
_UNPLANNED_BYTES = 16 * 1024
_LAST_RESET_S = 5.0


@dataclass(slots=True)
class Session:
    """The program is flashed and has answered its hello. ``models`` share its arena; usually there is one. ``flashes``
    counts programmings of the board."""

    request: SweepRequest
    progress: Progress
    draft: Draft
    deadline: Deadline
    models: tuple[Model, ...]
    firmware: Firmware
    inputs: ModelInputs
    plan: ArenaPlan | SharedPlan | None
    rig: OpenRig
    program: Program
    device: Device
    bench: Bench
    hello: wire.Hello
    flashes: int

    @property
    def board(self) -> Board:
        return self.rig.board

    @property
    def model(self) -> Model:
        """The only one, or the first."""
        return self.models[0]

    @property
    def others(self) -> tuple[Model, ...]:
        """Those that share the arena with the first."""
        return self.models[1:]

    @property
    def timing(self) -> str:
        """What the device's counts are counts of."""
        return evidence.timing_of(self.hello, self.board)

    @property
    def predicted_bytes(self) -> int:
        return self.plan.min_exact_bytes if self.plan else _UNPLANNED_BYTES

    @property
    def observation(self) -> Observation:
        """What is looked at after the ample run."""
        request = self.request
        outputs = None
        if request.reference:
            vectors = vectors_for(self.models, request.inputs)
            outputs = OutputComparison(
                self.bench, self.hello, self.models, vectors, self.deadline, request.tolerance_steps
            )
        return Observation(self.device, self.hello, self.timing, self.deadline, outputs)

    @property
    def identity(self) -> dict[str, object]:
        """What trials must have in common to be trials of the same search."""
        return {
            "model": joint_sha256(self.models),
            "board": self.request.board,
            "build": self.program.image.build_id,
            "inputs": self.inputs.source,
            "step": self.request.step_bytes,
            "strategy": self.request.strategy.value,
        }

    def ample_sizes(self) -> Iterator[int]:
        if self.request.strategy is Strategy.REFLASH:
            return iter([align_down(self.hello.capacity_bytes, 16)])
        return ample_sizes(self.predicted_bytes, self.hello.capacity_bytes)

    def restore_program(self) -> None:
        """Put the session's own program back on the board, after others were on it."""
        self.flashes += self.rig.probe.flash(self.program.image, self.deadline)

    def run_ample(self) -> tuple[TrialRun, int]:
        """The ample run and its size, without a search around it. Raises the reason when the model does not run."""
        run = ample_run(self.bench, self.ample_sizes(), self.deadline)
        if run.trial.outcome is Outcome.WORKS:
            return run, run.trial.arena_bytes
        raise ample_failure(run, tflm_log(self.device, self.deadline) if run.report else "")


@contextmanager
def open_session(request: SweepRequest, progress: Progress, draft: Draft) -> Iterator[Session]:
    """Read, check, plan, build, flash, boot. What becomes known on the way is in the draft, whatever fails later."""
    deadline = Deadline.after(request.timeout_s)
    progress.stage("read")
    models = tuple(read_model(path, lenient=request.check) for path in (request.model_path, *request.others))
    draft.identify(models)
    board = load_board(request.board, request.boards_dirs)
    firmware = firmware_for(board, request)
    draft.kernels = firmware.target.kernels.value
    if request.check:
        progress.stage("check")
        for model in models:
            refuse_unfit(model, draft.kernels)
    inputs = resolve_inputs(models[0], request.inputs, models[1:])
    draft.inputs = inputs.source
    progress.stage("plan")
    plan = _plan(models, firmware, request, draft)
    require_rig(board, request.rig)
    progress.stage("build")
    program = firmware.program(models[0], plan.min_exact_bytes if plan else _UNPLANNED_BYTES, models[1:])
    with open_rig(board, rig_options(request, firmware.interpreter, program.rtt_address)) as rig:
        progress.stage("flash")
        flashes = rig.probe.flash(program.image, deadline)
        device = Device(rig.link, on_text=progress.device_text)
        bench = bench_for(rig, device, program, inputs, request)
        progress.stage("boot")
        hello, about = meet(bench, rig, deadline, draft.warnings)
        draft.device = evidence.device_record(hello, evidence.timing_of(hello, board), about.struct_sizes)
        draft.environment = about.environment
        require_alignment(hello.base_alignment, board)
        session = Session(
            request,
            progress,
            draft,
            deadline,
            models,
            firmware,
            inputs,
            plan,
            rig,
            program,
            device,
            bench,
            hello,
            flashes,
        )
        try:
            yield session
        except KeyboardInterrupt:
            _leave_running(rig)
            raise


def _leave_running(rig: OpenRig) -> None:
    """Whoever interrupts finds the board as after a reset, not halted in the middle of something."""
    with contextlib.suppress(HarnessError):
        rig.probe.reset(Deadline.after(_LAST_RESET_S))


def bench_for(rig: OpenRig, device: Device, program: Program, inputs: ModelInputs, request: SweepRequest) -> Bench:
    """The bench that runs trials of one program."""
    return Bench(
        rig.probe,
        device,
        program.image,
        inputs.plan,
        trial_timeout_s=request.trial_timeout_s,
        symbol_at=program.symbol_at,
        line_speed=_line_speed(rig),
    )


def _line_speed(rig: OpenRig) -> LineSpeed | None:
    if rig.line is None or not isinstance(rig.board, HardwareBoard):
        return None
    return LineSpeed(rig.line, rig.board.uart.baud, rig.board.uart.max_baud)


def rig_options(request: SweepRequest, interpreter: str, rtt_address: int | None = None) -> RigOptions:
    """What the request says about the rig."""
    return RigOptions(
        interpreter,
        request.transcript,
        request.rig,
        save_to=request.results / "saved-firmware" if request.save_foreign else None,
        own_mark=BOOT_LINE_PREFIX.encode(),
        rtt_address=rtt_address,
    )


def _plan(
    models: tuple[Model, ...], firmware: Firmware, request: SweepRequest, draft: Draft
) -> ArenaPlan | SharedPlan | None:
    try:
        plan = plan_models(models, firmware.target)
    except UnfitModelError as exc:
        if request.check:
            raise
        draft.warnings.append(f"no plan: {exc.message}")
        return None
    draft.take_plan(plan)
    return plan


def require_alignment(base_alignment: int, board: Board) -> None:
    """Sizes are told for a 16-aligned base; from another one they would be wrong by up to 15 bytes."""
    if base_alignment % 16:
        raise DeviceError(
            f"the arena's base on {board.name} is aligned to {base_alignment}, not to 16",
            remedy="rebuild the firmware: its arena must be alignas(16)",
            code="device.alignment",
        )
