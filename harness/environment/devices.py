"""What is plugged in: serial ports and debug probes, and whether this user may open them."""

from __future__ import annotations

import subprocess
import sys

import msgspec

from harness.environment.part import Kind, Part, Status
from harness.link.ports import list_ports
from harness.probe.usb import usb_probes
from harness.rig.pairing import normalised_serial

_PYOCD_TIMEOUT_S = 30


class _PyocdBoard(msgspec.Struct):
    unique_id: str = ""
    info: str = ""
    board_name: str = ""
    target: str = ""


class _PyocdList(msgspec.Struct):
    boards: list[_PyocdBoard] = []


def port_parts() -> list[Part]:
    """Ports on USB; a computer's built-in ``ttyS*`` tell nothing about boards."""
    return [
        Part(
            Kind.PORT,
            port.device,
            Status.OK if port.is_accessible else Status.WRONG,
            "flashing boards" if not port.is_accessible else "",
            detail=f"{port.description}, USB {port.usb_id}, serial number {port.usb_serial or 'none'}",
            remedy="" if port.is_accessible else "add your user to the port's group (dialout or uucp) and log in again",
        )
        for port in list_ports()
        if port.usb_id
    ]


def probe_parts() -> list[Part]:
    """What pyOCD lists, and what is on the bus without pyOCD seeing it: that is a matter of permission or driver."""
    listed = _pyocd_boards()
    seen = {normalised_serial(board.unique_id) for board in listed}
    parts = [
        Part(Kind.PROBE, board.unique_id, Status.OK, "", detail=", ".join(filter(None, (board.info, board.target))))
        for board in listed
    ]
    for probe in usb_probes():
        if normalised_serial(probe.serial) not in seen:
            name = probe.serial or probe.usb_id
            detail = f"{probe.name} is plugged in (USB {probe.usb_id}), but pyOCD does not see it"
            remedy = probe.remedy
            parts.append(Part(Kind.PROBE, name, Status.WRONG, "flashing boards", "", detail, remedy))
    return parts


def _pyocd_boards() -> list[_PyocdBoard]:
    """In a child process: pyOCD prints, and its USB libraries have crashed hosts before."""
    argv = [sys.executable, "-m", "pyocd", "json", "--probes"]
    try:
        done = subprocess.run(argv, capture_output=True, timeout=_PYOCD_TIMEOUT_S, check=False)
        return msgspec.json.decode(done.stdout, type=_PyocdList).boards
    except (subprocess.TimeoutExpired, msgspec.MsgspecError):
        return []
