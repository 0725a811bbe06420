"""What runs on a board: which build of TFLM, and the image that is flashed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Protocol

import msgspec

from harness.board.record import Board, HardwareBoard
from harness.errors import UsageError
from harness.firmware.config import FirmwareConfig, Interpreter, Transport
from harness.firmware.image import FirmwareImage
from harness.firmware.library import TflmLibrary, choose_library
from harness.model.graph import Model, joint_sha256
from harness.plan.target import Interpreter as PlanInterpreter
from harness.plan.target import Kernels, PlanTarget, target_for
from harness.probe.protocol import FlashImage
from harness.sim.host.board import require_tflm
from harness.sweep.request import BuildChoice, Strategy, SweepRequest


@dataclass(frozen=True, slots=True)
class Program:
    """What is flashed, and the ELF behind it; the host board has none."""

    image: FlashImage
    firmware: FirmwareImage | None = None

    @property
    def rtt_address(self) -> int | None:
        """Where the RTT control block is, in a firmware that talks so."""
        return self.firmware.symbols.get("_SEGGER_RTT") if self.firmware else None

    def symbol_at(self, address: int) -> str:
        """The function that the address is in, or ``""``."""
        return self.firmware.symbol_at(address) if self.firmware else ""


class Firmware(Protocol):
    """The build that runs on a board: ``target`` is what plans are made for."""

    @property
    def target(self) -> PlanTarget: ...

    @property
    def interpreter(self) -> str: ...

    def program(self, model: Model, predicted_bytes: int, others: Sequence[Model] = ()) -> Program:
        """``predicted_bytes``: the smallest arena that has to have room, by the plan. ``others`` share the arena with
        ``model``."""

    def without_reuse(self) -> Firmware:
        """The same build with preserve_all_tensors, the arena in whatever place has room."""


@dataclass(frozen=True, slots=True)
class HostFirmware:
    """The tflite-micro package on this computer."""

    target: PlanTarget
    interpreter: str

    def program(self, model: Model, predicted_bytes: int, others: Sequence[Model] = ()) -> Program:  # noqa: ARG002
        """The host board takes the model itself; its build id names the package and the interpreter that run it."""
        assert not others, "refused where the firmware was chosen"
        require_tflm()
        package = metadata.version("tflite-micro")
        identity = f"host {package} {self.interpreter} {model.sha256}"
        build_id = hashlib.sha256(identity.encode()).hexdigest()[:32]
        return Program(FlashImage(build_id, model.sha256, model_path=model.path, interpreter=self.interpreter))

    def without_reuse(self) -> HostFirmware:
        return replace(self, target=_preserving(self.target), interpreter=PlanInterpreter.PRESERVE_ALL.value)


@dataclass(frozen=True, slots=True)
class CrossFirmware:
    """A firmware built for a chip. A twin runs the very image of its board."""

    board: HardwareBoard
    target: PlanTarget
    interpreter: str
    library: TflmLibrary
    folder: Path
    build: BuildChoice
    transport: str = "uart"

    def program(self, model: Model, predicted_bytes: int, others: Sequence[Model] = ()) -> Program:
        """Build with as much arena as the first of the board's places has that holds ``predicted_bytes``."""
        from harness.firmware.layout import STATIC_DATA_LIMIT_BYTES, plan_layout

        least = self._config(max(16, predicted_bytes), self.build.arena_region)
        layout = plan_layout(self.board, least)
        capacity = max(least.capacity_bytes, layout.largest_arena_bytes(STATIC_DATA_LIMIT_BYTES)) // 16 * 16
        return self._built(model, others, self._config(capacity, layout.arena_place), "")

    def static_program(self, model: Model, arena_bytes: int, region: str, others: Sequence[Model] = ()) -> Program:
        """An image whose arena in ``region`` has this size as a constant."""
        config = replace(self._config(arena_bytes, region), static_arena=True)
        return self._built(model, others, config, f"-static-{arena_bytes}")

    def without_reuse(self) -> CrossFirmware:
        return replace(
            self,
            target=_preserving(self.target),
            interpreter=PlanInterpreter.PRESERVE_ALL.value,
            build=replace(self.build, arena_region=""),
        )

    def _config(self, capacity_bytes: int, region: str) -> FirmwareConfig:
        return FirmwareConfig(
            capacity_bytes,
            arena_region=region,
            interpreter=Interpreter(self.interpreter),
            optimise=f"-{self.build.optimise}",
            caches=self.build.caches,
            transport=Transport(self.transport),
        )

    def _built(self, model: Model, others: Sequence[Model], config: FirmwareConfig, suffix: str) -> Program:
        from harness.firmware.build import build_firmware

        caches = "" if config.caches else "-uncached"
        place = f"{config.arena_region}{config.optimise}{caches}-{self.transport}"
        sha256 = joint_sha256([model, *others])
        name = f"{self.board.name}-{sha256[:12]}-{self.target.kernels.value}-{self.interpreter}-{place}{suffix}"
        built = build_firmware(model, self.board, self.library, config, self.folder / name, others=others)
        return Program(FlashImage(built.build_id, sha256, built.segments, model.path), built)


def _preserving(target: PlanTarget) -> PlanTarget:
    return replace(target, interpreter=PlanInterpreter.PRESERVE_ALL)


def firmware_for(board: Board, request: SweepRequest) -> Firmware:
    """Raises UsageError for a choice that the board's build of TFLM does not offer, LibraryMismatchError where there is
    no library for it."""
    if not isinstance(board, HardwareBoard):
        return _host_firmware(board, request)
    from harness.firmware.registry import Registry

    interpreter = request.interpreter or PlanInterpreter.PLAIN.value
    target = target_for(board.core, kernels=request.kernels, interpreter=interpreter)
    chip = msgspec.structs.replace(board, name=board.base_name, kind="hardware")
    library = choose_library(Registry().libraries(), chip, target.kernels.value)
    folder = request.results / "firmware"
    return CrossFirmware(chip, target, interpreter, library, folder, request.build, request.transport)


def _host_firmware(board: Board, request: SweepRequest) -> HostFirmware:
    if request.others:
        raise UsageError(
            "the host board runs one model at a time: the package tflite-micro gives each its own arena",
            remedy="name a board or twin, or ask the plan: harness plan --shared-arena",
            code="shared.not_on_board",
        )
    if request.certify or request.strategy is Strategy.REFLASH or request.build != BuildChoice():
        raise UsageError(
            "the host board has no firmware that could be built or flashed in another way",
            remedy="leave --certify, --strategy, --arena-region, --optimise and --cache away, or name a board or twin",
            code="build.not_on_board",
        )
    if request.kernels not in {None, Kernels.REFERENCE.value}:
        raise UsageError(
            f"the host board has the reference kernels, not {request.kernels}",
            remedy="take the reference kernels (they are its own choice), or a board with a Cortex-M core",
            code="kernels.not_on_board",
        )
    interpreter = request.interpreter or PlanInterpreter.RECORDING.value
    if interpreter == PlanInterpreter.PLAIN.value:
        raise UsageError(
            "the host board has no plain interpreter: the package tflite-micro records or preserves all tensors",
            remedy="take --interpreter recording or preserve_all, or plan with harness plan --interpreter plain",
            code="interpreter.not_on_board",
        )
    target = target_for(board.core, kernels=request.kernels, interpreter=interpreter)
    return HostFirmware(target, interpreter)
