"""A built firmware, as a record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class OwnerSizes:
    """Bytes by section kind of what one owner brings: ``runtime``, ``kernels``, ``model``, ``harness``, ``arena``,
    ``libc``."""

    text: int = 0
    rodata: int = 0
    data: int = 0
    bss: int = 0

    @property
    def flash_bytes(self) -> int:
        return self.text + self.rodata + self.data

    @property
    def ram_bytes(self) -> int:
        return self.data + self.bss

    def __add__(self, other: OwnerSizes) -> OwnerSizes:
        return OwnerSizes(
            self.text + other.text, self.rodata + other.rodata, self.data + other.data, self.bss + other.bss
        )


@dataclass(frozen=True, slots=True)
class FirmwareImage:
    """A linked and checked firmware.

    ``build_id`` is what the firmware answers in its hello, 32 hex digits. ``segments`` are (load address, bytes) of
    what is flashed, in address order. ``sections`` are sizes in bytes. ``symbols`` are the values of all symbols,
    ``functions`` the start addresses of the functions. ``kernels`` is ``reference`` or ``cmsis_nn``;
    ``operator_kernels`` says for each operator of the model which of the two is linked.
    """

    elf_path: Path
    build_id: str
    board: str
    model_path: str
    model_sha256: str
    tflm_commit: str
    tflm_library: str
    kernels: str
    interpreter: str
    capacity_bytes: int
    static_arena: bool
    arena_region: str
    arena_address: int
    stack_bytes: int
    compiler: str
    optimise: str
    segments: tuple[tuple[int, bytes], ...] = field(repr=False)
    sections: Mapping[str, int]
    symbols: Mapping[str, int] = field(repr=False)
    functions: Mapping[str, int] = field(repr=False)
    owners: Mapping[str, OwnerSizes]
    operator_kernels: Mapping[str, str]
    largest_arena_bytes: int
    notes: tuple[str, ...] = ()

    @property
    def flash_bytes(self) -> int:
        """Bytes to program."""
        return sum(len(data) for _, data in self.segments)

    @property
    def ram_bytes(self) -> int:
        """Static RAM, stack included."""
        return sum(self.sections.get(name, 0) for name in (".data", ".bss", ".noinit", ".arena", ".stack"))

    def symbol_at(self, address: int) -> str:
        """The name of the function that ``address`` is in, or ``""``."""
        name, start = "", -1
        for symbol, value in self.functions.items():
            if start < value <= address & ~1:
                name, start = symbol, value
        return name if any(base <= start < base + len(data) for base, data in self.segments) else ""
