"""The debug probe of a board, through pyOCD: identify, save, program, read back, reset, read memory. Owner of pyocd."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.board.record import HardwareBoard
from harness.deadline import Deadline
from harness.errors import DoesNotFitError, ProbeError, UsageError
from harness.probe import protection, saved_firmware
from harness.probe.protocol import FlashImage
from harness.probe.session import OpenSession, close_session, open_session
from harness.probe.trouble import Place, translate

log = logging.getLogger(__name__)

_DHCSR, _RUN_WITHOUT_DEBUG = 0xE000_EDF0, 0xA05F_0000
_READ_CHUNK = 16384
#: What is said of the flash where the time was over.
_UNTOUCHED = "nothing was written to the board"
_HALF_WRITTEN = "its flash may be half written"
_NOT_READ_BACK = "it is programmed, and not read back to its end"
#: A firmware of ours has its mark behind the vectors. What remains of one further up says nothing of what is there now;
#: no chip erases less than this at once.
_MARK_WITHIN = 2048


@dataclass(frozen=True, slots=True)
class FlashReport:
    """What `PyOcdProbe.flash` did. ``saved`` is where the former firmware was kept, if it was."""

    programmed: bool
    verified_bytes: int = 0
    second_try: bool = False
    saved: Path | None = None


class PyOcdProbe:
    """Implements ``Probe``. The session is opened at first use and kept; the core runs free of debug in between.

    ``save_to`` is where a firmware that is not ours is kept before it is overwritten; None for labs that do not care.
    ``own_mark``: bytes that every image of ours has behind its vectors.
    """

    def __init__(
        self,
        board: HardwareBoard,
        probe_uid: str,
        *,
        rig: str,
        save_to: Path | None = None,
        own_mark: bytes = b"",
        operation_timeout_s: float = 10.0,
    ) -> None:
        self.board = board
        self.probe_uid = probe_uid
        self.rig = rig
        self.save_to = save_to
        self.own_mark = own_mark
        self.operation_timeout_s = operation_timeout_s
        self.last_flash: FlashReport | None = None
        self._open: OpenSession | None = None

    # --- connecting -------------------------------------------------------------------------------------------

    def connect(self, deadline: Deadline) -> OpenSession:
        """Open the session, once, and make sure that the chip is the one of the board file and may be read."""
        if self._open is None:
            opened = open_session(self.board, self.probe_uid, self.rig, deadline, self.operation_timeout_s)
            try:
                with self._step("identifying the chip", opened.session):
                    self._check_identity(opened.session)
            except BaseException:
                close_session(opened.session)
                raise
            self._open = opened
        return self._open

    @property
    def connection(self) -> tuple[str, ...]:
        """Which ways of connecting were tried, the last one with success; empty before `connect`."""
        return self._open.attempts if self._open else ()

    def erase_protected(self, deadline: Deadline) -> bool:
        """Erase a protected nRF whole, which opens it; False where it is open already.

        The caller has the user's consent. Raises ProtectedChipError for an STM32: that takes a change of its option
        bytes, which harness never writes.
        """
        if self._open is not None:
            return False
        opened = open_session(self.board, self.probe_uid, self.rig, deadline, self.operation_timeout_s)
        try:
            with self._step("erasing the protected chip", opened.session):
                locked = protection.is_locked(opened.session)
                if locked:
                    protection.erase_everything(opened.session)
                else:
                    protection.check_readable(self.board, opened.session, self.rig)
                return locked
        finally:
            close_session(opened.session)

    def _check_identity(self, session: Any) -> None:
        protection_first = protection.is_locked(session)
        if protection_first:
            raise protection.nrf_protected(self.rig)
        expected = self.board.id_code
        found = int(session.target.read32(expected.address))
        if found & expected.mask != expected.value:
            raise ProbeError(
                f"rig {self.rig}: the chip's id is 0x{found & expected.mask:x}, "
                f"a {self.board.chip} has 0x{expected.value:x}; nothing was written",
                remedy="check which board this probe is on (harness lab discover), or name the right --board",
                code="probe.wrong_chip",
            )
        protection.check_readable(self.board, session, self.rig)

    @contextmanager
    def _step(self, step: str, session: Any = None) -> Iterator[None]:
        """Foreign exceptions inside become ProbeError with rig and step."""
        try:
            yield
        except (ProbeError, DoesNotFitError, KeyboardInterrupt):
            raise
        except Exception as exc:  # pyOCD's tree, USB back ends, and bugs of theirs
            failed = translate(exc, Place(self.rig, step), detail=self._state_after(exc, session))
            if failed.code in ("probe.unplugged", "probe.no_target"):
                self.close()
            raise failed from exc

    def _state_after(self, exc: Exception, session: Any) -> str:
        if session is None or type(exc).__name__ not in ("FlashEraseFailure", "FlashProgramFailure", "FlashFailure"):
            return ""
        return protection.controller_state(self.board, session)

    # --- flash ------------------------------------------------------------------------------------------------

    def flash(self, image: FlashImage, deadline: Deadline, *, force: bool = False) -> int:
        """Program the image, read it back and compare it whole. Leaves the core halted.

        Returns how often it programmed: an image that is on the chip already is not programmed again, unless ``force``.
        Raises ProbeError ``flash.timeout`` when the deadline passes on the way, which the next flash makes up for.
        """
        self._check_segments(image)
        session = self.connect(deadline).session
        with self._step("halting the core", session):
            session.target.halt()
        size = sum(len(data) for _, data in image.segments)
        if not force and self._first_difference(session, image, deadline, _UNTOUCHED) is None:
            self.last_flash = FlashReport(programmed=False, verified_bytes=size)
            return 0
        saved = self._save_foreign(session, deadline)
        self._program(session, image, deadline, smart=not force)
        second_try = self._first_difference(session, image, deadline, _NOT_READ_BACK) is not None
        if second_try:
            log.warning("%s: read-back differs after programming; programming once more, every sector", self.rig)
            self._program(session, image, deadline, smart=False)
            self._check_read_back(session, image, deadline)
        self.last_flash = FlashReport(True, size, second_try, saved)
        return 1 + second_try

    def _check_segments(self, image: FlashImage) -> None:
        flash = self.board.flash
        for address, data in image.segments:
            if not flash.address <= address or address + len(data) > flash.end:
                raise DoesNotFitError(
                    f"the image has {len(data):,} bytes at 0x{address:08x}, outside the flash of "
                    f"{self.board.chip} (0x{flash.address:08x} to 0x{flash.end - 1:08x})",
                    remedy="build for this board, or take a smaller model",
                    code="flash.outside",
                )
        if not image.segments:
            raise ProbeError(f"rig {self.rig}: the image is empty", remedy="build it first", code="flash.empty")

    def _program(self, session: Any, image: FlashImage, deadline: Deadline, *, smart: bool) -> None:
        """The deadline is looked at between two sectors or pages: the controller is at rest there."""
        from pyocd.flash.loader import MemoryLoader

        step = "programming"
        self._check_time(deadline, step, _UNTOUCHED)
        with self._step(step, session):
            session.target.reset_and_halt()
            loader = MemoryLoader(
                session,
                progress=lambda _share: self._check_time(deadline, step, _HALF_WRITTEN),
                chip_erase=self.board.pyocd.erase,
                smart_flash=smart,
                trust_crc=False,
            )
            for address, data in image.segments:
                loader.add_data(address, data)
            try:
                loader.commit()
            except ProbeError:
                _lock_flash(session)
                raise

    def _check_time(self, deadline: Deadline, step: str, state: str) -> None:
        if deadline.passed:
            raise ProbeError(
                f"rig {self.rig}, {step}: the time for it is over; {state}",
                remedy="give it more time (--timeout); the next flash programs what is missing",
                code="flash.timeout",
            )

    def _first_difference(self, session: Any, image: FlashImage, deadline: Deadline, state: str) -> int | None:
        """Address of the first byte that is not the image's. ``state`` of the flash, in case that there is no time."""
        with self._step("reading back", session):
            for address, data in image.segments:
                for start in range(0, len(data), _READ_CHUNK):
                    self._check_time(deadline, "reading back", state)
                    expected = data[start : start + _READ_CHUNK]
                    found = bytes(session.target.read_memory_block8(address + start, len(expected)))
                    if found != expected:
                        return address + start + next(i for i, byte in enumerate(expected) if found[i] != byte)
        return None

    def _check_read_back(self, session: Any, image: FlashImage, deadline: Deadline) -> None:
        bad = self._first_difference(session, image, deadline, _NOT_READ_BACK)
        if bad is None:
            return
        with self._step("reading back", session):
            found = int(session.target.read_memory_block8(bad, 1)[0])
        segment = next(s for s in image.segments if s[0] <= bad < s[0] + len(s[1]))
        expected = segment[1][bad - segment[0]]
        raise ProbeError(
            f"rig {self.rig}: flash at 0x{bad:08x} (sector {self._sector_of(bad)}) reads 0x{found:02x} "
            f"where 0x{expected:02x} was programmed, twice",
            remedy="the flash of this board is worn out or the probe drops data: try another cable, then another board",
            code="flash.verify_failed",
        )

    def _sector_of(self, address: int) -> int:
        offset, index = address - self.board.flash.address, 0
        for run in self.board.flash_sectors.runs:
            for _ in range(run.count):
                if offset < run.size_bytes:
                    return index
                offset -= run.size_bytes
                index += 1
        raise ValueError(f"0x{address:08x} is not in flash")

    # --- other people's firmware ------------------------------------------------------------------------------

    def _save_foreign(self, session: Any, deadline: Deadline) -> Path | None:
        """Keep what is on the chip, where it is neither blank nor ours."""
        if self.save_to is None:
            return None
        flash = self.board.flash
        with self._step("reading the firmware that is on the board", session):
            data = self._read_flash(session, deadline)
            chip_id = int(session.target.read32(self.board.id_code.address))
        if not data.strip(b"\xff") or (self.own_mark and self.own_mark in data[:_MARK_WITHIN]):
            return None
        kept = saved_firmware.SavedFirmware(self.board.name, self.probe_uid, chip_id, flash.address, data)
        return saved_firmware.save(kept, self.save_to, self.rig)

    def _read_flash(self, session: Any, deadline: Deadline) -> bytes:
        flash, data = self.board.flash, b""
        for start in range(0, flash.size_bytes, _READ_CHUNK):
            self._check_time(deadline, "reading the firmware that is on the board", _UNTOUCHED)
            data += bytes(session.target.read_memory_block8(flash.address + start, _READ_CHUNK))
        return data

    def restore(self, kept: saved_firmware.SavedFirmware, deadline: Deadline) -> None:
        """Put a saved firmware back, read it back, and run it."""
        flash = self.board.flash
        if kept.board.removeprefix("sim:") != self.board.base_name or len(kept.data) != flash.size_bytes:
            raise ProbeError(
                f"rig {self.rig}: the file is of a {kept.board}, the board is a {self.board.name}",
                remedy="restore it to the board that it was read from",
                code="flash.wrong_board",
            )
        if kept.address != flash.address:
            raise UsageError(
                f"the saved firmware is of 0x{kept.address:08x}, the flash of {self.board.chip} begins at "
                f"0x{flash.address:08x}",
                remedy="the .json beside it was changed: take another copy of both files",
                code="flash.not_saved",
            )
        session = self.connect(deadline).session
        image = FlashImage("", "", ((kept.address, kept.data),))
        self._program(session, image, deadline, smart=True)
        self._check_read_back(session, image, deadline)
        self.last_flash = FlashReport(True, len(kept.data))
        self.reset(deadline)

    # --- reset, memory, end -----------------------------------------------------------------------------------

    def reset(self, deadline: Deadline) -> None:
        """Reset and run, with halting debug off: a breakpoint instruction must fault, as on a board without probe."""
        session = self.connect(deadline).session
        with self._step("resetting", session):
            session.target.reset()
            session.target.write32(_DHCSR, _RUN_WITHOUT_DEBUG)
            session.probe.flush()

    def read_memory(self, address: int, size: int, deadline: Deadline) -> bytes:
        session = self.connect(deadline).session
        with self._step(f"reading {size} bytes at 0x{address:08x}", session):
            return bytes(session.target.read_memory_block8(address, size))

    def write_memory(self, address: int, data: bytes, deadline: Deadline) -> None:
        session = self.connect(deadline).session
        with self._step(f"writing {len(data)} bytes at 0x{address:08x}", session):
            session.target.write_memory_block8(address, data)

    def halt(self, deadline: Deadline) -> None:
        session = self.connect(deadline).session
        with self._step("halting the core", session):
            session.target.halt()

    def close(self) -> None:
        opened, self._open = self._open, None
        if opened is not None:
            close_session(opened.session)


def _lock_flash(session: Any) -> None:
    """End what was begun between two sectors: unload the flash algorithm, which locks the controller."""
    for region in session.target.memory_map:
        if region.is_flash and region.flash is not None:
            region.flash.cleanup()
