"""pyOCD passes over a probe that it may not open, and then says that none is there (pyOCD issue 1719). The two must be
told apart: one is a matter of a udev rule, the other of a cable."""

from __future__ import annotations

import pytest

from harness.errors import ExitCode, ProbeError
from harness.probe.attached import AttachedProbe
from harness.probe.usb import UsbProbe
from harness.rig.pairing import refuse_hidden

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
