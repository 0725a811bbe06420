"""The serial ports of this computer."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class SerialPort:
    """``usb_serial`` is the serial number of the USB device behind the port; "" where there is none."""

    device: str
    description: str
    usb_id: str  # "0483:374b"; "" for a port that is not on USB
    usb_serial: str
    is_accessible: bool


def list_ports(comports: Callable[[], Iterable[Any]] | None = None) -> tuple[SerialPort, ...]:
    """Every port that pyserial sees, USB ones first. Opens none of them. ``comports``: pyserial's, unless given."""
    if comports is None:
        from serial.tools.list_ports import comports as of_pyserial

        comports = of_pyserial
    ports = [
        SerialPort(
            device=str(port.device),
            description=str(port.description or ""),
            usb_id=f"{port.vid:04x}:{port.pid:04x}" if port.vid is not None and port.pid is not None else "",
            usb_serial=str(port.serial_number or ""),
            is_accessible=os.name != "posix" or os.access(port.device, os.R_OK | os.W_OK),
        )
        for port in comports()
    ]
    return tuple(sorted(ports, key=lambda port: (not port.usb_id, port.device)))
