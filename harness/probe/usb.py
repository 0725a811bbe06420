"""Debug probes on the USB bus, told by the kernel: also those that this user may not open. Linux; elsewhere none.

pyOCD passes over a probe that it may not open, so that "no permission" looks like "nothing is plugged in".
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

#: USB vendor → what people call its probes, and their product ids (usb.ids: 0483 STMicroelectronics, 1366 SEGGER,
#: 0d28 Arm DAPLink, 2e8a Raspberry Pi): the vendors make other devices too.
PROBE_IDS: dict[str, tuple[str, frozenset[str]]] = {
    "0483": ("ST-Link", frozenset({"3744", "3748", "374a", "374b", "374d", "374e", "374f", "3752", "3753", "3754"})),
    "1366": ("J-Link", frozenset({"0101", "0105", "1010", "1015", "1020", "1050", "1051", "1055", "1061"})),
    "0d28": ("CMSIS-DAP", frozenset({"0204"})),
    "2e8a": ("CMSIS-DAP", frozenset({"000c"})),
}
SYSFS_USB = Path("/sys/bus/usb/devices")
#: The nodes that libusb opens: ``<bus>/<device>``, three digits each.
USB_NODES = Path("/dev/bus/usb")


@dataclass(frozen=True, slots=True)
class UsbProbe:
    """``usb_id`` is ``vendor:product``; ``serial`` "" where the device has none. ``is_accessible``: this user may open
    it."""

    name: str
    usb_id: str
    serial: str
    is_accessible: bool = False

    @property
    def title(self) -> str:
        return f"{self.name} {self.serial}".rstrip()

    @property
    def remedy(self) -> str:
        """What to do when pyOCD does not list it."""
        if self.is_accessible:
            return "close what has it open (an IDE, a debugger, another harness), or plug it in again"
        return f"give your user access by a udev rule for USB {self.usb_id} (docs/installing.md), then plug it in again"


def usb_probes(root: Path = SYSFS_USB, nodes: Path = USB_NODES) -> tuple[UsbProbe, ...]:
    """What is on the bus. Reads sysfs, which needs no permission."""
    found = []
    for device in sorted(root.iterdir()) if root.is_dir() else []:
        vendor, product = _read(device / "idVendor"), _read(device / "idProduct")
        name, products = PROBE_IDS.get(vendor, ("", frozenset()))
        if product in products:
            is_accessible = os.access(_node(device, nodes), os.R_OK | os.W_OK)
            found.append(UsbProbe(name, f"{vendor}:{product}", _read(device / "serial"), is_accessible))
    return tuple(found)


def _node(device: Path, nodes: Path) -> Path:
    return nodes / _read(device / "busnum").zfill(3) / _read(device / "devnum").zfill(3)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
