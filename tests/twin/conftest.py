"""Twins for tests: built, loaded with a small firmware, closed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import serial
from elftools.elf.elffile import ELFFile

from harness.board.lab_file import RigEntry
from harness.model.builder import ModelBuilder, layers, state
from harness.model.graph import TensorType
from harness.record.schema import SweepRecord
from harness.sim.twin import Twin
from harness.sweep.draft import Draft
from harness.sweep.flow import keep_record, sweep_model
from harness.sweep.request import Progress, SilentProgress, SweepRequest
from tests.firmware.fake_tflm import build_fake_tflm
from tests.patience import PATIENCE_S

from .bare_metal import compile_firmware, twin_board


@pytest.fixture(scope="session")
def firmware_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("firmware")


@pytest.fixture
def make_twin() -> Iterator[Callable[[str], Twin]]:
    made: list[Twin] = []

    def make(name: str) -> Twin:
        made.append(Twin(twin_board(name)))
        return made[-1]

    yield make
    for twin in made:
        twin.close()


@pytest.fixture
def run_firmware(
    make_twin: Callable[[str], Twin], firmware_dir: Path
) -> Iterator[Callable[..., tuple[Twin, serial.Serial]]]:
    """``run_firmware(program, board)``: the program in flash, out of reset; its serial port open. Flash is written by
    hand here: what pyOCD does is tested with pyOCD."""
    ports: list[serial.Serial] = []

    def run(program: str, board: str, *defines: str) -> tuple[Twin, serial.Serial]:
        twin = make_twin(board)
        ports.append(serial.Serial(twin.endpoint.url, 115200, timeout=PATIENCE_S))
        burn(twin, compile_firmware(program, board, firmware_dir, *defines))
        twin.assert_reset(True)
        twin.assert_reset(False)
        return twin, ports[-1]

    yield run
    for port in ports:
        port.close()


def burn(twin: Twin, elf: Path) -> None:
    """Put the program's bytes into the flash cells, past the controller."""
    with twin.turn() as chip, elf.open("rb") as file:
        for address, data in segments(file):
            offset = chip.flash.offset(address, len(data))
            assert offset is not None, f"segment at {address:#x} is not in flash"
            chip.flash.view[offset : offset + len(data)] = data
        chip.core.engine.code_changed()


def segments(file: object) -> list[tuple[int, bytes]]:
    found = [segment for segment in ELFFile(file).iter_segments() if segment["p_type"] == "PT_LOAD"]
    return [(segment["p_paddr"], segment.data()) for segment in found if segment["p_filesz"]]


@pytest.fixture(scope="session")
def fake_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("arm-none-eabi-g++") is None:
        pytest.skip("arm-none-eabi-g++ is not installed: harness doctor names the packages")
    return build_fake_tflm(tmp_path_factory.mktemp("fake-tflm"), "cortex-m4+fp", "cmsis_nn")


@pytest.fixture
def sweep(fake_library: Path, tmp_path: Path) -> Callable[..., SweepRecord]:
    """``sweep(board)``: one job (a sweep, unless ``job`` is another) of a small model on the board's twin, with the
    stand-in TFLM; its record. ``faults`` are the twin's, ``steer`` words are the stand-in's."""

    def run(
        board: str,
        *faults: str,
        steer: str = "a small model",
        model: bytes | None = None,
        trial_timeout_s: float = 120.0,
        resume: bool = False,
        reference: bool = False,
        library: Path | None = None,
        progress: Progress | None = None,
        job: Callable[[SweepRequest, Progress], Draft] = sweep_model,
        **choices: Any,
    ) -> SweepRecord:
        path = tmp_path / "small.tflite"
        path.write_bytes(model or small_model(steer))
        before = os.environ.get("HARNESS_TFLM")
        os.environ["HARNESS_TFLM"] = str(library or fake_library)
        try:
            name = f"sim:{board}"
            request = SweepRequest(
                path,
                name,
                results=tmp_path / "results",
                rig=RigEntry(name="desk", board=name, faults=faults),
                trial_timeout_s=trial_timeout_s,
                reference=reference,
                resume=resume,
                **choices,
            )
            return keep_record(job(request, progress or SilentProgress()))
        finally:
            if before is None:
                del os.environ["HARNESS_TFLM"]
            else:
                os.environ["HARNESS_TFLM"] = before

    return run


def small_model(description: str) -> bytes:
    builder = ModelBuilder(seed=1, description=description)
    graph = builder.graph
    value = graph.input((1, 64), TensorType.INT8)
    for _ in range(2):
        value = layers.fully_connected(graph, value, 64)
    graph.output(value)
    return builder.finish()


def svdf_model(description: str) -> bytes:
    """As ``small_model``, with a state."""
    builder = ModelBuilder(seed=1, description=description)
    graph = builder.graph
    graph.output(state.svdf(graph, graph.input((1, 64), TensorType.INT8), 16, 8))
    return builder.finish()
