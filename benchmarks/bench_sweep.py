"""A minimum by the plan-guided sweep against the naive way (build and flash for every size), on the same twin.

Runs with the TFLM library that is registered (or named by HARNESS_TFLM); without one it is left out. The object cache
is warm for both. Outside build and flash the wall time of the guided sweep is the harness's own work (the processor
time of its thread), the emulation (that of the twin's thread), and waiting of both, in which pyOCD's pause of 0.1 s
after each reset counts.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from result import Row, run

from harness.record.schema import SweepRecord
from harness.sweep.flow import keep_record, sweep_model
from harness.sweep.request import SilentProgress, Strategy, SweepRequest

ROOT = Path(__file__).resolve().parent.parent
MODEL = ROOT / "examples" / "kws.tflite"
BOARD = "sim:nucleo-f746zg"
#: Stages in which the compiler or pyOCD works.
NOT_OURS = frozenset({"build", "flash"})


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds outside build and flash: ``own`` and ``emulation`` of processor time, ``wall``."""

    own: float = 0.0
    emulation: float = 0.0
    wall: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.own + other.own, self.emulation + other.emulation, self.wall + other.wall)

    def __sub__(self, other: Spent) -> Spent:
        return Spent(self.own - other.own, self.emulation - other.emulation, self.wall - other.wall)

    @classmethod
    def now(cls) -> Spent:
        own = time.thread_time()
        return cls(own, time.process_time() - own, time.perf_counter())


class Stopwatch(SilentProgress):
    """Adds up what is spent outside the stages in which compiler or pyOCD work."""

    def __init__(self) -> None:
        self.spent = Spent()
        self._stage, self._since = "start", Spent.now()

    def stage(self, text: str) -> None:
        now = Spent.now()
        if self._stage not in NOT_OURS:
            self.spent += now - self._since
        self._stage, self._since = text.split()[0], now


@dataclass(frozen=True, slots=True)
class Swept:
    record: SweepRecord
    seconds: float
    spent: Spent


def swept(strategy: Strategy, folder: Path) -> Swept:
    watch = Stopwatch()
    request = SweepRequest(
        MODEL, BOARD, results=folder, strategy=strategy, runs=0, reference=False, resume=False, timeout_s=3600.0
    )
    started = time.perf_counter()
    record = keep_record(sweep_model(request, watch))
    seconds = time.perf_counter() - started
    watch.stage("end")
    return Swept(record, seconds, watch.spent)


def measure() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        first = swept(Strategy.GUIDED, Path(folder))
        if first.record.search is None:
            error = first.record.error
            print(f"left out: {error.message if error else 'no search'}")
            return
        guided = swept(Strategy.GUIDED, Path(folder))
        naive = swept(Strategy.REFLASH, Path(folder))
        assert guided.record.search and naive.record.search
        assert guided.record.search.min_bytes == naive.record.search.min_bytes
        spent = guided.spent
        waiting = spent.wall - spent.own - spent.emulation
        yield Row("guided sweep", guided.seconds, "s")
        yield Row("guided sweep: flashes", guided.record.search.flashes, "", 1)
        yield Row("guided sweep: trials", len(guided.record.search.trials), "", 3)
        yield Row("guided sweep: the harness's own work", 100 * spent.own / guided.seconds, "%", 15)
        yield Row("guided sweep: emulation", 100 * spent.emulation / guided.seconds, "%")
        yield Row("guided sweep: waiting, pyOCD's pauses after resets among it", 100 * waiting / guided.seconds, "%")
        yield Row("build and flash for every size", naive.seconds, "s")
        yield Row("build and flash for every size: flashes", naive.record.search.flashes, "", 10, at_least=True)
        yield Row("naive over guided", naive.seconds / guided.seconds, "times", 8, at_least=True)


if __name__ == "__main__":
    run(measure)
