"""A twin as a rig: plugged in on this process's own desk, opened through pyOCD and a pseudo-terminal as a board is."""

from __future__ import annotations

from pathlib import Path

from harness.board.lab_file import RigEntry
from harness.board.record import HardwareBoard
from harness.link.no_link import NoLink
from harness.link.protocol import Link
from harness.link.rtt_link import RttLink
from harness.link.serial_link import SerialLink
from harness.probe.protocol import Probe
from harness.probe.pyocd_probe import PyOcdProbe
from harness.rig.hardware import HeldProbe, open_hardware


def open_twin(
    board: HardwareBoard,
    entry: RigEntry | None,
    save_to: Path | None,
    own_mark: bytes,
    rtt_address: int | None = None,
    *,
    talks: bool = True,
) -> tuple[Probe, Link]:
    """A twin with the entry's faults; one behind a server (``harness sim serve``) is opened as hardware is.

    A fresh twin has no firmware that could be lost; one whose flash is kept (HARNESS_SIM_STATE) may have somebody's.
    """
    if entry and entry.is_remote:
        return open_hardware(board, entry, None, own_mark, rtt_address, talks=talks)
    from harness.probe.session import import_pyocd
    from harness.sim import desk, injection

    import_pyocd()
    uid = desk.plug(board, pace=bool(entry and entry.pace))
    try:
        twin = desk.twin(uid)
        for text in entry.faults if entry else ():
            injection.inject(text, twin)
        rig = entry.name if entry else board.name
        kept = save_to if desk.keeps_flash() else None
        probe = HeldProbe(PyOcdProbe(board, uid, rig=rig, save_to=kept, own_mark=own_mark), lambda: desk.unplug(uid))
        if rtt_address is not None:
            return probe, RttLink(probe.probe, rtt_address)
        if not talks:
            return probe, NoLink()
        return probe, SerialLink(twin.endpoint.url, board.uart.baud, find=lambda: twin.endpoint.url)
    except BaseException:
        desk.unplug(uid)
        raise
