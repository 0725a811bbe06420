"""pyOCD passes over a probe that it may not open, and then says that none is there (pyOCD issue 1719). The two must be
told apart: one is a matter of a udev rule, the other of a cable."""

from __future__ import annotations

import pytest

from harness.errors import ExitCode, ProbeError
from harness.probe.attached import AttachedProbe
from harness.probe.trouble import Place, translate
from harness.probe.usb import UsbProbe
from harness.rig.pairing import find_probe, refuse_hidden

LISTED = (AttachedProbe("0669ff30", "STM32 STLink", "NUCLEO-F746ZG", "stm32f746zgtx"),)
STLINK = UsbProbe("ST-Link", "0483:374b", "0669FF30")


def test_a_probe_on_the_bus_that_pyocd_does_not_list_is_a_matter_of_permission() -> None:
    with pytest.raises(ProbeError) as caught:
        refuse_hidden((), (STLINK,))
    assert caught.value.message == "ST-Link 0669FF30 is plugged in (USB 0483:374b), but may not be opened"
    assert caught.value.remedy.startswith("give your user access by a udev rule for USB 0483:374b")
    assert (caught.value.code, caught.value.exit_code) == ("probe.no_permission", ExitCode.PROBE)


def test_a_listed_probe_is_not_hidden_whatever_the_case_of_its_serial_number() -> None:
    refuse_hidden(LISTED, (STLINK,))


def test_nothing_on_the_bus_is_nothing_plugged_in() -> None:
    refuse_hidden((), ())


def test_a_probe_that_may_be_opened_and_is_not_listed_is_in_use() -> None:
    with pytest.raises(ProbeError) as caught:
        refuse_hidden((), (UsbProbe("ST-Link", "0483:374b", "0669FF30", is_accessible=True),))
    assert caught.value.code == "probe.busy"
    assert "ST-Link 0669FF30 is plugged in (USB 0483:374b) and may be opened" in caught.value.message


def code_of_a_missing_probe(on_bus: tuple[UsbProbe, ...]) -> str:
    with pytest.raises(ProbeError) as caught:
        refuse_hidden((), on_bus)
        find_probe("0669FF30", ())
    return caught.value.code


def test_the_causes_of_a_missing_probe_have_codes_of_their_own() -> None:
    """Not plugged in, no permission, in use, and old firmware (pyOCD issues 1719, 877, 1054)."""
    open_elsewhere = UsbProbe("ST-Link", "0483:374b", "0669FF30", is_accessible=True)
    assert code_of_a_missing_probe(()) == "probe.absent"
    assert code_of_a_missing_probe((STLINK,)) == "probe.no_permission"
    assert code_of_a_missing_probe((open_elsewhere,)) == "probe.busy"
    old = "STLink uses an unsupported, older firmware version; must be at least v2J24"
    assert translate(RuntimeError(old), Place("left", "connecting")).code == "probe.old_firmware"
