"""A twin as a rig: plugged in on this process's own desk, opened through pyOCD and a pseudo-terminal as a board is."""

from __future__ import annotations

from dataclasses import dataclass

from harness.board.lab_file import RigEntry
from harness.board.record import HardwareBoard
from harness.deadline import Deadline
from harness.link.protocol import Link
from harness.link.rtt_link import RttLink
from harness.link.serial_link import SerialLink
from harness.probe.protocol import FlashImage, Probe
from harness.probe.pyocd_probe import PyOcdProbe
from harness.rig.hardware import open_hardware


@dataclass(frozen=True, slots=True)
class PluggedProbe:
    """The probe of a twin that is thrown away when it is closed. Implements ``Probe``."""

    probe: PyOcdProbe
    uid: str

    def flash(self, image: FlashImage, deadline: Deadline) -> int:
        return self.probe.flash(image, deadline)

    def reset(self, deadline: Deadline) -> None:
        self.probe.reset(deadline)

    def read_memory(self, address: int, size: int, deadline: Deadline) -> bytes:
        return self.probe.read_memory(address, size, deadline)

    def close(self) -> None:
        from harness.sim import desk

        self.probe.close()
        desk.unplug(self.uid)


def open_twin(
    board: HardwareBoard, entry: RigEntry | None, own_mark: bytes, rtt_address: int | None = None
) -> tuple[Probe, Link]:
    """A fresh twin with the entry's faults; one behind a server (``harness sim serve``) is opened as hardware is."""
    if entry and entry.is_remote:
        return open_hardware(board, entry, None, own_mark, rtt_address)
    from harness.probe.session import import_pyocd
    from harness.sim import desk, injection

    import_pyocd()
    uid = desk.plug(board, pace=bool(entry and entry.pace))
    try:
        twin = desk.twin(uid)
        for text in entry.faults if entry else ():
            injection.inject(text, twin)
        probe = PluggedProbe(PyOcdProbe(board, uid, rig=entry.name if entry else board.name, own_mark=own_mark), uid)
        if rtt_address is not None:
            return probe, RttLink(probe.probe, rtt_address)
        return probe, SerialLink(twin.endpoint.url, board.uart.baud, find=lambda: twin.endpoint.url)
    except BaseException:
        desk.unplug(uid)
        raise
