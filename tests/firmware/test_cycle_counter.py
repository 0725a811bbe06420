"""The cycle counter starts whatever state it is in, and where it cannot, SysTick counts and the firmware says so."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness.wire import messages as wire
from tests.firmware.conftest import Builder, small_model
from tests.firmware.test_on_twin import Bench, soon

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("unicorn") is None, reason="the extra [sim] (unicorn) is not installed"
    ),
    pytest.mark.skipif(sys.platform == "win32", reason="a twin's serial port is a pseudo-terminal"),
]

KEY = 0xC5ACCE55


def trace_unit(core: Any, *, locked: bool = False, absent: bool = False, stopped: bool = False) -> Any:
    """The twin's DWT with a lock that ignores writes, without a cycle counter, or with one that stands still."""
    from harness.sim.scs import WatchpointTrace

    class OddTrace(WatchpointTrace):
        def reset(self) -> None:
            super().reset()
            self.open = not locked

        def load(self, offset: int) -> int:
            if offset == 0xFB4:
                return (1 | (0 if self.open else 2)) if locked else 0
            if offset == 0x000 and absent:
                return 1 << 25
            if offset == 0x004 and (absent or stopped):
                return 0
            return super().load(offset)

        def store(self, offset: int, value: int, mask: int) -> None:
            if offset == 0xFB0:
                self.open = self.open or value == KEY
            elif self.open:
                super().store(offset, value, mask)

    return OddTrace(core)


@pytest.fixture
def start(build_fake: Builder) -> Iterator[Callable[..., Bench]]:
    opened: list[Bench] = []

    def begin(board: str, **traits: bool) -> Bench:
        bench = Bench(build_fake(board, small_model()), board)
        opened.append(bench)
        with bench.twin.turn() as chip:
            chip.bus.add_device(trace_unit(chip.core, **traits), 0xE000_1000, 0x1000)
        return bench

    yield begin
    for bench in opened:
        bench.close()


@pytest.mark.parametrize("debugger_was_there", [False, True])
def test_the_locked_counter_of_a_cortex_m7_is_opened(start: Callable[..., Bench], debugger_was_there: bool) -> None:
    """On an STM32F746 DWT_CTRL stayed 0x40000000 and every measurement was 0 cycles; and code that opened the lock only
    where TRCENA was clear failed when a debugger had set it."""
    bench = start("nucleo-f746zg", locked=True)
    if debugger_was_there:
        with bench.twin.turn() as chip:
            chip.core.demcr |= 1 << 24
    assert bench.boot().timing is wire.TimingKind.CYCLES
    assert bench.trial(8192).invoke_cycles > 0


@pytest.mark.parametrize("traits", [{"absent": True}, {"stopped": True}], ids=["NOCYCCNT", "standing still"])
def test_without_a_counter_systick_counts_and_says_so(start: Callable[..., Bench], traits: dict[str, bool]) -> None:
    bench = start("nucleo-f446re", **traits)
    assert bench.boot().timing is wire.TimingKind.SYSTICK
    assert bench.trial(8192).invoke_cycles > 0
    report = bench.device.measure(0, 5, soon())
    assert 0 < report.min_cycles <= report.max_cycles < 10**6
    first = bench.device.counters(soon()).cycles
    assert bench.device.counters(soon()).cycles > first


@pytest.mark.parametrize("period", [20_000, 33_333])
def test_no_timed_run_is_interrupted_by_the_tick(start: Callable[..., Bench], period: int) -> None:
    """SysTick ends a period every 2^24 cycles, in the middle of some run: 31 instructions more in one of 1,000 equal
    runs made a soak say "unstable". Here it ends one in every few runs."""
    bench = start("nucleo-f446re")
    bench.boot()
    bench.trial(8192)
    with bench.twin.turn() as chip:
        chip.bus.write(0xE000E014, (period - 1).to_bytes(4, "little"))
        chip.bus.write(0xE000E018, bytes(4))
    report = bench.device.measure(0, 64, soon())
    assert report.min_cycles == report.max_cycles < period
    assert report.sum_cycles > 3 * period


def test_systick_as_the_counter_loses_nothing_where_its_period_begins_anew(start: Callable[..., Bench]) -> None:
    bench = start("nucleo-f446re", absent=True)
    bench.boot()
    bench.trial(8192)
    before = bench.device.counters(soon()).cycles
    report = bench.device.measure(0, 64, soon())
    assert report.min_cycles == report.max_cycles
    assert bench.device.counters(soon()).cycles >= before + report.sum_cycles


def test_a_wrap_of_the_32_bit_counter_is_extended(start: Callable[..., Bench]) -> None:
    """At 216 MHz the counter wraps after 19.88 s; a difference across the wrap must not be negative or small."""
    bench = start("nucleo-f746zg", locked=True)
    bench.boot()
    _set_counter(bench, 0xF000_0000)
    before = bench.device.counters(soon()).cycles  # seen by the firmware, as once in 2^24 cycles on a chip
    _set_counter(bench, 0xFFFF_F000)
    later = [bench.device.counters(soon()).cycles for _ in range(3)]
    assert 0xF000_0000 <= before < 2**32
    assert later == sorted(later)
    assert later[-1] > 2**32
    assert later[-1] - before < 2**29


def _set_counter(bench: Bench, value: int) -> None:
    with bench.twin.turn() as chip:
        chip.bus.write(0xE0001004, value.to_bytes(4, "little"))
