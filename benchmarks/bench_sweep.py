"""A minimum by the plan-guided sweep against the naive way (build and flash for every size), on the same twin.

Runs with the TFLM library that is registered (or named by HARNESS_TFLM); without one it is left out. The object cache
is warm for both. The harness's own share of the guided sweep is its wall time without the build, without the flash, and
without the processor time of the threads that emulate the board: what only waits counts as the harness's too.
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


class Stopwatch(SilentProgress):
    """Adds up, by what the sweep says that it does, the wall time in which no thread but this one worked."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._stage, self._since = "start", _alone_s()

    def stage(self, text: str) -> None:
        now = _alone_s()
        self.seconds[self._stage] = self.seconds.get(self._stage, 0.0) + now - self._since
        self._stage, self._since = text.split()[0], now


def _alone_s() -> float:
    """A clock that stands while other threads of this process, the twin's, use the processor."""
    return time.perf_counter() - (time.process_time() - time.thread_time())


@dataclass(frozen=True, slots=True)
class Swept:
    record: SweepRecord
    seconds: float
    stages: dict[str, float]


def swept(strategy: Strategy, folder: Path) -> Swept:
    watch = Stopwatch()
    request = SweepRequest(
        MODEL, BOARD, results=folder, strategy=strategy, runs=0, reference=False, resume=False, timeout_s=3600.0
    )
    started = time.perf_counter()
    record = keep_record(sweep_model(request, watch))
    seconds = time.perf_counter() - started
    watch.stage("end")
    return Swept(record, seconds, watch.seconds)


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
        ours = sum(seconds for stage, seconds in guided.stages.items() if stage not in NOT_OURS)
        yield Row("guided sweep", guided.seconds, "s")
        yield Row("guided sweep: flashes", guided.record.search.flashes, "", 1)
        yield Row("guided sweep: trials", len(guided.record.search.trials), "", 3)
        yield Row("guided sweep: not build, flash or emulation", 100 * ours / guided.seconds, "%", 15)
        yield Row("build and flash for every size", naive.seconds, "s")
        yield Row("build and flash for every size: flashes", naive.record.search.flashes, "", 10, at_least=True)
        yield Row("naive over guided", naive.seconds / guided.seconds, "times", 8, at_least=True)


if __name__ == "__main__":
    run(measure)
