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
#: A vector table, and something behind it.
_CODE = struct.pack("<II", 0x2005_0000, 0x0800_0041) + bytes(range(56))


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


def elf_of(*parts: tuple[int, bytes]) -> bytes:
    """One with a section and a segment for each part, which are (load address, bytes): ``.s0``, ``.s1`` and so on."""
    names = b"\0" + b"".join(b".s%d\0" % index for index in range(len(parts))) + b".shstrtab\0"
    at = 52 + 32 * len(parts)
    segments = sections = contents = b""
    for index, (load, data) in enumerate(parts):
        here = at + len(contents)
        segments += struct.pack("<8I", 1, here, load, load, len(data), len(data), 5, 4)
        sections += struct.pack("<10I", 1 + 4 * index, 1, 6, load, here, len(data), 0, 0, 4, 0)
        contents += data
    header = struct.pack(
        "<16sHHIIIIIHHHHHH",
        b"\x7fELF\1\1\1",
        *(_EXEC, _ARM, 1, parts[0][0], 52, at + len(contents) + len(names), 0, 52, 32, len(parts), 40),
        *(len(parts) + 2, len(parts) + 1),
    )
    strings = struct.pack("<10I", names.index(b".shstrtab"), 3, 0, 0, at + len(contents), len(names), 0, 0, 1, 0)
    return header + segments + contents + names + bytes(40) + sections + strings


def read(folder: Path, content: bytes) -> FlashableElf:
    path = folder / "some.elf"
    path.write_bytes(content)
    return read_flashable(path, BOARD)


def test_a_foreign_program_for_the_flash_is_taken_and_not_asked(tmp_path: Path) -> None:
    assert read(tmp_path, elf()) == FlashableElf(((0x0800_0000, _CODE),), foreign="no harness firmware")


def vectors(stack: int, entry: int) -> bytes:
    return struct.pack("<II", stack, entry) + bytes(56)


@pytest.mark.parametrize(
    ("content", "warnings"),
    [
        (elf(data=vectors(0x2001_0000, 0x0800_0041)), []),
        (elf(data=vectors(0x2001_0000, 0x0020_0041)), []),  # the ITCM's view of the flash
        (elf(data=b"\xff" * 64), ["0xffffffff at 0x08000000, is in no RAM", "0xffffffff at 0x08000004, is where no"]),
        (elf(data=vectors(0x2001_0000, 0x0800_0040)), ["0x08000040 at 0x08000004, has no Thumb bit"]),
        (elf(data=vectors(0x0800_0000, 0x0800_0041)), ["0x08000000 at 0x08000000, is in no RAM"]),
        (elf(data=b"1234"), ["ends within its vector table: 4 bytes"]),
        (elf(load=0x0800_8000), ["nothing is loaded to 0x08000000"]),
    ],
)
def test_a_program_that_the_core_would_not_start_is_warned_of(
    tmp_path: Path, content: bytes, warnings: list[str]
) -> None:
    told = read(tmp_path, content).warnings
    assert len(told) == len(warnings), told
    assert all(said in one for said, one in zip(warnings, told, strict=True)), told


def test_sections_that_lie_next_to_each_other_do_not_overlap(tmp_path: Path) -> None:
    parts = ((0x0800_0000, bytes(32)), (0x0800_0020, _CODE), (0x0801_0000, _CODE))
    assert read(tmp_path, elf_of(*parts)).segments == ((0x0800_0000, bytes(32) + _CODE), (0x0801_0000, _CODE))


def test_a_program_is_not_told_to_take_a_smaller_model(tmp_path: Path) -> None:
    for content in (elf(load=0x080F_FFF0), elf_of((0x0800_0000, _CODE), (0x0800_0000, _CODE))):
        with pytest.raises(UsageError) as caught:
            read(tmp_path, content)
        assert "model" not in caught.value.remedy


def test_a_firmware_of_ours_without_symbols_is_told_from_a_foreign_one(tmp_path: Path) -> None:
    assert "stripped" in read(tmp_path, elf(data=b"tflm-harness 1.2 on a board")).foreign


@pytest.mark.parametrize(
    ("content", "code", "said"),
    [
        (elf(machine=_X86), "flash.wrong_machine", "another machine: Intel 80386, 32 bit; the STM32F746ZG runs"),
        (elf(machine=_RISCV), "flash.wrong_machine", "another machine: RISC-V, 32 bit"),
        (elf(order=2), "flash.wrong_machine", "another machine: ARM, 32 bit, big-endian"),
        (elf(machine=0x2800), "flash.wrong_machine", "another machine: number 10240, 32 bit"),
        (elf(machine=0x2800, order=2), "flash.wrong_machine", "another machine: number 10240, 32 bit, big-endian"),
        (elf(kind=_REL), "flash.wrong_machine", "is an object file: it is not linked"),
        (elf(kind=_DYN), "flash.wrong_machine", "is a shared library or a position-independent program"),
        (elf(kind=_CORE), "flash.wrong_machine", "is a core dump"),
        (
            elf(load=0x2001_0000),
            "flash.not_in_flash",
            'section ".text" is loaded to 0x20010000, to sram1, which is ram',
        ),
        (elf(load=0x9000_0000), "flash.not_in_flash", "loaded to 0x90000000, where the STM32F746ZG has no flash"),
        (
            elf(load=0x080F_FFF0),
            "flash.outside",
            'section ".text" lies at 0x080ffff0 to 0x0810002f, 48 bytes beyond the flash of the STM32F746ZG, '
            "which ends at 0x080fffff",
        ),
        (
            elf_of((0x0800_0100, _CODE), (0x0800_0000, bytes(0x101))),
            "flash.overlap",
            'section ".s1" (0x08000000 to 0x08000100) overlaps section ".s0" (0x08000100 to 0x0800013f)',
        ),
        (
            elf_of((0x0800_0000, _CODE), (0x0800_0000, _CODE)),
            "flash.overlap",
            'section ".s0" (0x08000000 to 0x0800003f) overlaps section ".s1" (0x08000000 to 0x0800003f)',
        ),
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
