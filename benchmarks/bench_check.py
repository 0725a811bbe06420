"""``harness check`` on models that are large in other ways: 10,000 operators, and a file made to keep it busy."""

from __future__ import annotations

import contextlib
import struct
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from result import Row, peak_and_seconds, run

from harness.errors import ModelFileError
from harness.model.builder import EXAMPLES, chain
from harness.model.checks import check_model
from harness.model.reader import parse_model

ROUNDS = 3
OPERATORS = 10_000
LIMIT_S = 1.0
LIMIT_MB = 200
SHARED_TABLES = 1_000_000


def measure() -> Iterator[Row]:
    small = EXAMPLES["hello_int8"]()
    yield Row("parse and check hello_int8", 1000 * min(_seconds(small) for _ in range(100)), "ms")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chain.tflite"
        path.write_bytes(chain(OPERATORS))
        runs = [peak_and_seconds([sys.executable, "-m", "harness", "check", str(path)]) for _ in range(ROUNDS)]
        if any(code for _, _, code in runs):
            sys.exit("harness check did not pass the chain")
        yield Row(f"harness check, {OPERATORS:,} operators: wall time", min(s for _, s, _ in runs), "s", LIMIT_S)
        peak = max(p for p, _, _ in runs)
        yield Row(f"harness check, {OPERATORS:,} operators: peak memory", peak / 1e6, "MB", LIMIT_MB)
    seconds = min(_seconds(_shared_tables()) for _ in range(ROUNDS))
    yield Row(f"a file that names one table {SHARED_TABLES:,} times", seconds, "s", LIMIT_S)


def _seconds(data: bytes) -> float:
    started = time.perf_counter()
    with contextlib.suppress(ModelFileError):
        check_model(parse_model(data, lenient=True))
    return time.perf_counter() - started


def _shared_tables() -> bytes:
    """A Model whose vector of subgraphs holds the offset of one empty table, again and again."""
    vtable = struct.pack("<HHHHHxx", 10, 8, 0, 0, 4)
    head = struct.pack("<I4s", 24, b"TFL3") + bytes(4) + vtable + struct.pack("<iI", 24 - 12, 4)
    target = 36 + 4 * SHARED_TABLES
    vector = struct.pack("<I", SHARED_TABLES) + b"".join(struct.pack("<I", target - at) for at in range(36, target, 4))
    return head + vector + struct.pack("<iHH", -4, 4, 4)


if __name__ == "__main__":
    run(measure)
