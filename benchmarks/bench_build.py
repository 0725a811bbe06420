"""Building firmware: the first build, and a second one with another arena size, another model, and nothing changed.

Links with the TFLM library that is registered (or named by HARNESS_TFLM), and with the tests' fake where there is none.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from result import Row, run

from harness.board.catalogue import load_hardware_board
from harness.errors import HarnessError
from harness.firmware.build import build_firmware
from harness.firmware.config import FirmwareConfig
from harness.firmware.library import TflmLibrary, choose_library, inspect_tree
from harness.firmware.registry import Registry
from harness.model.graph import Model
from harness.model.reader import read_model

ROOT = Path(__file__).resolve().parent.parent
BOARD = load_hardware_board("nucleo-f746zg")
SHARE = 0.2


def measure() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        library, kind = _library(Path(folder))
        model = read_model(ROOT / "examples" / "kws.tflite")
        cache = Path(folder) / "cache"

        def seconds(chosen: Model, capacity_bytes: int) -> float:
            started = time.perf_counter()
            out = Path(folder) / "out"
            build_firmware(chosen, BOARD, library, FirmwareConfig(capacity_bytes), out, cache_dir=cache)
            return time.perf_counter() - started

        first = seconds(model, 65536)
        yield Row(f"first build, {kind}", first, "s")
        again = min(seconds(model, 65536 - 1024 * step) for step in range(1, 4))
        yield Row("another arena size", again, "s")
        yield Row("another arena size, share of the first", again / first, "", SHARE)
        yield Row("nothing changed", seconds(model, 65536), "s")
        yield Row("another model", seconds(read_model(ROOT / "examples" / "residual.tflite"), 65536), "s")


def _library(folder: Path) -> tuple[TflmLibrary, str]:
    try:
        return choose_library(Registry().libraries(), BOARD, "cmsis_nn"), "real TFLM"
    except HarnessError:
        sys.path.insert(0, str(ROOT))
        from tests.firmware.fake_tflm import build_fake_tflm

        return inspect_tree(build_fake_tflm(folder))[0], "fake TFLM"


if __name__ == "__main__":
    run(measure)
