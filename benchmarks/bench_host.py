"""Trials per second on the host board, each on a fresh boot, against the bare interpreter in this process."""

from __future__ import annotations

import contextlib
import hashlib
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from result import Row, run

from harness.deadline import Deadline
from harness.device.bench import Bench, InputPlan
from harness.device.client import Device
from harness.link.serial_link import SerialLink
from harness.model.builder import EXAMPLES
from harness.probe.protocol import FlashImage
from harness.sim.host.board import HostBoard
from harness.trial import Outcome

MODEL = "ds_cnn_kws"
ARENA_BYTES = 65536
TOO_SMALL_BYTES = 4096
TRIALS = 40


def measure() -> Iterator[Row]:
    data = EXAMPLES[MODEL]()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        path = Path(folder) / f"{MODEL}.tflite"
        path.write_bytes(data)
        started = time.perf_counter()
        board = stack.enter_context(contextlib.closing(HostBoard()))
        image = FlashImage("0" * 32, hashlib.sha256(data).hexdigest(), model_path=str(path))
        board.flash(image, Deadline.after(30))
        link = stack.enter_context(contextlib.closing(SerialLink(board.port)))
        bench = Bench(board, Device(link), image, InputPlan.seeded(1), trial_timeout_s=30)
        digest = _trial(bench, ARENA_BYTES, None, Outcome.WORKS)
        yield Row("host board: start, flash and first trial", time.perf_counter() - started, "s")
        works = [_timed(bench, ARENA_BYTES, digest, Outcome.WORKS) for _ in range(TRIALS)]
        crashes = [_timed(bench, TOO_SMALL_BYTES, digest, Outcome.TOO_SMALL) for _ in range(TRIALS)]
    bare = _bare_seconds(data)
    yield Row("host board: trials per second that work", 1 / statistics.median(works), "1/s", 10, at_least=True)
    yield Row("host board: trials per second that fault", 1 / statistics.median(crashes), "1/s", 10, at_least=True)
    yield Row("bare interpreter in this process", bare * 1000, "ms")
    yield Row("a trial on a fresh boot / the bare interpreter", statistics.median(works) / bare, "times")


def _timed(bench: Bench, arena_bytes: int, digest: int | None, expected: Outcome) -> float:
    started = time.perf_counter()
    _trial(bench, arena_bytes, digest, expected)
    return time.perf_counter() - started


def _trial(bench: Bench, arena_bytes: int, digest: int | None, expected: Outcome) -> int:
    run_ = bench.run(arena_bytes, digest, Deadline.after(60))
    assert run_.trial.outcome is expected, run_.trial
    return run_.report.output_digest if run_.report else 0


def _bare_seconds(data: bytes) -> float:
    from tflite_micro.python.tflite_micro import runtime

    seconds = []
    for _ in range(TRIALS):
        started = time.perf_counter()
        runtime.Interpreter.from_bytes(data, arena_size=ARENA_BYTES).invoke()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


if __name__ == "__main__":
    run(measure)
