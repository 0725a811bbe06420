"""What runs on a board: which build of TFLM, and the image that is flashed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import metadata

from harness.board.record import Board
from harness.errors import BuildError, UsageError
from harness.model.graph import Model
from harness.plan.target import Kernels, PlanTarget, target_for
from harness.probe.protocol import FlashImage
from harness.sweep.request import SweepRequest


@dataclass(frozen=True, slots=True)
class Firmware:
    """The build that runs on a board: ``target`` is what plans are made for."""

    board: Board
    target: PlanTarget
    interpreter: str

    def image(self, model: Model) -> FlashImage:
        """The host board takes the model itself; its build id names the package and the interpreter that run it."""
        package = metadata.version("tflite-micro")
        identity = f"host {package} {self.interpreter} {model.sha256}"
        return FlashImage(
            build_id=hashlib.sha256(identity.encode()).hexdigest()[:32],
            model_sha256=model.sha256,
            model_path=model.path,
        )


def firmware_for(board: Board, request: SweepRequest) -> Firmware:
    """Raises UsageError for a choice that the board's build of TFLM does not offer."""
    if board.kind != "host":
        raise BuildError(f"no firmware can be built for {board.name} yet", remedy="take --board host")
    if request.kernels not in {None, Kernels.REFERENCE.value}:
        raise UsageError(
            f"the host board has the reference kernels, not {request.kernels}",
            remedy="leave --kernels away, or name a board with a Cortex-M core",
            code="kernels.not_on_board",
        )
    if request.interpreter not in {"recording", "preserve_all"}:
        raise UsageError(f"the host board has no {request.interpreter} interpreter", remedy="recording or preserve_all")
    target = target_for(board.core, kernels=request.kernels, interpreter=request.interpreter)
    return Firmware(board, target, request.interpreter)
