"""Probes on the bus, from a sysfs tree in a folder."""

from __future__ import annotations

from pathlib import Path

from harness.probe.usb import UsbProbe, usb_probes


def device(root: Path, name: str, vendor: str, product: str, serial: str | None, number: str = "") -> None:
    (root / name).mkdir()
    if number:
        (root / name / "busnum").write_text("1\n")
        (root / name / "devnum").write_text(number + "\n")
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
    assert usb_probes(tmp_path, tmp_path / "nodes") == (
        UsbProbe("ST-Link", "0483:374b", "0669FF30"),
        UsbProbe("J-Link", "1366:1015", ""),
    )


def test_no_sysfs_is_no_probe(tmp_path: Path) -> None:
    assert usb_probes(tmp_path / "absent") == ()


def test_a_probe_that_this_user_may_open_is_told_from_one_that_he_may_not(tmp_path: Path) -> None:
    """By the node that libusb opens: here one is missing, as it is in a container."""
    device(tmp_path, "1-1", "0483", "374b", "AAAA", "7")
    device(tmp_path, "1-2", "0483", "374e", "BBBB", "12")
    (tmp_path / "nodes" / "001").mkdir(parents=True)
    (tmp_path / "nodes" / "001" / "007").touch()
    found = usb_probes(tmp_path, tmp_path / "nodes")
    assert [(probe.title, probe.is_accessible) for probe in found] == [("ST-Link AAAA", True), ("ST-Link BBBB", False)]
