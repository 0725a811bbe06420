"""Probes on the bus, from a sysfs tree in a folder."""

from __future__ import annotations

from pathlib import Path

from harness.probe.usb import UsbProbe, usb_probes


def device(root: Path, name: str, vendor: str, product: str, serial: str | None) -> None:
    (root / name).mkdir()
    (root / name / "idVendor").write_text(vendor + "\n")
    (root / name / "idProduct").write_text(product + "\n")
    if serial is not None:
        (root / name / "serial").write_text(serial + "\n")


def test_probes_are_told_from_other_devices_of_the_same_vendor(tmp_path: Path) -> None:
    device(tmp_path, "1-1", "0483", "374b", "0669FF30")
    device(tmp_path, "1-2", "0483", "df11", "in DFU mode")
    device(tmp_path, "1-3", "1366", "1015", None)
    device(tmp_path, "1-4", "dead", "beef", "x")
    (tmp_path / "usb1").mkdir()
    assert usb_probes(tmp_path) == (UsbProbe("ST-Link", "0483:374b", "0669FF30"), UsbProbe("J-Link", "1366:1015", ""))


def test_no_sysfs_is_no_probe(tmp_path: Path) -> None:
    assert usb_probes(tmp_path / "absent") == ()
