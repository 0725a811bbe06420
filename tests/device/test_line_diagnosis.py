"""A device at another rate than was set up: which one it answers at, and what that says about its clock."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from harness.deadline import Deadline
from harness.device.client import Device
from harness.device.line_diagnosis import explain_silence
from harness.errors import DeviceError, LinkError
from harness.sim.wire import resample
from tests.device.fakes import QUICK, FakeDevice, FakeLink, FakeProbe, nonces
from tests.patience import patient


@dataclass
class FakeLine(FakeLink):
    """A line between two rates: what passes is sampled bit by bit at the receiver's rate."""

    device_baud: int = 115200
    baud: int = 115200

    def set_baud(self, baud: int) -> None:
        self.baud = baud

    def write(self, data: bytes, deadline: Deadline) -> None:
        super().write(resample(data, self.baud, self.device_baud), deadline)

    def read(self, deadline: Deadline) -> bytes:
        return resample(super().read(deadline), self.device_baud, self.baud)


def diagnose(device_baud: int) -> tuple[Exception | None, int]:
    """What is said of a device at this rate when 115200 was set up, and the rate that the line is left at."""
    fake = FakeDevice()
    line = FakeLine(fake, device_baud=device_baud)
    client = Device(line, nonces=nonces(7), policy=QUICK)
    return explain_silence(FakeProbe(fake), line, client, patient()), line.baud


@pytest.mark.parametrize("baud", [9600, 921600])
def test_a_device_at_another_common_rate_is_told_with_it(baud: int) -> None:
    reason, left_at = diagnose(baud)
    assert isinstance(reason, LinkError)
    assert reason.code == "link.wrong_baud"
    assert reason.message == f"the device answers at {baud} baud, the board file says 115200"
    assert left_at == 115200


@pytest.mark.parametrize(("baud", "word", "factor"), [(57600, "half", "×0.5"), (230400, "twice", "×2")])
def test_half_and_twice_the_rate_name_the_clock(baud: int, word: str, factor: str) -> None:
    reason, left_at = diagnose(baud)
    assert isinstance(reason, DeviceError)
    assert reason.code == "device.wrong_clock"
    assert f"its clock runs at {word} the speed" in reason.message
    assert factor in reason.message
    assert "HSE" in reason.remedy
    assert left_at == 115200


def test_a_device_that_answers_at_no_rate_is_not_explained() -> None:
    assert diagnose(300) == (None, 115200)
