"""Each emulated board boots a bare-metal program and talks; unmodified pyOCD programs it with its own algorithm."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S

from .bare_metal import BOARDS, compile_firmware, twin_board


@pytest.mark.parametrize("board", BOARDS)
def test_a_board_boots_says_hello_and_echoes_every_byte(board: str, run_firmware: Callable) -> None:
    twin, port = run_firmware("hello", board)
    assert port.readline() == b"hello from the twin\n"
    assert port.readline() == b"data=00001234\n"
    sent = bytes(range(256)) * 8
    writer = threading.Thread(target=port.write, args=(sent,))
    writer.start()
    echoed = port.read(3 * len(sent))
    writer.join()
    assert echoed == b"".join(bytes([byte]) * 3 for byte in sent)
    assert twin.failure is None
    assert twin.chip.violations == []
    assert twin.chip.bus.complaints == []


@pytest.mark.parametrize("board", BOARDS)
def test_unmodified_pyocd_programs_the_twin_with_its_own_flash_algorithm(
    board: str, firmware_dir: Path, tmp_path: Path
) -> None:
    """In a process of pyOCD's own, which knows the twin by the entry point and HARNESS_SIM_BOARDS only."""
    elf = compile_firmware("hello", board, firmware_dir)
    environment = os.environ | {"HARNESS_SIM_BOARDS": board, "HARNESS_SIM_STATE": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "pyocd", "flash", "-O", "hide_programming_progress=1", str(elf)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    kept = (tmp_path / f"sim1-{board}.flash").read_bytes()
    flash_base = twin_board(board).flash.address
    from .conftest import segments

    with elf.open("rb") as file:
        for address, data in segments(file):
            assert kept[address - flash_base : address - flash_base + len(data)] == data


def test_pyocd_lists_the_twins_that_the_environment_names() -> None:
    environment = os.environ | {"HARNESS_SIM_BOARDS": "nucleo-f746zg,nrf52840dk,nucleo-f746zg"}
    done = subprocess.run(
        [sys.executable, "-m", "pyocd", "list"], env=environment, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 0
    for uid in ("sim1-nucleo-f746zg", "sim2-nucleo-f746zg", "sim1-nrf52840dk"):
        assert uid in done.stdout
