"""pyOCD's errors as a user reads them. The texts are pyOCD's own, and those of the reports collected for it."""

from __future__ import annotations

import pytest

from harness.probe.trouble import Place, translate

PLACE = Place("left", "connecting")


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("[Errno 13] Access denied (insufficient permissions)", "probe.no_permission"),
        ("USB Error: [Errno 16] Resource busy", "probe.busy"),
        ("J-Link is already open", "probe.busy"),
        ("STLink uses an unsupported, older firmware version; must be at least v2J24", "probe.old_firmware"),
        ("USB Error: [Errno 19] No such device (it may have been disconnected)", "probe.unplugged"),
        ("Target type 'stm32f746zgtx' not recognized. Use 'pyocd list --targets'", "probe.unknown_target"),
        ("[Errno 111] Connection refused", "probe.remote_unreachable"),
        ("Target not detected. Check connection to target. Potentially reduce debug clock.", "probe.no_target"),
        ("No cores were discovered!", "probe.no_target"),
        ("Get IDCODE error", "probe.no_target"),
        ("Debug power error", "probe.no_target"),
        ("something nobody has seen", "probe.failed"),
    ],
)
def test_causes_are_told_apart_by_what_pyocd_says(said: str, code: str) -> None:
    error = translate(RuntimeError(said), PLACE)
    assert error.code == code
    assert error.message.startswith("rig left, connecting: ")
    assert said in error.message
    assert error.remedy
    assert error.exit_code == 5


def test_a_message_of_a_probe_cannot_break_the_line() -> None:
    assert "\n" not in translate(RuntimeError("bad\nthings \x1b[31m"), PLACE).message


def test_a_lost_connection_is_told_whatever_was_raised_above_it() -> None:
    above = AssertionError()
    above.__context__ = ConnectionError("connection lost to the server of the probe")
    assert translate(above, PLACE).code == "probe.remote_unreachable"


def test_an_empty_exception_is_named_by_its_type() -> None:
    assert "TimeoutError" in translate(TimeoutError(), PLACE).message
