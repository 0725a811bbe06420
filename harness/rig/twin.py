"""A twin as a rig: plugged in on this process's own desk, opened through pyOCD and a pseudo-terminal as a board is."""

from __future__ import annotations

from harness.board.lab_file import RigEntry
from harness.board.record import HardwareBoard
from harness.link.protocol import Link
from harness.link.rtt_link import RttLink
from harness.link.serial_link import SerialLink
from harness.probe.protocol import Probe
from harness.probe.pyocd_probe import PyOcdProbe
from harness.rig.hardware import HeldProbe, open_hardware


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
        rig = entry.name if entry else board.name
        probe = HeldProbe(PyOcdProbe(board, uid, rig=rig, own_mark=own_mark), lambda: desk.unplug(uid))
        if rtt_address is not None:
            return probe, RttLink(probe.probe, rtt_address)
        return probe, SerialLink(twin.endpoint.url, board.uart.baud, find=lambda: twin.endpoint.url)
    except BaseException:
        desk.unplug(uid)
        raise
