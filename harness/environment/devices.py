"""What is plugged in: serial ports and debug probes, and whether this user may open them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec

from harness.environment.part import Kind, Part, Status
from harness.link.ports import list_ports

#: USB vendor → what people call its probes (usb.ids: 0483 STMicroelectronics, 1366 SEGGER, 0d28 Arm DAPLink,
#: 2e8a Raspberry Pi). The product ids tell probes from the vendors' other devices.
PROBE_IDS: dict[str, tuple[str, frozenset[str]]] = {
    "0483": ("ST-Link", frozenset({"3744", "3748", "374a", "374b", "374d", "374e", "374f", "3752", "3753", "3754"})),
    "1366": ("J-Link", frozenset({"0101", "0105", "1010", "1015", "1020", "1050", "1051", "1055", "1061"})),
    "0d28": ("CMSIS-DAP", frozenset({"0204"})),
    "2e8a": ("CMSIS-DAP", frozenset({"000c"})),
}
SYSFS_USB = Path("/sys/bus/usb/devices")
_PYOCD_TIMEOUT_S = 30
_UDEV = "give your user access by a udev rule for USB {usb_id} (docs/installing.md), then plug it in again"


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
    seen = {board.unique_id.upper() for board in listed}
    parts = [
        Part(Kind.PROBE, board.unique_id, Status.OK, "", detail=", ".join(filter(None, (board.info, board.target))))
        for board in listed
    ]
    for name, usb_id, serial in usb_probes():
        if serial.upper() not in seen:
            detail = f"{name} is plugged in (USB {usb_id}), but pyOCD does not see it"
            remedy = _UDEV.format(usb_id=usb_id)
            parts.append(Part(Kind.PROBE, serial or usb_id, Status.WRONG, "flashing boards", "", detail, remedy))
    return parts


def usb_probes(root: Path = SYSFS_USB) -> list[tuple[str, str, str]]:
    """(name, vendor:product, serial number) of the debug probes on the bus, from sysfs; needs no permission."""
    found = []
    for device in sorted(root.iterdir()) if root.is_dir() else []:
        vendor, product = _read(device / "idVendor"), _read(device / "idProduct")
        name, products = PROBE_IDS.get(vendor, ("", frozenset()))
        if product in products:
            found.append((name, f"{vendor}:{product}", _read(device / "serial")))
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _pyocd_boards() -> list[_PyocdBoard]:
    """In a child process: pyOCD prints, and its USB libraries have crashed hosts before."""
    argv = [sys.executable, "-m", "pyocd", "json", "--probes"]
    try:
        done = subprocess.run(argv, capture_output=True, timeout=_PYOCD_TIMEOUT_S, check=False)
        return msgspec.json.decode(done.stdout, type=_PyocdList).boards
    except (subprocess.TimeoutExpired, msgspec.MsgspecError):
        return []
