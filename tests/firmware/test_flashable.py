"""What is named to be flashed and is no program for the chip: said what it is, with exit code 2."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.board.catalogue import load_hardware_board
from harness.errors import ExitCode, UsageError
from harness.firmware.flashable import FlashableElf, read_flashable

BOARD = load_hardware_board("nucleo-f746zg")
_ARM, _X86, _RISCV = 40, 3, 243
_REL, _EXEC, _DYN, _CORE = 1, 2, 3, 4
_CODE = bytes(range(64))


def elf(machine: int = _ARM, kind: int = _EXEC, load: int = 0x0800_0000, data: bytes = _CODE, order: int = 1) -> bytes:
    """A 32-bit ELF with one section, ``.text``, in one segment (System V ABI, 4.1)."""
    names = b"\0.text\0.shstrtab\0"
    e = "<" if order == 1 else ">"
    at = 52 + 32
    header = struct.pack(
        e + "16sHHIIIIIHHHHHH",
        b"\x7fELF" + bytes([1, order, 1]),
        *(kind, machine, 1, load, 52, at + len(data) + len(names), 0, 52, 32, 1, 40, 3, 2),
    )
    segment = struct.pack(e + "8I", 1, at, load, load, len(data), len(data), 5, 4)
    sections = bytes(40)
    sections += struct.pack(e + "10I", 1, 1, 6, load, at, len(data), 0, 0, 4, 0)
    sections += struct.pack(e + "10I", 7, 3, 0, 0, at + len(data), len(names), 0, 0, 1, 0)
    return header + segment + data + names + sections


def read(folder: Path, content: bytes) -> FlashableElf:
    path = folder / "some.elf"
    path.write_bytes(content)
    return read_flashable(path, BOARD)


def test_a_foreign_program_for_the_flash_is_taken_and_not_asked(tmp_path: Path) -> None:
    assert read(tmp_path, elf()) == FlashableElf(((0x0800_0000, _CODE),), foreign="no harness firmware")


def test_a_firmware_of_ours_without_symbols_is_told_from_a_foreign_one(tmp_path: Path) -> None:
    assert "stripped" in read(tmp_path, elf(data=b"tflm-harness 1.2 on a board")).foreign


@pytest.mark.parametrize(
    ("content", "code", "said"),
    [
        (elf(machine=_X86), "flash.wrong_machine", "another machine: Intel 80386, 32 bit; the STM32F746ZG runs"),
        (elf(machine=_RISCV), "flash.wrong_machine", "another machine: RISC-V, 32 bit"),
        (elf(order=2), "flash.wrong_machine", "another machine: ARM, 32 bit, big-endian"),
        (elf(kind=_REL), "flash.wrong_machine", "is an object file: it is not linked"),
        (elf(kind=_DYN), "flash.wrong_machine", "is a shared library or a position-independent program"),
        (elf(kind=_CORE), "flash.wrong_machine", "is a core dump"),
        (
            elf(load=0x2001_0000),
            "flash.not_in_flash",
            'section ".text" is loaded to 0x20010000, to sram1, which is ram',
        ),
        (elf(load=0x9000_0000), "flash.not_in_flash", "loaded to 0x90000000, where the STM32F746ZG has no flash"),
        (elf(data=b""), "flash.empty", "no section with contents"),
        (b"", "flash.no_elf", "it is no ELF (its first bytes are none)"),
        (b":020000040800F2\n", "flash.no_elf", "it is no ELF (its first bytes are 3a 30 32 30)"),
        (elf()[:40], "flash.damaged_elf", "damaged or cut short"),
    ],
)
def test_what_is_no_firmware_for_the_chip_is_said_to_be_what_it_is(
    tmp_path: Path, content: bytes, code: str, said: str
) -> None:
    with pytest.raises(UsageError) as caught:
        read(tmp_path, content)
    assert caught.value.code == code
    assert said in caught.value.message
    assert caught.value.exit_code is ExitCode.USAGE


def test_a_program_of_this_computer_is_for_another_machine() -> None:
    program = Path(sys.executable).resolve()
    if program.read_bytes()[:4] != b"\x7fELF":
        pytest.skip("this computer's programs are no ELF files")
    with pytest.raises(UsageError, match=r"is a program for another machine: .*, 64 bit"):
        read_flashable(program, BOARD)


@given(st.integers(0, len(elf()) - 1), st.lists(st.tuples(st.integers(0, len(elf()) - 1), st.integers(0, 255))))
def test_a_damaged_elf_is_bad_usage_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, length: int, changes: list[tuple[int, int]]
) -> None:
    content = bytearray(elf())
    for place, value in changes:
        content[place] = value
    folder = tmp_path_factory.getbasetemp()
    assert _read_or_refused(folder, bytes(content))
    assert _read_or_refused(folder, bytes(content[:length]))


def _read_or_refused(folder: Path, content: bytes) -> bool:
    try:
        return bool(read(folder, content).segments)
    except UsageError as exc:
        return exc.code.startswith("flash.")
