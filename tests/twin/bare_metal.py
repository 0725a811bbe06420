"""Compiles the small C programs that the twin's tests run, with the cross compiler that firmware is built with."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from harness.board.catalogue import load_hardware_board
from harness.board.record import Fpu, HardwareBoard
from tests.patience import PATIENCE_S

SOURCES = Path(__file__).resolve().parent / "firmware"
BOARDS = ("nucleo-f746zg", "nrf52840dk", "nucleo-f446re", "nucleo-l476rg")

_LINKER = """
ENTRY(begin)
SECTIONS {{
  .vectors {flash:#x} : {{ KEEP(*(.vectors)) }}
  .text : {{ *(.text*) *(.rodata*) . = ALIGN(4); }}
  _data_load = .;
  .data {ram:#x} : AT(_data_load) {{ _data = .; *(.data*) . = ALIGN(4); _edata = .; }}
  .bss : {{ _bss = .; *(.bss*) *(COMMON) . = ALIGN(4); _ebss = .; }}
  _stack_top = {stack:#x};
  /DISCARD/ : {{ *(.ARM.*) *(.comment) }}
}}
"""


def twin_board(name: str) -> HardwareBoard:
    return load_hardware_board("sim:" + name)


@cache
def compile_firmware(program: str, board_name: str, folder: Path, *defines: str) -> Path:
    """An ELF of ``firmware/<program>.c`` for the board."""
    compiler = shutil.which("arm-none-eabi-gcc")
    if compiler is None:
        pytest.skip("arm-none-eabi-gcc is not installed")
    board = load_hardware_board(board_name)
    tag = "-".join([program, board_name, *defines]).replace("=", "_")
    script, elf = folder / f"{tag}.ld", folder / f"{tag}.elf"
    ram = board.region(board.layout.data)
    script.write_text(_LINKER.format(flash=board.flash.address, ram=ram.address, stack=ram.end))
    fpu = [] if board.fpu is Fpu.NONE else ["-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"]
    command = [
        compiler,
        f"-mcpu={board.core}",
        "-mthumb",
        *fpu,
        "-Os",
        "-g",
        "-ffreestanding",
        "-nostdlib",
        "-fno-builtin",
        "-Wall",
        "-Werror",
        f"-DFAMILY_{board.family.value.upper()}",
        *(f"-D{define}" for define in defines),
        f"-T{script}",
        str(SOURCES / "start.c"),
        str(SOURCES / f"{program}.c"),
        "-lgcc",
        "-o",
        str(elf),
    ]
    subprocess.run(command, check=True, timeout=PATIENCE_S)
    return elf
