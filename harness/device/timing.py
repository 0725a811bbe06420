"""How long a model takes on a device: run times, time by operator, and the device's clock against this computer's.

Counts are raw counts of the device's timing kind (cycles, instructions on a twin, …); nothing here divides by a clock.
A count that cannot be right is refused, never repaired.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from harness.deadline import Deadline
from harness.device.client import Device
from harness.errors import DeviceError
from harness.wire import messages as wire

#: No run of a model takes this many counts (1,000 years at 1 GHz): larger is a difference gone negative.
_WRAPPED = 1 << 63
#: The counter is compared with this computer's clock over at least this long.
CLOCK_SPAN_S = 1.0
#: A board whose clock is off by more than this runs from another clock than its board file says.
CLOCK_TOLERANCE = 0.02
_CLOCK_READINGS = 5


@dataclass(frozen=True, slots=True)
class RunTimes:
    """Counts of ``runs`` timed Invokes after ``warm_up`` untimed ones. ``first`` is the first timed run. Median and
    standard deviation (None for one sample) are of the ``samples`` that the device kept; minimum, maximum and mean are
    of all runs. ``first_deviation`` is the first run whose outputs were not those of the first one."""

    warm_up: int
    runs: int
    samples: int
    first: int
    minimum: int
    median: float
    maximum: int
    mean: float
    stdev: float | None
    output_digest: int
    first_deviation: int | None
    used_bytes: int | None
    stack_used_bytes: int | None


@dataclass(frozen=True, slots=True)
class OperatorTime:
    """``name`` is the tag that TFLM's profiler was given, the operator's name."""

    name: str
    count: int


@dataclass(frozen=True, slots=True)
class OperatorTimes:
    """One Invoke under the profiler. ``truncated`` is the number of events that the device could not keep;
    ``unattributed`` what of the whole Invoke is in none of the rows."""

    rows: tuple[OperatorTime, ...]
    invoke: int
    truncated: int

    @property
    def unattributed(self) -> int:
        return self.invoke - sum(row.count for row in self.rows)


@dataclass(frozen=True, slots=True)
class MeasuredClock:
    """``hz`` of the counter by this computer's clock over ``span_s``; ``uncertainty_hz`` from the link's delay."""

    hz: float
    uncertainty_hz: float
    span_s: float


def measure_runs(device: Device, warm_up: int, runs: int, deadline: Deadline, *, reset_state: bool = False) -> RunTimes:
    """Time ``runs`` Invokes, in the boot of a trial that worked. Raises DeviceError for counts that cannot be right,
    a failed Invoke, or bytes written outside the arena."""
    require_running_counter(device, deadline)
    report = device.measure(warm_up, runs, deadline, reset_state=reset_state)
    _require_sound_runs(report, runs)
    samples = device.cycles(deadline) if report.stored else []
    if len(samples) != report.stored:
        raise DeviceError(
            f"the device stored {report.stored} run times and gave {len(samples)}",
            remedy="run again",
            code="device.gap",
        )
    for count in (*samples, report.first_cycles, report.min_cycles, report.max_cycles):
        _require_count(count, "a run")
    samples = samples or [report.first_cycles]
    return RunTimes(
        warm_up=warm_up,
        runs=report.runs,
        samples=len(samples),
        first=report.first_cycles,
        minimum=report.min_cycles,
        median=statistics.median(samples),
        maximum=report.max_cycles,
        mean=report.sum_cycles / report.runs,
        stdev=statistics.stdev(samples) if len(samples) > 1 else None,
        output_digest=report.output_digest,
        first_deviation=_known(report.first_deviation),
        used_bytes=_known(report.used_bytes),
        stack_used_bytes=_known(report.stack_used_bytes),
    )


def measure_operators(device: Device, deadline: Deadline) -> OperatorTimes:
    """One Invoke under TFLM's profiler. Raises DeviceError where the rows add up to more than the whole."""
    summary, rows = device.profile(deadline)
    _require_count(summary.invoke_cycles, "the profiled run")
    times = OperatorTimes(
        tuple(OperatorTime(row.tag, row.cycles) for row in rows), summary.invoke_cycles, summary.events - len(rows)
    )
    for row in rows:
        if row.cycles >= _WRAPPED:
            raise _bad_count(row.cycles, f"operator {row.tag}")
    if times.unattributed < 0:
        raise DeviceError(
            f"the operators took {summary.invoke_cycles - times.unattributed} counts, the whole run "
            f"{summary.invoke_cycles}",
            remedy="the counter wrapped or stopped within the run: measure again, with a smaller model",
            code="device.bad_count",
        )
    return times


def measure_clock(
    device: Device, deadline: Deadline, *, span_s: float = CLOCK_SPAN_S, wait: Callable[[float], None] = time.sleep
) -> MeasuredClock:
    """The counter's rate by this computer's monotonic clock. Each end is the quickest of some readings, taken to be in
    the middle of its round trip; half of both round trips is the uncertainty."""
    start_s, start_half_s, start = _reading(device, deadline)
    wait(span_s)
    end_s, end_half_s, end = _reading(device, deadline)
    elapsed_s = end_s - start_s
    hz = (end - start) / elapsed_s
    return MeasuredClock(hz, hz * (start_half_s + end_half_s) / elapsed_s, elapsed_s)


def require_clock(measured: MeasuredClock, expected_hz: int, board: str) -> None:
    """Raises DeviceError where the clock is further off than CLOCK_TOLERANCE and the uncertainty."""
    off_hz = abs(measured.hz - expected_hz)
    if off_hz <= CLOCK_TOLERANCE * expected_hz + measured.uncertainty_hz:
        return
    raise DeviceError(
        f"the counter runs at {measured.hz / 1e6:.2f} MHz (±{measured.uncertainty_hz / 1e6:.2f}), the file of {board} "
        f"says {expected_hz / 1e6:.2f} MHz: a factor of {measured.hz / expected_hz:.3f}",
        remedy="the PLL is set wrongly or the HSE does not run (is it a crystal or the probe's MCO, and of what "
        "frequency?): check the clock in the board file",
        code="device.clock",
    )


def require_running_counter(device: Device, deadline: Deadline) -> None:
    """Raises DeviceError where two readings of the counter are the same."""
    first, second = device.counters(deadline).cycles, device.counters(deadline).cycles
    if second <= first:
        raise DeviceError(
            f"the counter does not advance: {first}, then {second}",
            remedy="DWT CYCCNT is stopped, locked or absent: reset the board without a debugger attached, or let the "
            "firmware count with SysTick",
            code="device.counter_stopped",
        )


def _reading(device: Device, deadline: Deadline) -> tuple[float, float, int]:
    """(middle, half of the round trip, counts) of the quickest of some readings."""
    readings = []
    for _ in range(_CLOCK_READINGS):
        before_s = time.monotonic()
        counts = device.counters(deadline).cycles
        half_s = (time.monotonic() - before_s) / 2
        readings.append((half_s, before_s + half_s, counts))
    half_s, middle_s, counts = min(readings)
    return middle_s, half_s, counts


def _require_sound_runs(report: wire.MeasureReport, asked: int) -> None:
    failed = _known(report.failed_run)
    if failed is not None:
        raise DeviceError(
            f"Invoke failed in run {failed} of {asked}, after the trial's own run had worked",
            remedy="harness soak finds the first run that differs; harness check says what the model relies on",
            code="device.invoke_failed",
        )
    if report.guard is wire.GuardState.OVERRUN:
        raise DeviceError(
            "bytes outside the arena were written while the model was measured",
            remedy="a kernel writes beyond its buffers: measure with --kernels reference to compare",
            code="device.guard_overrun",
        )
    if report.runs != asked:
        raise DeviceError(f"asked for {asked} runs, the device did {report.runs}", remedy="measure again")


def _require_count(count: int, what: str) -> None:
    if count == 0 or count >= _WRAPPED:
        raise _bad_count(count, what)


def _bad_count(count: int, what: str) -> DeviceError:
    shown = count - (1 << 64) if count >= _WRAPPED else count
    return DeviceError(
        f"the device says that {what} took {shown} counts",
        remedy="the cycle counter stopped or wrapped: measure again, and report the board if it stays",
        code="device.bad_count",
    )


def _known(value: int) -> int | None:
    return None if value == wire.UNKNOWN_U32 else value
