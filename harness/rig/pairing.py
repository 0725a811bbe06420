"""Which probe and which serial port belong to a board: by USB serial number and pyOCD's board table, never by order."""

from __future__ import annotations

import re

from harness.board.record import HardwareBoard
from harness.errors import ProbeError, UsageError
from harness.link.ports import SerialPort
from harness.probe.attached import AttachedProbe
from harness.probe.usb import UsbProbe

_DISCOVER = "harness lab discover lists what is plugged in and proposes a lab.yaml"


def normalised_serial(text: str | None) -> str:
    """A USB serial number made comparable: hexadecimal in upper case.

    An ST-Link/V2 reports raw bytes; other probes differ in case, or pad with blanks and zeros. "" for none.
    """
    if not text:
        return ""
    text = text.strip("\x00 \t\r\n")
    if not text:
        return ""
    if not all(32 < ord(char) < 127 for char in text):
        return "".join(f"{ord(char) & 0xFF:02X}" for char in text)
    return text.upper()


def is_board_of(probe: AttachedProbe, board: HardwareBoard) -> bool:
    """Whether pyOCD's board table says that this probe is the one on such a board."""
    if not probe.board_name and not probe.target:
        return False
    names = {_plain(board.base_name), _plain(board.title), _plain(board.title.partition(" ")[2])}
    return _plain(probe.board_name) in names or (not probe.board_name and probe.target == board.pyocd.target)


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def choose_probe(board: HardwareBoard, probes: tuple[AttachedProbe, ...]) -> AttachedProbe:
    """The only attached probe that is on such a board. None: ProbeError; several: UsageError with the list."""
    fitting = [probe for probe in probes if is_board_of(probe, board)]
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        there = ", ".join(probe.title for probe in probes) or "none at all"
        raise ProbeError(
            f"no {board.title} is plugged in; probes that are: {there}",
            remedy=f"plug it in, or name its probe in lab.yaml; {_DISCOVER}",
            code="probe.no_board",
        )
    raise UsageError(
        f"{len(fitting)} boards fit {board.name}: " + ", ".join(probe.title for probe in fitting),
        remedy=f"say which: --rig NAME with a lab.yaml; {_DISCOVER}",
        code="rig.ambiguous",
    )


def find_probe(uid: str, probes: tuple[AttachedProbe, ...]) -> AttachedProbe:
    """The attached probe with this id, or with the only id that begins so."""
    wanted = normalised_serial(uid)
    exact = [probe for probe in probes if normalised_serial(probe.uid) == wanted]
    fitting = exact or [probe for probe in probes if normalised_serial(probe.uid).startswith(wanted)]
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        there = ", ".join(probe.title for probe in probes) or "none at all"
        raise ProbeError(
            f"probe {uid} is not plugged in; probes that are: {there}", remedy=_DISCOVER, code="probe.absent"
        )
    raise UsageError(
        f"{len(fitting)} probes have an id that begins with {uid}: " + ", ".join(probe.title for probe in fitting),
        remedy="write the whole id in lab.yaml",
        code="rig.ambiguous",
    )


def refuse_hidden(probes: tuple[AttachedProbe, ...], on_bus: tuple[UsbProbe, ...]) -> None:
    """Raises ProbeError for a probe that is on the bus but not among those that pyOCD lists: it passes over those that
    it cannot open, whether for want of permission or because another program has them."""
    listed = {normalised_serial(probe.uid) for probe in probes}
    for hidden in on_bus:
        if normalised_serial(hidden.serial) in listed:
            continue
        if hidden.is_accessible:
            raise ProbeError(
                f"{hidden.title} is plugged in (USB {hidden.usb_id}) and may be opened, but pyOCD does not see it",
                remedy=hidden.remedy,
                code="probe.busy",
            )
        raise ProbeError(
            f"{hidden.title} is plugged in (USB {hidden.usb_id}), but may not be opened",
            remedy=hidden.remedy,
            code="probe.no_permission",
        )


def refuse_swapped(uid: str, port: SerialPort, probes: tuple[AttachedProbe, ...]) -> None:
    """Raises ProbeError for a port that is the UART of another probe on the desk: its board would answer instead."""
    serial = normalised_serial(port.usb_serial)
    for other in probes:
        if serial and normalised_serial(other.uid) == serial != normalised_serial(uid):
            raise ProbeError(
                f"the port {port.device} belongs to the probe {other.title}, not to {uid}",
                remedy=f"correct port: in lab.yaml; {_DISCOVER}",
                code="rig.swapped",
            )


def port_of(usb_serial: str, ports: tuple[SerialPort, ...]) -> SerialPort:
    """The serial port of the USB device with this serial number. Raises ProbeError or UsageError, with the list."""
    wanted = normalised_serial(usb_serial)
    fitting = [port for port in ports if wanted and normalised_serial(port.usb_serial) == wanted]
    if len(fitting) == 1:
        return fitting[0]
    there = ", ".join(f"{port.device} ({port.usb_serial or 'no serial number'})" for port in ports) or "none"
    if not fitting and usb_serial.startswith("sim"):
        raise ProbeError(
            f"{usb_serial} is the probe of a twin, whose UART is no port of this computer",
            remedy="take the twin by its name (--board sim:NAME), or give it a port with harness sim serve",
            code="rig.no_port",
        )
    if not fitting:
        raise ProbeError(
            f"the probe {usb_serial} has no serial port here; ports: {there}",
            remedy="name the port in lab.yaml (port: usb:SERIAL, a path, or a URL); harness doctor lists ports",
            code="rig.no_port",
        )
    raise UsageError(
        f"{len(fitting)} serial ports belong to {usb_serial}: " + ", ".join(port.device for port in fitting),
        remedy="name the one that is wired to the chip's UART in lab.yaml (port: PATH)",
        code="rig.ambiguous",
    )
