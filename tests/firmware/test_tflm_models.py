"""Real TFLM: firmware for real models links for Cortex-M4 and M7, and gives the measured arena numbers on twins."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest

from harness.board.catalogue import load_hardware_board
from harness.device.client import RebootedError
from harness.firmware.build import build_firmware
from harness.firmware.config import FirmwareConfig, Interpreter
from harness.firmware.elf import elf_problems, read_elf
from harness.firmware.image import FirmwareImage
from harness.firmware.library import TflmLibrary, choose_library, mismatch
from harness.firmware.op_resolver import resolver_methods
from harness.firmware.toolchain import find_toolchain
from harness.model.reader import read_model
from harness.wire import messages as wire
from tests.firmware.test_on_twin import Bench
from tests.patience import patient

pytestmark = [pytest.mark.tflm, pytest.mark.cases]

DOCS = Path(__file__).resolve().parents[2] / "docs" / "firmware.md"
MODELS = [
    "arduino_hello_world",
    "arduino_magic_wand",
    "audio_preprocessor_int8",
    "emlearn_mnist_cnn_int8",
    "esphome_v1_hey_jarvis",
    "esphome_v2_hey_jarvis",
    "esphome_v2_vad",
    "hello_world_float",
    "keyword_scrambled_8bit",
    "micro_speech_lstm",
    "micro_speech_quantized",
    "mlperf_ad_ToyCar_fullint_floatio",
    "mlperf_kws_ref_fp32",
    "mlperf_kws_ref_int8",
    "mlperf_sww_ref_int8",
    "mlperf_vww_96_int8",
    "mltk_rock_paper_scissors",
    "mnist_lstm_int8",
    "person_detect",
    "seanet_conv0",
    "seanet_transpose_conv0",
    "simple_add_model",
    "synth_if_f",
    "litert_rope",
]
BOARDS = {"cortex-m4": "nucleo-f446re", "cortex-m7": "nucleo-f767zi"}
ON_TWIN = ["arduino_hello_world", "keyword_scrambled_8bit", "mnist_lstm_int8", "micro_speech_quantized", "synth_if_f"]
_DOCUMENTED_ROW = re.compile(r"^\| (\w+)[^|]* \| ([\d,]+) \| ([\d,]+) \|$", re.MULTILINE)
#: Rows of the table under "Size": model, flash, RAM.
DOCUMENTED = [
    (name, int(flash.replace(",", "")), int(ram.replace(",", "")))
    for name, flash, ram in _DOCUMENTED_ROW.findall(DOCS.read_text(encoding="utf-8").partition("\n## Size\n")[2])
]


def build(
    libraries: list[TflmLibrary],
    shared: Path,
    folder: Path,
    board_name: str,
    name: str,
    kernels: str,
    capacity: int,
    **more: object,
) -> FirmwareImage:
    board = load_hardware_board(board_name)
    if not any(library.kernels == kernels and not mismatch(library, board) for library in libraries):
        pytest.skip(f"HARNESS_TFLM names no {kernels} library for {board_name}")
    model = read_model(shared / "models" / f"{name}.tflite")
    config = FirmwareConfig(capacity, **more)  # type: ignore[arg-type]
    return build_firmware(model, board, choose_library(libraries, board, kernels), config, folder)


@pytest.mark.parametrize("kernels", ["cmsis_nn", "reference"])
@pytest.mark.parametrize("core", list(BOARDS))
@pytest.mark.parametrize("name", MODELS)
def test_real_models_link(
    real_libraries: list[TflmLibrary], shared_dir: Path, tmp_path: Path, name: str, core: str, kernels: str
) -> None:
    image = build(real_libraries, shared_dir, tmp_path, BOARDS[core], name, kernels, 32 * 1024)
    assert list(elf_problems(read_elf(image.elf_path), load_hardware_board(BOARDS[core]))) == []
    assert 0 < image.owners["harness"].flash_bytes < 16 * 1024
    assert image.owners["harness"].ram_bytes < 6 * 1024
    assert image.owners["kernels"].flash_bytes > 0
    if kernels == "reference":
        assert set(image.operator_kernels.values()) == {"reference"}
    model = read_model(shared_dir / "models" / f"{name}.tflite")
    assert len(resolver_methods(model)) == len(image.operator_kernels)


def test_the_list_has_at_least_twenty_models() -> None:
    assert len(set(MODELS)) >= 20


def test_the_table_of_sizes_was_found() -> None:
    assert len(DOCUMENTED) == 2


@pytest.mark.parametrize(("name", "flash", "ram"), DOCUMENTED)
def test_the_documented_sizes_are_those_of_a_build(
    real_libraries: list[TflmLibrary], shared_dir: Path, tmp_path: Path, name: str, flash: int, ram: int
) -> None:
    """docs/firmware.md, Size: for the compiler and the TFLM that it names."""
    board = load_hardware_board("nucleo-f746zg")
    if not choose_library(real_libraries, board, "cmsis_nn").commit.startswith("90b983c"):
        pytest.skip("the sizes are those of TFLM 90b983c")
    if " 12.2." not in find_toolchain().version:
        pytest.skip("the sizes are those of GCC 12.2")
    image = build(real_libraries, shared_dir, tmp_path, board.name, name, "cmsis_nn", 32 * 1024)
    assert (image.owners["harness"].flash_bytes, image.owners["harness"].ram_bytes) == (flash, ram)


@pytest.mark.skipif(importlib.util.find_spec("unicorn") is None, reason="the extra [sim] (unicorn) is not installed")
@pytest.mark.parametrize("board", ["nucleo-f746zg", "nucleo-f446re", "nrf52840dk"])
@pytest.mark.parametrize("name", ON_TWIN)
def test_used_and_minimum_are_the_measured_ones(
    real_libraries: list[TflmLibrary], shared_dir: Path, tmp_path: Path, name: str, board: str
) -> None:
    golden = golden_of(shared_dir, name, "cortex-m4", "plain")
    used, least = golden["used_bytes"], golden["min_exact_bytes"]
    image = build(real_libraries, shared_dir, tmp_path, board, name, "cmsis_nn", 64 * 1024)
    bench = Bench(image, board)
    try:
        bench.boot()
        ample = bench.trial(64 * 1024)
        assert (ample.status, ample.used_bytes) == (wire.TrialStatus.OK, used)
        bench.boot()
        smallest = bench.trial(least)
        assert (smallest.status, smallest.output_digest) == (wire.TrialStatus.OK, ample.output_digest)
        bench.boot()
        try:
            below = bench.trial(least - 1)
            assert below.status is not wire.TrialStatus.OK or below.output_digest != ample.output_digest
        except RebootedError:
            assert bench.device.hello(patient()).fault_pending
        assert bench.twin.chip.violations == []
    finally:
        bench.close()


@pytest.mark.skipif(importlib.util.find_spec("unicorn") is None, reason="the extra [sim] (unicorn) is not installed")
@pytest.mark.parametrize("name", ON_TWIN[:2])
def test_recorded_categories_are_the_measured_ones(
    real_libraries: list[TflmLibrary], shared_dir: Path, tmp_path: Path, name: str
) -> None:
    golden = golden_of(shared_dir, name, "cortex-m4", "recording")
    image = build(
        real_libraries,
        shared_dir,
        tmp_path,
        "nucleo-f446re",
        name,
        "cmsis_nn",
        64 * 1024,
        interpreter=Interpreter.RECORDING,
    )
    bench = Bench(image, "nucleo-f446re")
    try:
        bench.boot()
        report = bench.trial(64 * 1024)
        assert report.used_bytes == golden["used_bytes"]
        assert (report.tail_bytes, report.head_bytes) == (golden["persistent_bytes"], golden["nonpersistent_bytes"])
        rows = bench.device.allocations(patient()).rows
        recorded = golden["categories"]
        assert isinstance(recorded, dict)
        assert [(row.requested_bytes, row.used_bytes, row.count) for row in rows] == [
            (entry["requested"], entry["used"], entry["count"]) for entry in recorded.values()
        ]
    finally:
        bench.close()


def golden_of(shared: Path, name: str, core: str, interpreter: str) -> dict[str, object]:
    for line in (shared / "golden" / "golden.jsonl").read_text().splitlines():
        row = json.loads(line)
        wanted = (f"{name}.tflite", core, "cmsis_nn", interpreter)
        if (row["file"], row["core"], row["kernels"], row["interpreter"]) == wanted:
            return dict(row)
    raise AssertionError(f"no golden record for {name}")
