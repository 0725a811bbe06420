"""Compiler, libraries and models for the firmware tests."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from harness.board.catalogue import load_hardware_board
from harness.board.record import HardwareBoard
from harness.firmware.build import build_firmware
from harness.firmware.config import FirmwareConfig
from harness.firmware.image import FirmwareImage
from harness.firmware.library import TflmLibrary, choose_library, inspect_tree
from harness.model.builder import ModelBuilder, layers
from harness.model.graph import Model, TensorType
from harness.model.reader import parse_model
from tests.firmware.fake_tflm import ARCHS, build_fake_tflm


def needs_compiler() -> None:
    if shutil.which("arm-none-eabi-g++") is None:
        pytest.skip("arm-none-eabi-g++ is not installed: harness doctor names the packages")


@pytest.fixture(scope="session")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("objects")


@pytest.fixture(scope="session")
def fake_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    needs_compiler()
    return tmp_path_factory.mktemp("fake-tflm")


@pytest.fixture(scope="session")
def fake_libraries(fake_root: Path) -> list[TflmLibrary]:
    """The fake TFLM (tests/firmware/fake_tflm) for every instruction set, with both kernel sets."""
    found: list[TflmLibrary] = []
    for arch in ARCHS:
        for kernels in ("cmsis_nn", "reference"):
            found += inspect_tree(build_fake_tflm(fake_root, arch, kernels))
    return found


@pytest.fixture(scope="session")
def real_libraries() -> list[TflmLibrary]:
    """Real TFLM, from the trees that HARNESS_TFLM names."""
    named = os.environ.get("HARNESS_TFLM")
    if not named:
        pytest.skip("HARNESS_TFLM names no TFLM library")
    needs_compiler()
    return [library for part in named.split(os.pathsep) if part for library in inspect_tree(Path(part).resolve())]


def small_model(description: str = "a small model", depth: int = 2) -> Model:
    """A chain of RELUs over 64 int8: the fake needs (depth + 1) * 64 + 256 + 16 * depth + 24 * (depth + 1) bytes."""
    builder = ModelBuilder(seed=1, description=description)
    graph = builder.graph
    value = graph.input((1, 64), TensorType.INT8)
    for _ in range(depth):
        value = layers.fully_connected(graph, value, 64)
    graph.output(value)
    return parse_model(builder.finish(), "small.tflite")


Builder = Callable[..., FirmwareImage]


@pytest.fixture(scope="session")
def build_fake(fake_libraries: list[TflmLibrary], cache_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Builder:
    """Build a firmware with the fake: ``build_fake(board, model, capacity_bytes=…)``."""

    def build(
        board: str | HardwareBoard,
        model: Model | None = None,
        kernels: str = "cmsis_nn",
        others: Sequence[Model] = (),
        **options: object,
    ) -> FirmwareImage:
        target = load_hardware_board(board) if isinstance(board, str) else board
        config = FirmwareConfig(**{"capacity_bytes": 16384, **options})  # type: ignore[arg-type]
        return build_firmware(
            model or small_model(),
            target,
            choose_library(fake_libraries, target, kernels),
            config,
            tmp_path_factory.mktemp("build"),
            others=others,
            cache_dir=cache_dir,
        )

    return build
