"""A real board: find its probe and its serial port, lock both, open them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.board.lab_file import RigEntry
from harness.board.record import HardwareBoard
from harness.deadline import Deadline
from harness.errors import ProbeError
from harness.link.no_link import NoLink
from harness.link.ports import list_ports
from harness.link.protocol import Link
from harness.link.rtt_link import RttLink
from harness.link.serial_link import SerialLink
from harness.probe.attached import attached_probes
from harness.probe.protocol import FlashImage, Probe
from harness.probe.pyocd_probe import PyOcdProbe
from harness.probe.usb import usb_probes
from harness.rig.lock import RigLock
from harness.rig.options import RigOptions
from harness.rig.pairing import choose_probe, find_probe, port_of, refuse_hidden, refuse_swapped

_USB = "usb:"


@dataclass(frozen=True, slots=True)
class HeldProbe:
    """A probe that something is held for until it is closed: a rig's lock, a plugged twin. Implements ``Probe``."""

    probe: PyOcdProbe
    release: Callable[[], object]

    def flash(self, image: FlashImage, deadline: Deadline) -> int:
        return self.probe.flash(image, deadline)

    def reset(self, deadline: Deadline) -> None:
        self.probe.reset(deadline)

    def read_memory(self, address: int, size: int, deadline: Deadline) -> bytes:
        return self.probe.read_memory(address, size, deadline)

    def close(self) -> None:
        try:
            self.probe.close()
        finally:
            self.release()


def open_hardware(board: HardwareBoard, options: RigOptions) -> tuple[Probe, Link]:
    """Raises ProbeError (absent, busy), UsageError (a choice is needed) or LinkError (the port does not open)."""
    entry = options.rig
    uid = probe_uid(board, entry)
    rig = entry.name if entry else board.name
    lock = RigLock(f"rig {rig} (probe {uid})")
    try:
        opened = PyOcdProbe(board, uid, rig=rig, save_to=options.save_to, own_mark=options.own_mark)
        probe = HeldProbe(opened, lock.release)
        if options.rtt_address is not None:
            return probe, RttLink(opened, options.rtt_address)
        if not options.talks:
            return probe, NoLink()
        url = serial_url(uid, entry)
        return probe, SerialLink(url, board.uart.baud, find=port_finder(uid, entry))
    except BaseException:
        lock.release()
        raise


def probe_uid(board: HardwareBoard, entry: RigEntry | None) -> str:
    """The id of the probe: the entry's, or that of the only such board on the desk."""
    if entry and entry.is_remote:
        return entry.probe
    probes = attached_probes()
    try:
        return find_probe(entry.probe, probes).uid if entry and entry.probe else choose_probe(board, probes).uid
    except ProbeError:
        refuse_hidden(probes, usb_probes())
        raise


def serial_url(uid: str, entry: RigEntry | None) -> str:
    """What pyserial opens: the entry's port, or the one with the probe's own USB serial number. Raises ProbeError for
    the port of another board's probe."""
    named: Any = entry.port if entry else ""
    if named and not named.startswith(_USB):
        return str(named)
    port = port_of(named.removeprefix(_USB) or uid, list_ports())
    if named and entry and not entry.is_remote:
        refuse_swapped(uid, port, attached_probes())
    return port.device


def port_finder(uid: str, entry: RigEntry | None) -> Callable[[], str] | None:
    """How the port is found after it vanished: again by its USB serial number, or path. None for one of the network."""
    if entry and "://" in entry.port:
        return None
    named = entry.port if entry else ""
    if named and not named.startswith(_USB):
        return lambda: named
    return lambda: port_of(named.removeprefix(_USB) or uid, list_ports()).device
