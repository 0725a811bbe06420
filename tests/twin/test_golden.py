"""Real TFLM, flashed by pyOCD into emulated boards: used bytes, categories and minimum are those measured elsewhere.

The goldens were measured on another emulator (QEMU) with another harness; the arena does not depend on timing.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from harness.sweep.flow import sweep_model
from harness.sweep.request import SilentProgress, SweepRequest
from harness.units import align_up

pytestmark = [pytest.mark.tflm, pytest.mark.cases]

MODELS = (
    "arduino_hello_world",
    "hello_world_float",
    "keyword_scrambled_8bit",
    "micro_speech_quantized",
    "mlperf_kws_ref_int8",
    "mnist_lstm_int8",
)
#: The last one has a double-precision FPU, and so a library of its own.
BOARDS = {"nrf52840dk": "cortex-m4", "nucleo-f746zg": "cortex-m7", "nucleo-f767zi": "cortex-m7"}


@pytest.fixture(scope="module")
def goldens(shared_dir: Path) -> dict[tuple[str, str], dict[str, Any]]:
    rows = (json.loads(line) for line in (shared_dir / "golden" / "golden.jsonl").read_text().splitlines())
    return {
        (row["file"], row["core"]): row
        for row in rows
        if row["kernels"] == "cmsis_nn" and row["interpreter"] == "recording"
    }


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("model", MODELS)
def test_a_twin_measures_what_was_measured_elsewhere(
    model: str, board: str, shared_dir: Path, goldens: dict[tuple[str, str], dict[str, Any]], tmp_path: Path
) -> None:
    if not os.environ.get("HARNESS_TFLM"):
        pytest.skip("HARNESS_TFLM names no TFLM library")
    golden = goldens[f"{model}.tflite", BOARDS[board]]
    request = SweepRequest(
        shared_dir / "models" / f"{model}.tflite",
        f"sim:{board}",
        interpreter="recording",
        results=tmp_path,
        reference=False,
        timeout_s=900,
        trial_timeout_s=120,
    )
    record = sweep_model(request, SilentProgress()).finish()
    assert record.status == "ok", record.error
    assert record.measured is not None
    assert record.search is not None
    assert record.measured.timing == "instructions"
    print(f"{model} {board}: used {record.measured.used_bytes}, min {record.search.min_bytes}")
    assert record.measured.used_bytes == golden["used_bytes"]
    assert record.search.min_bytes == align_up(golden["min_exact_bytes"], 16)
    measured = {row.name: row.used_bytes for row in record.measured.categories}
    for name, row in golden["categories"].items():
        assert measured[name] == row["used"], name
