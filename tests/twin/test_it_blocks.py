"""A hook in an IT block: what unicorn keeps of it must not reach the code behind the block."""

from __future__ import annotations

import ctypes
import struct

import pytest

from harness.sim.engine import Engine

CODE, RAM, CELLS = 0x1000_0000, 0x2000_0000, 0x0800_0000
PROGRAM = struct.pack(
    "<14H",
    0x2300,  # again: movs r3, #0
    *(0xF856, 0x0B04),  # ldr r0, [r6], #4
    0x07C2,  # lsls r2, r0, #31: Z where bit 0 is clear, C is bit 1
    0xBF1C,  # itt ne
    0x780B,  # ldrbne r3, [r1]
    0x703B,  # strbne r3, [r7]
    0xD302,  # bcc behind
    0x880B,  # ldrh r3, [r1]
    *(0xF848, 0x3B04),  # str r3, [r8], #4
    0x3D01,  # behind: subs r5, #1
    0xD1F2,  # bne again
    0xBF00,  # nop
)
#: The block is carried out, and then skipped; the code behind it is carried out each time.
TURNS = (3, 2, 3, 2)


@pytest.fixture
def engine() -> Engine:
    engine = Engine("cortex-m4")
    engine.uc.mem_map(CODE, 0x1000)
    engine.uc.mem_map(RAM, 0x1000)
    engine.map_memory((ctypes.c_ubyte * 0x1000)(), (CELLS,), writable=False)
    engine.uc.mem_write(CODE, PROGRAM)
    engine.uc.mem_write(RAM, struct.pack("<4IH", *TURNS, 0x0201))
    return engine


def loads_behind_the_block(engine: Engine, store_to: int) -> tuple[int, ...]:
    registers = {1: RAM + 16, 5: len(TURNS), 6: RAM, 7: store_to, 8: RAM + 0x100}
    for number, value in registers.items():
        engine.write(engine.arm.UC_ARM_REG_R0 + number, value)
    engine.run(CODE, sum(11 if turn & 1 else 9 for turn in TURNS))
    return struct.unpack("<4I", engine.uc.mem_read(RAM + 0x100, 16))


def test_code_behind_a_block_whose_accesses_are_watched_is_not_conditional(engine: Engine) -> None:
    seen: list[tuple[int, int, bool]] = []
    engine.watch_accesses("test", [(0, 0xFFFF_FFFF)], [(0, 0xFFFF_FFFF)], lambda *access: seen.append(access))
    assert loads_behind_the_block(engine, RAM + 0x200) == (0x201, 0x201, 0x201, 0x201)
    assert seen.count((RAM + 0x200, 1, True)) == 2
    engine.close()


def test_code_behind_a_block_that_stores_to_flash_is_not_conditional(engine: Engine) -> None:
    stores: list[tuple[int, int, int]] = []
    engine.on_protected_write(lambda *store: stores.append(store))
    assert loads_behind_the_block(engine, CELLS) == (0x201, 0x201, 0x201, 0x201)
    assert stores == [(CELLS, 1, 1), (CELLS, 1, 1)]
    engine.close()
