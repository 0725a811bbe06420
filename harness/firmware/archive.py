"""Reads a static library: the symbols it defines and the build attributes of its members.

System V archive format: "!<arch>\\n", then members with 60-byte headers; member "/" is the symbol table.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import UsageError

_MAGIC = b"!<arch>\n"


class ArchiveError(UsageError):
    """The file is no static library for Arm."""

    default_code = "tflm.archive"


@dataclass(frozen=True, slots=True)
class BuildAttributes:
    """What an Arm object says of how it was compiled; names as in the "Addenda to the ABI for the Arm Architecture"
    (ABI-addenda32). 0 where absent."""

    cpu_arch: int = 0
    fp_arch: int = 0
    hard_fp_use: int = 0  # 1: single precision only
    vfp_args: int = 0  # 1: arguments in VFP registers (hard float ABI)
    enum_size: int = 0  # 1: smallest container, 2: int
    wchar_size: int = 0
    simd_arch: int = 0
    mve_arch: int = 0

    @property
    def uses_double(self) -> bool:
        """An FPU with double-precision instructions was allowed."""
        return self.fp_arch != 0 and self.hard_fp_use != 1

    @property
    def float_abi(self) -> str:
        if self.vfp_args == 1:
            return "hard"
        return "softfp" if self.fp_arch else "soft"


_TAGS = {
    "TAG_CPU_ARCH": "cpu_arch",
    "TAG_FP_ARCH": "fp_arch",
    "TAG_VFP_ARCH": "fp_arch",
    "TAG_ABI_HARDFP_USE": "hard_fp_use",
    "TAG_ABI_VFP_ARGS": "vfp_args",
    "TAG_ABI_ENUM_SIZE": "enum_size",
    "TAG_ABI_PCS_WCHAR_T": "wchar_size",
    "TAG_ADVANCED_SIMD_ARCH": "simd_arch",
    "TAG_MVE_ARCH": "mve_arch",
}


def members(data: bytes, path: Path) -> Iterator[tuple[str, bytes]]:
    """Name and contents of every member, the symbol table ("/") and the long names ("//") included."""
    if not data.startswith(_MAGIC):
        raise ArchiveError(f"{path} is no static library", remedy="name a libtensorflow-microlite.a")
    offset = len(_MAGIC)
    while offset + 60 <= len(data):
        header = data[offset : offset + 60]
        if header[58:60] != b"`\n":
            raise ArchiveError(f"{path}: damaged at byte {offset}", remedy="build the library again")
        size = int(header[48:58].decode("ascii").strip() or "0")
        name = header[:16].decode("ascii", "replace").rstrip()
        yield name, data[offset + 60 : offset + 60 + size]
        offset += 60 + size + size % 2


def defined_symbols(data: bytes, path: Path) -> frozenset[str]:
    """The global symbols that the archive's own table lists."""
    for name, contents in members(data, path):
        if name == "/":
            (count,) = struct.unpack_from(">I", contents)
            names = contents[4 + 4 * count :].split(b"\0")
            return frozenset(entry.decode("ascii", "replace") for entry in names[:count])
    raise ArchiveError(f"{path} has no symbol table", remedy="run arm-none-eabi-ranlib on it")


def object_attributes(data: bytes) -> BuildAttributes | None:
    """The attributes of one ELF object or program; None when it is no Arm ELF or has none."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        elf = ELFFile(io.BytesIO(data))
        if elf["e_machine"] != "EM_ARM":
            return None
        section: Any = elf.get_section_by_name(".ARM.attributes")
        if section is None:
            return None
        values: dict[str, int] = {}
        for subsection in section.iter_subsections():
            for subsubsection in subsection.iter_subsubsections():
                for attribute in subsubsection.iter_attributes():
                    field = _TAGS.get(attribute.tag)
                    if field:
                        values[field] = int(attribute.value)
    except (ELFError, ValueError, KeyError, TypeError):
        return None
    return BuildAttributes(**values)
