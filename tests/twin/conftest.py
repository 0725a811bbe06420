"""Twins for tests: built, loaded with a small firmware, closed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import serial
from elftools.elf.elffile import ELFFile

from harness.sim.twin import Twin

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
        ports.append(serial.Serial(twin.endpoint.url, 115200, timeout=5))
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
