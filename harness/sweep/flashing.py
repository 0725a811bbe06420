"""Flashing on its own: a model's firmware, any ELF, or what was on the board before."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from harness.board.lab_file import RigEntry
from harness.board.record import HardwareBoard
from harness.deadline import Deadline
from harness.device.bench import Bench
from harness.device.client import Device
from harness.errors import DeviceError, LinkError
from harness.firmware.flashable import read_flashable
from harness.model.reader import read_model
from harness.plan.arena import plan_arena
from harness.probe import saved_firmware
from harness.probe.protocol import FlashImage
from harness.probe.pyocd_probe import PyOcdProbe
from harness.rig.opening import OpenRig, open_rig, require_rig
from harness.rig.options import RigOptions
from harness.sweep.boot import first_boot
from harness.sweep.image import firmware_for
from harness.sweep.request import SweepRequest
from harness.wire.input_plan import InputPlan
from harness.wire.messages import BOOT_LINE_PREFIX

_BOOT_TIMEOUT_S = 5.0


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
    """``running_build_id`` is what answered after the reset; "" where it was not asked, and ``not_asked`` says why.
    ``erased``: a protected chip was erased whole, before anything else."""

    erased: bool
    connected: tuple[str, ...]
    programmed: bool
    second_try: bool
    verified_bytes: int
    saved: Path | None
    build_id: str
    running_build_id: str
    not_asked: str
    seconds: float


@dataclass(frozen=True, slots=True)
class _Source:
    """What is flashed; ``foreign`` says why it is not asked what it is, "" for a firmware of ours."""

    image: FlashImage
    rtt_address: int | None = None
    foreign: str = ""
    warnings: tuple[str, ...] = ()


class _OnRig(Protocol):
    """The probes of `harness.rig`: a pyOCD probe, held."""

    probe: PyOcdProbe


def flash(request: FlashRequest, tell: Callable[[str], None]) -> FlashOutcome:
    """``tell`` gets at once what cannot be undone, whatever fails after it.

    Raises UsageError, ProbeError, DoesNotFitError, LinkError, DeviceError; nothing is retried behind the user's back.
    """
    started = time.monotonic()
    source = _source(request)
    for warning in source.warnings if source else ():
        tell(f"warning: {warning}")
    former = saved_firmware.load(request.restore) if request.restore else None
    deadline = Deadline.after(request.timeout_s)
    options = RigOptions(
        rig=request.rig,
        save_to=request.results / "saved-firmware" if request.save else None,
        own_mark=BOOT_LINE_PREFIX.encode(),
        rtt_address=source.rtt_address if source else None,
        talks=source is not None and not source.foreign,
    )
    with open_rig(request.board, options) as rig:
        probe = cast(_OnRig, rig.probe).probe
        erased = request.erase_protected and probe.erase_protected(deadline)
        if request.erase_protected:
            tell(
                f"rig {probe.rig}: the protected chip was erased whole: program, data and settings are gone"
                if erased
                else f"rig {probe.rig}: the chip is not protected: it was not erased"
            )
        running = not_asked = ""
        if former:
            probe.restore(former, deadline)
            not_asked = "a firmware that was saved is none of harness"
        elif source is not None:
            probe.flash(source.image, deadline, force=request.force)
            if source.foreign:
                probe.reset(deadline)
                not_asked = source.foreign
            else:
                running = _running(rig, probe, source.image, deadline)
        report = probe.last_flash
        return FlashOutcome(
            erased=erased,
            connected=probe.connection,
            programmed=bool(report and report.programmed),
            second_try=bool(report and report.second_try),
            verified_bytes=report.verified_bytes if report else 0,
            saved=report.saved if report else None,
            build_id=source.image.build_id if source else "",
            running_build_id=running,
            not_asked=not_asked,
            seconds=time.monotonic() - started,
        )


def _running(rig: OpenRig, probe: PyOcdProbe, image: FlashImage, deadline: Deadline) -> str:
    """The build id that answers after a reset. What is wrong with device or line says which rig, and that the image is
    on the chip all the same."""
    bench = Bench(rig.probe, Device(rig.link), image, InputPlan(()), trial_timeout_s=_BOOT_TIMEOUT_S)
    try:
        return first_boot(bench, rig, deadline).build_id.hex()
    except (LinkError, DeviceError) as exc:
        report = probe.last_flash
        assert report is not None, "it was flashed just now"
        state = "was programmed" if report.programmed else "was there already"
        kind = LinkError if isinstance(exc, LinkError) else DeviceError
        raise kind(
            f"rig {probe.rig}: {exc.message}; the image {state} and is verified ({report.verified_bytes:,} bytes)",
            remedy=exc.remedy,
            code=exc.code,
        ) from exc


def _source(request: FlashRequest) -> _Source | None:
    if request.source is None:
        return None
    if request.source.suffix == ".tflite":
        model = read_model(request.source)
        sweep = SweepRequest(request.source, request.board.name, kernels=request.kernels, results=request.results)
        firmware = firmware_for(request.board, sweep)
        require_rig(request.board, request.rig)
        return _Source(firmware.program(model, plan_arena(model, firmware.target).min_exact_bytes).image)
    elf = read_flashable(request.source, request.board)
    return _Source(FlashImage(elf.build_id, elf.model_sha256, elf.segments), elf.rtt_address, elf.foreign, elf.warnings)
