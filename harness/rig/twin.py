"""A twin as a rig: plugged in on this process's own desk, opened through pyOCD and a pseudo-terminal as a board is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
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
from harness.rig.lock import RigLock
from harness.rig.options import RigOptions


def open_twin(board: HardwareBoard, options: RigOptions) -> tuple[Probe, Link]:
    """A twin with the entry's faults; one behind a server (``harness sim serve``) is opened as hardware is.

    A fresh twin has no firmware that could be lost; one whose flash is kept (HARNESS_SIM_STATE) may have somebody's.
    """
    entry = options.rig
    if entry and entry.is_remote:
        return open_hardware(board, replace(options, save_to=None))
    from harness.probe.session import import_pyocd
    from harness.sim import desk, injection

    import_pyocd()
    state = desk.kept_flash(board)
    locks = ExitStack()
    try:
        for lock in twin_locks(entry, state):
            locks.callback(lock.release)
        uid = desk.plug(board, pace=bool(entry and entry.pace))
        locks.callback(desk.unplug, uid)
        twin = desk.twin(uid)
        for text in entry.faults if entry else ():
            injection.inject(text, twin)
        rig = entry.name if entry else board.name
        kept = options.save_to if state else None
        opened = PyOcdProbe(board, uid, rig=rig, save_to=kept, own_mark=options.own_mark)
        probe = HeldProbe(opened, locks.close)
        if options.rtt_address is not None:
            return probe, RttLink(opened, options.rtt_address)
        if not options.talks:
            return probe, NoLink()
        return probe, SerialLink(twin.endpoint.url, board.uart.baud, find=lambda: twin.endpoint.url)
    except BaseException:
        locks.close()
        raise


def twin_locks(entry: RigEntry | None, state: Path | None) -> Iterator[RigLock]:
    """Of a rig that a lab file names, and of the flash that is kept. A twin made on demand belongs to its process."""
    if entry and entry.lab:
        yield RigLock(f"rig {entry.name} (twin)", place=entry.lab)
    if state:
        yield RigLock(f"the flash in {state}", place=str(state.resolve()))
