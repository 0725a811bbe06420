"""Facts of a linked program, and the checks before anything is flashed."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.board.record import Fpu, HardwareBoard, Memory
from harness.errors import BuildError
from harness.firmware.archive import BuildAttributes, object_attributes

#: Thumb encoding of ``bkpt 0xab``, the semihosting call: without a debugger it is a HardFault.
_SEMIHOSTING = b"\xab\xbe"


class ElfCheckError(BuildError):
    """The linked program is not what it must be."""

    default_code = "build.elf"


@dataclass(frozen=True, slots=True)
class Section:
    """An allocated section; ``load_address`` is where it lies in flash, None for one without contents."""

    name: str
    address: int
    size_bytes: int
    load_address: int | None
    executable: bool
    data: bytes = field(repr=False, default=b"")

    @property
    def end(self) -> int:
        return self.address + self.size_bytes


@dataclass(frozen=True, slots=True)
class ElfFacts:
    """``symbols`` maps names to values (functions with the Thumb bit), ``functions`` the functions' names."""

    sections: tuple[Section, ...]
    symbols: Mapping[str, int] = field(repr=False)
    functions: frozenset[str] = field(repr=False)
    attributes: BuildAttributes
    thumb_ranges: tuple[tuple[int, int], ...] = field(repr=False, default=())

    def section(self, name: str) -> Section | None:
        return next((section for section in self.sections if section.name == name), None)

    @property
    def segments(self) -> tuple[tuple[int, bytes], ...]:
        """(load address, bytes) in address order, neighbours joined, gaps of less than 16 bytes filled with 0xFF."""
        merged: list[tuple[int, bytearray]] = []
        loaded = [(s.load_address, s.data) for s in self.sections if s.load_address is not None and s.data]
        for address, data in sorted(loaded):
            if merged:
                end = merged[-1][0] + len(merged[-1][1])
                if 0 <= address - end < 16:
                    merged[-1][1].extend(b"\xff" * (address - end) + data)
                    continue
            merged.append((address, bytearray(data)))
        return tuple((address, bytes(data)) for address, data in merged)


def read_elf(path: Path) -> ElfFacts:
    """Sections, symbols and attributes of a linked ELF."""
    from elftools.elf.elffile import ELFFile

    raw = path.read_bytes()
    elf = ELFFile(io.BytesIO(raw))
    loads = [s for s in elf.iter_segments() if s["p_type"] == "PT_LOAD" and s["p_filesz"]]
    sections = []
    for section in elf.iter_sections():
        if not section["sh_flags"] & 2 or not section["sh_size"]:  # SHF_ALLOC
            continue
        has_data = section["sh_type"] != "SHT_NOBITS"
        load = None
        if has_data:
            offset = section["sh_offset"]
            load = next(
                (
                    s["p_paddr"] + offset - s["p_offset"]
                    for s in loads
                    if s["p_offset"] <= offset < s["p_offset"] + s["p_filesz"]
                ),
                section["sh_addr"],
            )
        sections.append(
            Section(
                section.name,
                section["sh_addr"],
                section["sh_size"],
                load,
                bool(section["sh_flags"] & 4),
                section.data() if has_data else b"",
            )
        )
    symbols: dict[str, int] = {}
    functions: set[str] = set()
    marks: list[tuple[int, str]] = []
    table: Any = elf.get_section_by_name(".symtab")
    for symbol in table.iter_symbols() if table is not None else ():
        if symbol["st_shndx"] == "SHN_UNDEF" or not symbol.name:
            continue
        if symbol.name.startswith("$"):
            marks.append((symbol["st_value"], symbol.name[:2]))
            continue
        symbols[symbol.name] = symbol["st_value"]
        if symbol["st_info"]["type"] == "STT_FUNC":
            functions.add(symbol.name)
    return ElfFacts(
        tuple(sections), symbols, frozenset(functions), object_attributes(raw) or BuildAttributes(), _thumb(marks)
    )


def read_object_data(path: Path, symbol: str) -> bytes:
    """The bytes of a data symbol in an object file."""
    from elftools.elf.elffile import ELFFile

    elf = ELFFile(io.BytesIO(path.read_bytes()))
    table: Any = elf.get_section_by_name(".symtab")
    for entry in table.iter_symbols():
        if entry.name == symbol:
            data: bytes = elf.get_section(entry["st_shndx"]).data()
            return data[entry["st_value"] : entry["st_value"] + entry["st_size"]]
    raise ElfCheckError(
        f"{path.name} has no symbol {symbol}", remedy="this is a fault of the harness: please report it"
    )


def _thumb(marks: list[tuple[int, str]]) -> tuple[tuple[int, int], ...]:
    """Ranges of Thumb code by the mapping symbols ($t code, $d data): AAELF32 5.5.5."""
    ordered = sorted(marks)
    ranges = []
    for index, (start, kind) in enumerate(ordered):
        if kind == "$t":
            end = ordered[index + 1][0] if index + 1 < len(ordered) else start
            if end > start:
                ranges.append((start & ~1, end))
    return tuple(ranges)


def check_elf(facts: ElfFacts, board: HardwareBoard) -> None:
    """Raises ElfCheckError that names what is wrong, with addresses."""
    for problem in elf_problems(facts, board):
        raise ElfCheckError(problem, remedy="this image is not safe to flash: please report it with the board file")


def elf_problems(facts: ElfFacts, board: HardwareBoard) -> Iterator[str]:
    """Everything that would keep the program from running on the board."""
    yield from _placement_problems(facts, board)
    yield from _symbol_problems(facts, board)
    yield from _float_problems(facts, board)
    yield from _semihosting_problems(facts)


def _memory_of(board: HardwareBoard, address: int) -> Memory | None:
    return next((m for m in board.memories if m.address <= address < m.end), None)


def _contiguous_end(board: HardwareBoard, memory: Memory) -> int:
    """The end of the run of same-kind memories that ``memory`` begins or continues."""
    end = memory.end
    while following := next((m for m in board.memories if m.address == end and m.kind == memory.kind), None):
        end = following.end
    return end


def _placement_problems(facts: ElfFacts, board: HardwareBoard) -> Iterator[str]:
    for section in facts.sections:
        memory = _memory_of(board, section.address)
        if memory is None or section.end > _contiguous_end(board, memory):
            yield f"{section.name} (0x{section.address:08X}, {section.size_bytes} bytes) is outside the memories"
        if section.load_address is not None:
            flash = board.flash
            if not (flash.address <= section.load_address and section.load_address + len(section.data) <= flash.end):
                yield f"{section.name} is loaded from 0x{section.load_address:08X}, outside the flash"
    vectors = facts.section(".vectors")
    if vectors is None or vectors.address != board.flash.address:
        yield f"the vector table is not at the start of the flash, 0x{board.flash.address:08X}"


def _symbol_problems(facts: ElfFacts, board: HardwareBoard) -> Iterator[str]:
    arena = facts.section(".arena")
    memory = _memory_of(board, arena.address) if arena else None
    if arena is None or memory is None or memory.kind != "ram":
        yield "the arena is not in RAM"
    elif arena.address % 16:
        yield f"the arena is at 0x{arena.address:08X}, not 16-aligned"
    model = facts.symbols.get("g_model")
    if model is None:
        yield "there is no model in the program"
    elif model % 16 or not board.flash.address <= model < board.flash.end:
        yield f"the model is at 0x{model:08X}: not 16-aligned in flash"
    stack = board.memory(board.layout.stack)
    if facts.symbols.get("_estack") != stack.end:
        yield f"the stack does not end where {stack.name} does, 0x{stack.end:08X}"


def _float_problems(facts: ElfFacts, board: HardwareBoard) -> Iterator[str]:
    attributes = facts.attributes
    if attributes.uses_double and board.fpu is not Fpu.DOUBLE:
        yield f"double-precision FPU instructions; the FPU of the {board.chip} is {board.fpu.value}-precision"
    if attributes.fp_arch and board.fpu is Fpu.NONE:
        yield f"the program uses FPU instructions; the {board.chip} has no FPU"
    if board.fpu is not Fpu.NONE and attributes.fp_arch and attributes.float_abi not in {"hard", "softfp"}:
        yield f"unknown float ABI {attributes.float_abi}"


def _semihosting_problems(facts: ElfFacts) -> Iterator[str]:
    by_address = {section.address: section for section in facts.sections if section.executable}
    for start, end in facts.thumb_ranges:
        for section in by_address.values():
            if section.address <= start < section.end:
                code = section.data[start - section.address : end - section.address]
                at = code.find(_SEMIHOSTING)
                while at >= 0:
                    if at % 2 == 0 and not _second_half(code, at):
                        yield f"semihosting call (bkpt 0xab) at 0x{start + at:08X}"
                        break
                    at = code.find(_SEMIHOSTING, at + 1)


def _second_half(code: bytes, at: int) -> bool:
    """Whether the halfword at ``at`` is the second one of a 32-bit instruction, walking from the range's start."""
    offset = 0
    while offset < at:
        first = int.from_bytes(code[offset : offset + 2], "little")
        offset += 4 if first >> 11 in {0b11101, 0b11110, 0b11111} else 2
    return offset != at
