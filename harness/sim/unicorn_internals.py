"""What the twin needs of unicorn and has no function for: words of its private structures, found by what they hold."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.errors import MissingDependencyError

UNICORN_VERSION = "2.1.4"
#: emu_start's ``until``: an address that nothing executes.
_NOWHERE = 0xFFFF_FFF0
_STRUCT_SCAN_BYTES = 0x1000
_CPU_SCAN_BYTES = 0x10000
_OWN_MEMORY = Path("/proc/self/mem")
#: MVFR0, MVFR1, MVFR2 of unicorn's Cortex-M4, M7 and M33: single precision, all three.
_SINGLE = struct.pack("<3I", 0x1011_0021, 0x1100_0011, 0x40)
#: MVFR0 of a Cortex-M7 with double precision: field FPDP is 2 (Arm DDI 0489F, 8.2).
MVFR0_DOUBLE = 0x1011_0221


def find_counters(uc: Any) -> tuple[Any, Any]:
    """The words ``emu_counter`` and ``emu_count`` of unicorn's private ``uc_struct`` (include/uc_priv.h).

    They stand next to each other; where, is found by running two known numbers of instructions.
    """
    base = int(uc._uch.value)
    uc.mem_map(0x2000_0000, 0x1000)
    uc.mem_write(0x2000_0000, b"\x00\xbf" * 0x800)
    candidates: set[int] | None = None
    for count in (1234, 777):
        uc.emu_start(0x2000_0001, _NOWHERE, 0, count)
        words = ctypes.string_at(base, _STRUCT_SCAN_BYTES)
        pair = (count + 1).to_bytes(8, "little") + count.to_bytes(8, "little")
        found = {offset for offset in range(0, _STRUCT_SCAN_BYTES - 16, 8) if words[offset : offset + 16] == pair}
        candidates = found if candidates is None else candidates & found
    uc.mem_unmap(0x2000_0000, 0x1000)
    if not candidates or len(candidates) != 1:
        raise _hidden("its instruction counter")
    offset = candidates.pop()
    return ctypes.c_uint64.from_address(base + offset), ctypes.c_uint64.from_address(base + offset + 8)


def allow_double_precision(uc: Any) -> None:
    """Let the core execute double-precision instructions. unicorn's Cortex-M7 is the one without; the feature registers
    that its decoder looks at are in the CPU object, which ``uc_struct`` points to. Call it before the program is
    translated. Raises MissingDependencyError where they are not found."""
    import unicorn.arm_const as arm

    registers = (arm.UC_ARM_REG_R0, arm.UC_ARM_REG_R1, arm.UC_ARM_REG_R2, arm.UC_ARM_REG_R3)
    before = [uc.reg_read(register) for register in registers]
    mark = os.urandom(16)
    for register, word in zip(registers, struct.unpack("<4I", mark), strict=True):
        uc.reg_write(register, word)
    try:
        found = set(_feature_registers(int(uc._uch.value), mark))
    finally:
        for register, word in zip(registers, before, strict=True):
            uc.reg_write(register, word)
    if len(found) != 1:
        raise _hidden("the feature registers of its FPU")
    ctypes.c_uint32.from_address(found.pop()).value = MVFR0_DOUBLE


def _feature_registers(base: int, mark: bytes) -> Iterator[int]:
    """Addresses of MVFR0 in what the words of ``uc_struct`` point to, behind the core's registers, which hold ``mark``:
    other twins of this process, and what has been freed of earlier ones, lie near by. Memory is read as a file is: what
    is no pointer is an error there, not a crash."""
    if not _OWN_MEMORY.exists():
        return
    words = struct.unpack(f"<{_STRUCT_SCAN_BYTES // 8}Q", ctypes.string_at(base, _STRUCT_SCAN_BYTES))
    memory = os.open(_OWN_MEMORY, os.O_RDONLY)
    try:
        for address in {word for word in words if 0x10000 < word < 1 << 47}:
            try:
                window = os.pread(memory, _CPU_SCAN_BYTES, address)
            except OSError:
                continue
            core = window.find(mark)
            at = window.find(_SINGLE, core) if core >= 0 else -1
            if at >= 0:
                yield address + at
    finally:
        os.close(memory)


def _hidden(what: str) -> MissingDependencyError:
    return MissingDependencyError(
        f"this build of unicorn keeps {what} where the twin cannot find it",
        remedy=f"install unicorn {UNICORN_VERSION} on Linux",
        code="environment.unicorn",
    )
