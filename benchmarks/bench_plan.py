"""Planning time: a real model of 4 MB once it is read, and the growth over models of 100 to 10,000 operators.

CPU time, since planning waits for nothing. The real model is mobilenet_v2 where HARNESS_SHARED (or ../shared) holds it,
else a generated one of the same size.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from result import Row, run

from harness.model.builder import chain, conv_tower
from harness.model.graph import Model
from harness.model.reader import parse_model
from harness.plan.arena import plan_arena
from harness.plan.overview import overview
from harness.plan.target import target_for

ROUNDS = 5
LENGTHS = (100, 300, 1_000, 3_000, 10_000)
#: Planning 4 MB takes less than this; 10,000 operators take less than that.
LARGE_LIMIT_S = 0.1
LONG_LIMIT_S = 2.0
#: log(time) over log(operators) between the last two lengths: 1 is linear, 2 is quadratic.
GROWTH_LIMIT = 1.3
TARGET = target_for("cortex-m4")


def measure() -> Iterator[Row]:
    model = _large_model()
    seconds = _best(lambda: plan_arena(model, TARGET))
    yield Row(f"{Path(model.path).name}, {model.size_bytes / 1e6:.1f} MB: plan", seconds, "s", LARGE_LIMIT_S)
    hashed = _best(lambda: sum(model.data[:: 1 << 6]))
    yield Row("… / one pass over every 64th byte of the file", seconds / hashed, "times")
    times: dict[int, float] = {}
    for length in LENGTHS:
        long = parse_model(chain(length), f"chain {length}")
        times[length] = _best(lambda long=long: plan_arena(long, TARGET), 3)  # type: ignore[misc]
        limit = LONG_LIMIT_S if length == LENGTHS[-1] else None
        yield Row(f"{length:,} operators: plan", times[length], "s", limit)
        yield Row("… per operator / the same at 100 operators", times[length] / length / (times[100] / 100), "times")
        if length <= 1_000:
            planned = plan_arena(long, TARGET)
            insight = _best(lambda long=long, planned=planned: overview(long, planned), 3)  # type: ignore[misc]
            yield Row("… the overview that harness plan prints / plan", insight / times[length], "times")
    longest, before = LENGTHS[-1], LENGTHS[-2]
    growth = math.log(times[longest] / times[before]) / math.log(longest / before)
    yield Row(f"growth exponent from {before:,} to {longest:,} operators", growth, "", GROWTH_LIMIT)


def _large_model() -> Model:
    shared = Path(os.environ.get("HARNESS_SHARED") or Path(__file__).resolve().parents[2] / "shared")
    path = shared / "models" / "mobilenet_v2_quantized_1x3x224x224.tflite"
    if path.is_file():
        return parse_model(path.read_bytes(), str(path))
    return parse_model(conv_tower(), "conv_tower")


def _best(action: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Least CPU seconds of several runs: planning waits for nothing, so other programs must not count."""
    times = []
    for _ in range(rounds):
        started = time.process_time()
        action()
        times.append(time.process_time() - started)
    return min(times)


if __name__ == "__main__":
    run(measure)
