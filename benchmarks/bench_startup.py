"""Start-up of ``harness --help`` against a bare ``python -c pass`` (limit: 8 times)."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator

from result import Row, peak_and_seconds, run

ROUNDS = 15
PROGRAMS = {
    "python -c pass": ["-c", "pass"],
    "harness --help": ["-m", "harness", "--help"],
    "harness --version": ["-m", "harness", "--version"],
    "harness completion bash": ["-m", "harness", "completion", "bash"],
}


def measure() -> Iterator[Row]:
    seconds: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for _ in range(ROUNDS):  # in turn, so that a busy moment of the machine falls on all
        for name, arguments in PROGRAMS.items():
            _, elapsed, code = peak_and_seconds([sys.executable, *arguments])
            if code:
                sys.exit(f"{name} ended with {code}")
            seconds[name].append(elapsed)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    for name, median in medians.items():
        yield Row(name, median, "s", 0.2 if name == "harness --help" else None)
    yield Row("harness --help / python -c pass", medians["harness --help"] / medians["python -c pass"], "times", 8)


if __name__ == "__main__":
    run(measure)
