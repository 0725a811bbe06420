"""The checks on the ELF can fail: each is shown a program that breaks it."""

from __future__ import annotations

import dataclasses

import pytest

from harness.board.catalogue import load_hardware_board
from harness.errors import ExitCode
from harness.firmware.archive import BuildAttributes
from harness.firmware.elf import ElfCheckError, ElfFacts, Section, check_elf, elf_problems

BOARD = load_hardware_board("nucleo-f746zg")

GOOD = ElfFacts(
    sections=(
        Section(".vectors", 0x08000000, 64, 0x08000000, False, bytes(64)),
        Section(".text", 0x08000040, 8, 0x08000040, True, bytes.fromhex("00bf00bf00bf00bf")),
        Section(".data", 0x20000000, 16, 0x08000048, False, bytes(16)),
        Section(".arena", 0x20010000, 1024, None, False),
        Section(".stack", 0x2004DF00, 8448, None, False),
    ),
    symbols={"g_model": 0x08000040, "_estack": 0x20050000},
    functions=frozenset(),
    attributes=BuildAttributes(cpu_arch=13, fp_arch=8, hard_fp_use=1, vfp_args=1, enum_size=1),
    thumb_ranges=((0x08000040, 0x08000048),),
)


def with_section(name: str, **changes: object) -> ElfFacts:
    sections = [dataclasses.replace(s, **changes) if s.name == name else s for s in GOOD.sections]  # type: ignore[arg-type]
    return dataclasses.replace(GOOD, sections=tuple(sections))


def test_a_good_program_has_no_problem() -> None:
    assert list(elf_problems(GOOD, BOARD)) == []


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (with_section(".data", address=0x20060000), "outside the memories"),
        (with_section(".arena", size_bytes=0x60000), "outside the memories"),
        (with_section(".data", load_address=0x20000000), "outside the flash"),
        (with_section(".vectors", address=0x08000100), "vector table"),
        (with_section(".arena", address=0x20010008), "not 16-aligned"),
        (with_section(".arena", address=0x08010000), "not in RAM"),
        (dataclasses.replace(GOOD, symbols={"_estack": 0x20050000}), "no model"),
        (dataclasses.replace(GOOD, symbols={**GOOD.symbols, "g_model": 0x08000044}), "not 16-aligned in flash"),
        (dataclasses.replace(GOOD, symbols={**GOOD.symbols, "_estack": 0x20060000}), "the stack does not end"),
        (
            dataclasses.replace(GOOD, attributes=BuildAttributes(cpu_arch=13, fp_arch=8, vfp_args=1)),
            "double-precision",
        ),
        (with_section(".text", data=bytes.fromhex("00bfabbe00bf00bf")), "semihosting call (bkpt 0xab) at 0x08000042"),
    ],
)
def test_each_problem_is_found_and_named(facts: ElfFacts, said: str) -> None:
    assert any(said in problem for problem in elf_problems(facts, BOARD)), list(elf_problems(facts, BOARD))
    with pytest.raises(ElfCheckError) as caught:
        check_elf(facts, BOARD)
    assert caught.value.exit_code == ExitCode.BUILD


def test_the_second_half_of_a_wide_instruction_is_no_semihosting_call() -> None:
    wide = with_section(".text", data=bytes.fromhex("40f2abbe00bf00bf"))  # movw with 0xBEAB as its second halfword
    assert list(elf_problems(wide, BOARD)) == []


def test_segments_are_joined_and_gaps_filled_with_erased_flash() -> None:
    facts = dataclasses.replace(
        GOOD,
        sections=(
            Section(".a", 0x08000000, 4, 0x08000000, True, b"abcd"),
            Section(".b", 0x08000010, 4, 0x08000008, False, b"efgh"),
            Section(".c", 0x08001000, 2, 0x08001000, False, b"ij"),
            Section(".bss", 0x20000000, 8, None, False),
        ),
    )
    assert facts.segments == ((0x08000000, b"abcd\xff\xff\xff\xffefgh"), (0x08001000, b"ij"))
