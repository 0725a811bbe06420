"""Objects are cached by content: another arena or model compiles only what changed."""

from __future__ import annotations

from pathlib import Path

from harness.board.catalogue import load_hardware_board
from harness.firmware.build import build_firmware
from harness.firmware.config import FirmwareConfig
from harness.firmware.library import TflmLibrary, choose_library
from tests.firmware.conftest import small_model


def test_another_arena_size_compiles_two_small_objects(fake_libraries: list[TflmLibrary], tmp_path: Path) -> None:
    board = load_hardware_board("nucleo-f446re")
    library = choose_library(fake_libraries, board, "cmsis_nn")
    cache = tmp_path / "cache"

    def objects(model_name: str, capacity_bytes: int) -> set[str]:
        before = set(cache.glob("*.o")) if cache.is_dir() else set()
        config = FirmwareConfig(capacity_bytes)
        build_firmware(small_model(model_name), board, library, config, tmp_path / "out", cache_dir=cache)
        assert list(cache.glob("*.part*")) == []
        return {path.name for path in set(cache.glob("*.o")) - before}

    first = objects("one", 4096)
    assert len(first) > 10
    assert len(objects("one", 8192)) == 2  # arena.cc, build_info.cc
    assert len(objects("one", 4096)) == 0
    assert len(objects("two", 4096)) == 2  # model.S, build_info.cc
