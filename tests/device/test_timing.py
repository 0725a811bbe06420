"""Times are taken as the device counted them, and what cannot be right is refused."""

from __future__ import annotations

import re
import threading
import time

import pytest

from harness.deadline import Deadline
from harness.device.client import Device
from harness.device.timing import (
    MeasuredClock,
    measure_clock,
    measure_operators,
    measure_runs,
    require_clock,
)
from harness.errors import DeviceError
from harness.wire import messages as wire
from tests.device.fakes import QUICK, FakeDevice, FakeLink, nonces
from tests.patience import patient


def opened(fake: FakeDevice) -> Device:
    fake.boot()
    device = Device(FakeLink(fake), nonces=nonces(), policy=QUICK)
    device.hello(soon())
    return device


def soon() -> Deadline:
    return patient()


def test_run_times_are_those_of_the_samples() -> None:
    times = measure_runs(opened(FakeDevice(run_cycles=(100, 90, 95, 90))), 1, 4, soon())

    assert (times.first, times.minimum, times.median, times.maximum, times.mean) == (100, 90, 92.5, 100, 93.75)
    assert times.stdev == pytest.approx(4.787, abs=0.001)
    assert (times.runs, times.samples, times.used_bytes, times.first_deviation) == (4, 4, 900, None)


def test_equal_times_of_a_deterministic_run_are_fine() -> None:
    times = measure_runs(opened(FakeDevice(run_cycles=(77,) * 40)), 0, 40, soon())

    assert (times.minimum, times.maximum, times.stdev, times.samples) == (77, 77, 0.0, 40)


@pytest.mark.parametrize(
    ("cycles", "shown"), [((0, 90), "took 0 counts"), ((90, (1 << 64) - 5), "took -5 counts")], ids=["zero", "negative"]
)
def test_a_zero_or_wrapped_time_is_refused(cycles: tuple[int, ...], shown: str) -> None:
    with pytest.raises(DeviceError, match=re.escape(shown)) as caught:
        measure_runs(opened(FakeDevice(run_cycles=cycles)), 0, 2, soon())
    assert caught.value.code == "device.bad_count"


def test_a_counter_that_stands_still_is_refused() -> None:
    """On the F746 the DWT is locked until its lock is opened: CYCCNT stays where it is, and every time would be 0."""
    with pytest.raises(DeviceError, match="the counter does not advance: 7, then 7") as caught:
        measure_runs(opened(FakeDevice(counter=lambda: 7)), 0, 3, soon())
    assert caught.value.code == "device.counter_stopped"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"failed_run": 1}, "device.invoke_failed"),
        ({"guard": wire.GuardState.OVERRUN}, "device.guard_overrun"),
        ({"runs": 2}, "device.failed"),
    ],
)
def test_runs_that_failed_are_no_times(changes: dict[str, object], code: str) -> None:
    with pytest.raises(DeviceError) as caught:
        measure_runs(opened(FakeDevice(measure_changes=dict(changes))), 0, 3, soon())
    assert caught.value.code == code


def test_what_no_operator_took_is_a_row_of_its_own() -> None:
    times = measure_operators(opened(FakeDevice(operator_cycles=(60, 30), invoke_cycles=100)), soon())

    assert [row.count for row in times.rows] == [60, 30]
    assert (times.invoke, times.unattributed, times.truncated) == (100, 10, 0)


def test_events_that_the_device_could_not_keep_are_counted() -> None:
    times = measure_operators(opened(FakeDevice(operator_cycles=(9,) * 20, kept_events=8, invoke_cycles=200)), soon())

    assert (len(times.rows), times.truncated, times.unattributed) == (8, 12, 128)


def test_operators_that_took_longer_than_the_whole_are_refused() -> None:
    with pytest.raises(DeviceError, match="the operators took 90 counts, the whole run 80"):
        measure_operators(opened(FakeDevice(operator_cycles=(60, 30), invoke_cycles=80)), soon())


def test_the_clock_is_measured_against_this_computers() -> None:
    """However long an answer takes: the uncertainty says so."""
    fake = FakeDevice(counter=lambda: int(time.monotonic() * 16e6))
    clock = measure_clock(opened(fake), soon(), span_s=0.2)

    assert clock.hz == pytest.approx(16e6, abs=1.01 * clock.uncertainty_hz + 20)
    assert clock.span_s >= 0.2


def test_an_answer_that_was_late_makes_the_clock_uncertain_and_not_wrong() -> None:
    """Every reading of the second end comes late: half of the delay over the span is what is not known."""
    late = iter([0.0] * 5 + [0.05] * 5)

    def counter() -> int:
        now = time.monotonic()
        threading.Event().wait(next(late))
        return int(now * 16e6)

    clock = measure_clock(opened(FakeDevice(counter=counter)), soon(), span_s=0.1)
    assert clock.uncertainty_hz >= 0.02 / clock.span_s * 16e6
    assert abs(clock.hz - 16e6) <= 1.5 * clock.uncertainty_hz


def test_a_clock_of_half_the_speed_names_pll_and_hse() -> None:
    with pytest.raises(DeviceError, match=r"runs at 108\.00 MHz .* says 216\.00 MHz: a factor of 0\.500") as caught:
        require_clock(MeasuredClock(108e6, 1e4, 1.0), 216_000_000, "nucleo-f746zg")
    assert "PLL" in caught.value.remedy
    assert "HSE" in caught.value.remedy
    require_clock(MeasuredClock(219e6, 1e4, 1.0), 216_000_000, "nucleo-f746zg")
