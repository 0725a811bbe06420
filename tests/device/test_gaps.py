"""E13: records that are lost between device and host. Each has the number of its first item: a gap is asked for again,
or an error, and never a mean of what happened to arrive.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from harness.device.client import Device
from harness.device.timing import measure_runs
from harness.errors import DeviceError
from harness.wire import messages as wire
from tests.device.fakes import QUICK, FakeDevice, FakeLink, LosesAnswer, nonces
from tests.patience import patient

#: 300 run times are 11 records of up to 28. Their mean is 1,149.5; without any one of the records it is another.
TIMES = tuple(range(1000, 1300))


def device_behind(link: FakeLink | LosesAnswer, fake: FakeDevice) -> Device:
    fake.boot()
    device = Device(link, nonces=nonces(), policy=QUICK)
    device.hello(patient())
    return device


@pytest.mark.parametrize("number", [0, 5, 10])
def test_a_lost_record_is_asked_for_again(number: int) -> None:
    fake = FakeDevice(run_cycles=TIMES)
    link = LosesAnswer(FakeLink(fake), wire.Cycles, number)
    device = device_behind(link, fake)

    times = measure_runs(device, 0, 300, patient())

    assert link.lost == 1
    assert (times.samples, times.median, times.mean) == (300, 1149.5, 1149.5)
    assert device.counts.retransmissions == 1


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda piece: dataclasses.replace(piece, first=piece.first + 28), "from number 84 on"),
        (lambda piece: dataclasses.replace(piece, first=0), "from number 0 on"),
        (lambda piece: dataclasses.replace(piece, cycles=()), "has 0 from number 56 on"),
        (lambda piece: dataclasses.replace(piece, total=60), "56 of 60 have come, the next piece has 28"),
    ],
    ids=["one left out", "one twice", "the end too early", "more than there are"],
)
def test_a_device_that_leaves_out_a_record_is_an_error_and_no_bad_mean(
    change: Callable[[wire.Cycles], wire.Cycles], told: str
) -> None:
    fake = FakeDevice(run_cycles=TIMES, piece_changes=lambda piece: change(piece) if piece.first == 56 else piece)

    with pytest.raises(DeviceError, match=told) as caught:
        measure_runs(device_behind(FakeLink(fake), fake), 0, 300, patient())
    assert caught.value.code == "device.gap"
    assert caught.value.message.startswith("Cycles has a gap: 56 of ")


def test_fewer_run_times_than_the_device_stored_are_an_error() -> None:
    fake = FakeDevice(run_cycles=TIMES, measure_changes={"stored": 301})

    with pytest.raises(DeviceError, match="stored 301 run times and gave 300"):
        measure_runs(device_behind(FakeLink(fake), fake), 0, 300, patient())
