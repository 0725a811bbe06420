"""Wall time and peak memory of ``harness check`` and ``harness plan`` on a model of 4 MB (aim: < 0.6 s, < 200 MB)."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from result import Row, peak_and_seconds, run

from harness.model.builder import conv_tower

ROUNDS = 5
LIMIT_S = 0.6
LIMIT_MB = 200


def measure() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tower.tflite"
        path.write_bytes(conv_tower())
        yield Row("model file", path.stat().st_size / 1e6, "MB")
        _, bare, _ = _best([sys.executable, "-c", "pass"])
        for command in ("check", "plan"):
            peak, seconds, code = _best([sys.executable, "-m", "harness", command, str(path)])
            if code:
                sys.exit(f"harness {command} ended with {code}")
            yield Row(f"harness {command}: wall time", seconds, "s", LIMIT_S)
            yield Row(f"harness {command}: wall time / python -c pass", seconds / bare, "times")
            yield Row(f"harness {command}: peak memory", peak / 1e6, "MB", LIMIT_MB)


def _best(argv: list[str]) -> tuple[int, float, int]:
    """(largest peak, least seconds, worst exit code) of several runs: a busy machine only ever adds time."""
    runs = [peak_and_seconds(argv) for _ in range(ROUNDS)]
    peaks, seconds, codes = zip(*runs, strict=True)
    return max(peaks), min(seconds), max(codes)


if __name__ == "__main__":
    run(measure)
