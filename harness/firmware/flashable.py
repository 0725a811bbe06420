"""An ELF that somebody names to be flashed: is it a program for this chip, and is it a firmware of ours?"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from harness.board.record import HardwareBoard
from harness.bounded_file import read_bounded
from harness.errors import UsageError
from harness.firmware.elf import ElfFacts, Section, read_elf
from harness.units import counted, quoted, safe_text
from harness.wire.messages import BOOT_LINE_PREFIX

#: harness::kBuildId and harness::kModelSha256 of build_info.h, as the C++ ABI mangles them, and their sizes.
_BUILD_ID, _BUILD_ID_BYTES = "_ZN7harness8kBuildIdE", 16
_MODEL_SHA256, _MODEL_SHA256_BYTES = "_ZN7harness12kModelSha256E", 32
_RTT_CONTROL_BLOCK = "_SEGGER_RTT"

_VECTORS_BYTES = 8
#: Where the default memory map has code, DDI 0403E B3.1: flash and its aliases, SRAM; external RAM.
_CODE = ((0, 0x4000_0000), (0x6000_0000, 0xA000_0000))

#: What an ELF is by its e_type, where it is no program with fixed addresses.
_NOT_LINKED = {
    "ET_REL": "an object file: it is not linked",
    "ET_DYN": "a shared library or a position-independent program",
    "ET_CORE": "a core dump",
}


@dataclass(frozen=True, slots=True)
class FlashableElf:
    """``segments`` are (load address, bytes). ``build_id`` (32 hex digits) and ``model_sha256`` are what a firmware of
    ours answers in its hello; both "" in another program, of which ``foreign`` then says why it is not asked.
    ``rtt_address``: of the RTT control block of a firmware of ours that talks so. ``warnings``: why the chip would not
    start it."""

    segments: tuple[tuple[int, bytes], ...] = field(repr=False)
    build_id: str = ""
    model_sha256: str = ""
    rtt_address: int | None = None
    foreign: str = ""
    warnings: tuple[str, ...] = ()


def read_flashable(path: Path, board: HardwareBoard) -> FlashableElf:
    """Raises UsageError for a file that is no ELF, or one that is no program for the flash of this chip."""
    from elftools.common.exceptions import ELFError

    try:
        raw = read_bounded(path)
        if not raw.startswith(b"\x7fELF"):
            raise UsageError(
                f"cannot flash {quoted(str(path))}: it is no ELF (its first bytes are {raw[:4].hex(' ') or 'none'})",
                remedy="name a .tflite model or an ELF",
                code="flash.no_elf",
            )
        _check_machine(path, raw, board)
        facts = read_elf(path)
    except OSError as exc:
        raise UsageError(f"cannot flash {quoted(str(path))}: {exc.strerror}", remedy="check the path") from exc
    except (ELFError, ValueError, LookupError, TypeError, AttributeError) as exc:  # pyelftools on damaged headers
        raise UsageError(
            f"cannot flash {quoted(str(path))}: the ELF is damaged or cut short ({safe_text(str(exc))})",
            remedy="link it again, or copy it again",
            code="flash.damaged_elf",
        ) from exc
    _check_places(path, facts, board)
    build_id = _data(facts, _BUILD_ID, _BUILD_ID_BYTES)
    if build_id:
        model = _data(facts, _MODEL_SHA256, _MODEL_SHA256_BYTES)
        return FlashableElf(facts.segments, build_id.hex(), model.hex(), facts.symbols.get(_RTT_CONTROL_BLOCK))
    mark = BOOT_LINE_PREFIX.encode()
    is_ours = any(mark in data for _, data in facts.segments)
    why = "the ELF has no symbol that tells its build id: it is stripped" if is_ours else "no harness firmware"
    return FlashableElf(facts.segments, foreign=why, warnings=tuple(_vector_problems(facts, board)))


def _vector_problems(facts: ElfFacts, board: HardwareBoard) -> Iterator[str]:
    """What is wrong where the core looks for its stack and its first instruction; a bootloader may stand there."""
    start = board.flash.address
    table = next((data for address, data in facts.segments if address == start), None)
    if table is None:
        yield (
            f"nothing is loaded to 0x{start:08x}, where the core finds its first stack pointer and instruction: "
            "it starts what is there already, as a bootloader"
        )
        return
    if len(table) < _VECTORS_BYTES:
        yield f"the program ends within its vector table: {counted(len(table), 'byte')} at 0x{start:08x}"
        return
    stack, entry = (int.from_bytes(table[at : at + 4], "little") for at in (0, 4))
    if not any(ram.address < stack <= ram.end for ram in board.rams):
        yield f"its first stack pointer, 0x{stack:08x} at 0x{start:08x}, is in no RAM of the {board.chip}"
    if not entry & 1:
        yield f"its reset vector, 0x{entry:08x} at 0x{start + 4:08x}, has no Thumb bit: the core faults at once"
    elif not any(first <= entry < last for first, last in _CODE):
        yield f"its reset vector, 0x{entry:08x} at 0x{start + 4:08x}, is where no code can be"


def _check_machine(path: Path, raw: bytes, board: HardwareBoard) -> None:
    from elftools.elf.descriptions import describe_e_machine
    from elftools.elf.elffile import ELFFile

    elf = ELFFile(io.BytesIO(raw))
    kind, machine = elf["e_type"], elf["e_machine"]
    said = ""
    if machine != "EM_ARM" or not elf.little_endian:
        known = isinstance(machine, str)  # of another byte order, or a rare machine: a number
        name = safe_text(str(describe_e_machine(machine))) if known else f"number {machine}"
        order = "" if elf.little_endian else ", big-endian"
        said = f"is a program for another machine: {name}, {elf.elfclass} bit{order}"
    elif kind != "ET_EXEC":
        said = f"is {_NOT_LINKED.get(kind, f'an ELF of type {safe_text(str(kind))}')}"
    if said:
        raise UsageError(
            f"{quoted(str(path))} {said}; the {board.chip} runs linked programs for {board.core} (Arm, 32 bit)",
            remedy="name the ELF that the linker made for this board, or a .tflite model",
            code="flash.wrong_machine",
        )


def _check_places(path: Path, facts: ElfFacts, board: HardwareBoard) -> None:
    """Everything that is loaded lies in flash, each at a place of its own."""
    flash = board.flash
    if not facts.segments:
        raise UsageError(
            f"{quoted(str(path))} has no section with contents: there is nothing to program",
            remedy="name the ELF that the linker made, with its section headers",
            code="flash.empty",
        )
    loaded = _loaded(facts)
    for address, section in loaded:
        if flash.address <= address < flash.end:
            continue
        memory = next((m for m in board.memories if m.address <= address < m.end), None)
        where = f"to {memory.name}, which is {memory.kind}" if memory else f"where the {board.chip} has no flash"
        raise UsageError(
            f"{quoted(str(path))}: section {quoted(section.name)} is loaded to 0x{address:08x}, {where}; "
            f"the flash is 0x{flash.address:08x} to 0x{flash.end - 1:08x}",
            remedy="name an ELF that is linked for this board's flash; what is meant for another memory "
            "can be taken out with objcopy --remove-section",
            code="flash.not_in_flash",
        )
    for address, section in loaded:
        if (end := address + len(section.data)) > flash.end:
            raise UsageError(
                f"{quoted(str(path))}: section {quoted(section.name)} lies at 0x{address:08x} to 0x{end - 1:08x}, "
                f"{counted(end - flash.end, 'byte')} beyond the flash of the {board.chip}, which ends at "
                f"0x{flash.end - 1:08x}",
                remedy="link it with a script of this chip, whose FLASH has this size, or name the right board",
                code="flash.outside",
            )
    _check_overlaps(path, loaded)


def _check_overlaps(path: Path, loaded: list[tuple[int, Section]]) -> None:
    for (first, one), (second, other) in pairwise(loaded):
        if first + len(one.data) > second:
            last = first + len(one.data) - 1
            raise UsageError(
                f"{quoted(str(path))}: section {quoted(one.name)} (0x{first:08x} to 0x{last:08x}) overlaps "
                f"section {quoted(other.name)} (0x{second:08x} to 0x{second + len(other.data) - 1:08x})",
                remedy="check the load addresses (AT>, LMA) in the linker script: each place can hold one section",
                code="flash.overlap",
            )


def _loaded(facts: ElfFacts) -> list[tuple[int, Section]]:
    """The sections with contents and their load addresses, in address order."""
    loaded = ((section.load_address, section) for section in facts.sections if section.data)
    return sorted(((at, one) for at, one in loaded if at is not None), key=lambda pair: pair[0])


def _data(facts: ElfFacts, symbol: str, size_bytes: int) -> bytes:
    """The bytes of a constant; b"" where there is no such symbol, or no bytes for it."""
    address = facts.symbols.get(symbol)
    for section in facts.sections if address is not None else ():
        if address is not None and section.address <= address and address + size_bytes <= section.end:
            offset = address - section.address
            return section.data[offset : offset + size_bytes]
    return b""
