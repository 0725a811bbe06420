"""Flashing on its own: a model's firmware, any ELF, or what was on the board before."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from harness.board.lab_file import RigEntry
from harness.board.record import HardwareBoard
from harness.deadline import Deadline
from harness.device.client import Device
from harness.errors import DeviceError, UsageError
from harness.firmware.elf import read_elf
from harness.model.reader import read_model
from harness.plan.arena import plan_arena
from harness.probe import saved_firmware
from harness.probe.protocol import FlashImage
from harness.probe.pyocd_probe import PyOcdProbe
from harness.rig.opening import RigOptions, open_rig
from harness.sweep.image import firmware_for
from harness.sweep.request import SweepRequest
from harness.wire.messages import BOOT_LINE_PREFIX

_HELLO_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class FlashRequest:
    """``source`` is a ``.tflite`` or an ELF; or ``restore`` a saved firmware; or only ``erase_protected``."""

    board: HardwareBoard
    rig: RigEntry | None
    source: Path | None
    restore: Path | None
    kernels: str | None
    force: bool
    save: bool
    erase_protected: bool
    results: Path
    timeout_s: float


@dataclass(frozen=True, slots=True)
class FlashOutcome:
    """``running_build_id`` is what answered after the reset; "" where the program is not ours."""

    connected: tuple[str, ...]
    programmed: bool
    second_try: bool
    verified_bytes: int
    saved: Path | None
    build_id: str
    running_build_id: str
    seconds: float


class _OnRig(Protocol):
    """The probes of `harness.rig`: a pyOCD probe, held."""

    probe: PyOcdProbe


def flash(request: FlashRequest) -> FlashOutcome:
    """Raises ProbeError, DoesNotFitError, LinkError, DeviceError; nothing is retried behind the user's back."""
    started = time.monotonic()
    image = _image(request)
    former = saved_firmware.load(request.restore) if request.restore else None
    deadline = Deadline.after(request.timeout_s)
    options = RigOptions(
        rig=request.rig,
        save_to=request.results / "saved-firmware" if request.save else None,
        own_mark=BOOT_LINE_PREFIX.encode(),
    )
    with open_rig(request.board, options) as rig:
        probe = cast(_OnRig, rig.probe).probe
        if request.erase_protected:
            probe.erase_protected(deadline)
        running = ""
        if former:
            probe.restore(former, deadline)
        elif image is not None:
            probe.flash(image, deadline, force=request.force)
            probe.reset(deadline)
            running = _hear(Device(rig.link), image, deadline) if image.build_id else ""
        report = probe.last_flash
        return FlashOutcome(
            connected=probe.connection,
            programmed=bool(report and report.programmed),
            second_try=bool(report and report.second_try),
            verified_bytes=report.verified_bytes if report else 0,
            saved=report.saved if report else None,
            build_id=image.build_id if image else "",
            running_build_id=running,
            seconds=time.monotonic() - started,
        )


def _hear(device: Device, image: FlashImage, deadline: Deadline) -> str:
    running = device.hello(deadline.sooner(_HELLO_TIMEOUT_S)).build_id.hex()
    if running != image.build_id:
        raise DeviceError(
            f"the board runs build {running}, flashed was {image.build_id}",
            remedy="reset the board by hand; if it stays, harness flash --force-flash",
            code="device.wrong_build",
        )
    return running


def _image(request: FlashRequest) -> FlashImage | None:
    if request.source is None:
        return None
    if request.source.suffix == ".tflite":
        model = read_model(request.source)
        sweep = SweepRequest(request.source, request.board.name, kernels=request.kernels, results=request.results)
        firmware = firmware_for(request.board, sweep)
        return firmware.program(model, plan_arena(model, firmware.target).min_exact_bytes).image
    from elftools.common.exceptions import ELFError

    try:
        return FlashImage("", "", read_elf(request.source).segments)
    except (OSError, ELFError) as exc:
        raise UsageError(f"cannot flash {request.source}: {exc}", remedy="name a .tflite model or an ELF") from exc
