"""Objects are cached by content: another arena or model compiles only what changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from harness.board.catalogue import load_hardware_board
from harness.firmware.build import build_firmware
from harness.firmware.config import FirmwareConfig
from harness.firmware.library import TflmLibrary, choose_library
from tests.firmware.conftest import small_model
from tests.firmware.fake_tflm import build_fake_tflm
from tests.patience import PATIENCE_S

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


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


#: In place of the compiler: notes each object, and interrupts ``harness`` with the first one that is done.
_COMPILER = """#!/bin/sh
case " $* " in *" -c "*) ;; *) exec {real} "$@";; esac
{real} "$@" || exit
echo object >> {log}
mkdir {log}.once 2>/dev/null && kill -INT $PPID
exit 0
"""


def test_ctrl_c_begins_no_further_object_and_those_that_are_done_are_kept(fake_root: Path, tmp_path: Path) -> None:
    library = build_fake_tflm(fake_root, "cortex-m4+fp", "cmsis_nn")
    real, log = shutil.which("arm-none-eabi-g++"), tmp_path / "log"
    compiler = tmp_path / "bin" / "arm-none-eabi-g++"
    compiler.parent.mkdir()
    compiler.write_text(_COMPILER.format(real=real, log=log))
    compiler.chmod(0o755)
    environment = os.environ | {
        "HARNESS_TFLM": str(library),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "PATH": f"{compiler.parent}{os.pathsep}{os.environ['PATH']}",
    }
    argv = [sys.executable, "-m", "harness", "build", "--board", "nucleo-f446re", str(EXAMPLES / "hello.tflite")]

    def build() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            argv, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )

    interrupted = build()
    begun = log.read_text().count("object")
    assert interrupted.returncode == 130, interrupted.stderr
    assert "Traceback" not in interrupted.stderr
    assert 1 <= begun <= 2 * (os.cpu_count() or 2)
    kept = set((tmp_path / "cache").rglob("*.o"))
    assert len(kept) == begun
    done = build()
    assert done.returncode == 0, done.stderr
    every = set((tmp_path / "cache").rglob("*.o"))
    assert kept < every
    assert log.read_text().count("object") == len(every) > 10
