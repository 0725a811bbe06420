"""CCR.DIV_0_TRP: firmware that set it and divided by 0 ran on, where a chip takes a UsageFault."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.sim.division import (
    Division,
    after_one_more,
    condition_holds,
    find_divisions,
    quotient,
    read_division,
)
from harness.sim.engine import Engine, Stop

from .bare_metal import BOARDS

#: CFSR: DIVBYZERO is bit 25. HFSR: FORCED is bit 30. A division that faults leaves its register as it was.
EXPECTED = """\
off, sdiv by 0 =00000000
  cfsr=00000000
sdiv by 0 =00000064
  cfsr=02000000
udiv by 0 =00000064
  cfsr=02000000
at a division=00000001
sdiv by -7 =fffffff2
  cfsr=00000000
then=00000006
in a block, by 0 =00000009
  cfsr=02000000
then=00000005
in a block, skipped =00000009
  cfsr=00000000
then=00000006
in a block, by 7 =0000000e
  cfsr=00000000
in RAM, by 0 =00000064
  cfsr=02000000
in RAM, by 9 =0000000b
  cfsr=00000000
no UsageFault, by 0 =00000064
  cfsr=02000000
  hfsr=40000000
off again, by 0 =00000000
  cfsr=00000000
done
"""


@pytest.mark.parametrize("board", BOARDS)
def test_a_division_by_zero_faults_while_the_trap_is_on(board: str, run_firmware: Callable) -> None:
    twin, port = run_firmware("divide", board)
    port.write(b"g")
    assert port.read_until(b"done\n").decode() == EXPECTED
    assert twin.failure is None


SDIV, UDIV = b"\x90\xfb\xf1\xf2", b"\xbb\xfb\xf3\xf0"  # sdiv r2, r0, r1; udiv r0, r11, r3
NOP, MUL = b"\x00\xbf", b"\x00\xfb\x01\xf0"


def test_divisions_are_found_between_other_instructions() -> None:
    assert list(find_divisions(NOP + SDIV + UDIV + MUL + NOP)) == [2, 6]
    assert list(find_divisions(b"\x00" + SDIV + b"\x00")) == []  # between two halfwords
    assert read_division(SDIV) == Division(True, quotient=2, dividend=0, divisor=1)
    assert read_division(UDIV) == Division(False, quotient=0, dividend=11, divisor=3)
    assert read_division(MUL) is None


@pytest.mark.parametrize(
    ("dividend", "divisor", "signed", "unsigned"),
    [
        (100, 7, 14, 14),
        (0xFFFFFF9C, 7, 0xFFFFFFF2, 0x24924916),  # -100
        (100, 0xFFFFFFF9, 0xFFFFFFF2, 0),
        (0x80000000, 0xFFFFFFFF, 0x80000000, 0),  # the one that overflows
    ],
)
def test_quotients_are_those_of_a_chip(dividend: int, divisor: int, signed: int, unsigned: int) -> None:
    assert quotient(dividend, divisor, is_signed=True) == signed
    assert quotient(dividend, divisor, is_signed=False) == unsigned


def test_a_block_goes_on_by_one_instruction() -> None:
    itt_eq = 1 << 24 | 0x04 >> 2 << 10  # EQ, two to come: 0b00000100
    last = after_one_more(itt_eq)
    assert last == 1 << 24 | 0x08 >> 2 << 10
    assert after_one_more(last) == 1 << 24


def test_a_breakpoint_on_a_division_is_hit_while_divisions_are_watched() -> None:
    engine = Engine("cortex-m4")
    engine.uc.mem_map(0x1000_0000, 0x1000)
    engine.uc.mem_write(0x1000_0000, NOP + NOP + SDIV + NOP + b"\xfe\xe7")
    engine.write(engine.arm.UC_ARM_REG_R0, 9)
    engine.write(engine.arm.UC_ARM_REG_R1, 2)
    engine.watch_divisions(frozenset({0x1000_0004}))
    engine.set_breakpoints({0x1000_0004})
    assert engine.run(0x1000_0000, 100) == (Stop.BREAKPOINT, 2)
    assert engine.run(engine.pc, 1) == (Stop.COUNT, 1)
    assert engine.read(engine.arm.UC_ARM_REG_R2) == 4
    assert engine.run(engine.pc, 100) == (Stop.COUNT, 100)
    engine.close()


def test_code_that_replaced_a_division_runs() -> None:
    engine = Engine("cortex-m4")
    engine.uc.mem_map(0x1000_0000, 0x1000)
    engine.uc.mem_write(0x1000_0000, b"\x07\x22" * 2 + b"\xfe\xe7")  # movs r2, #7
    engine.watch_divisions(frozenset({0x1000_0000}))
    assert engine.run(0x1000_0000, 100) == (Stop.COUNT, 100)
    assert engine.read(engine.arm.UC_ARM_REG_R2) == 7
    engine.close()


@pytest.mark.parametrize(
    ("state", "flags", "holds"),
    [
        (0x00, 0x0, True),  # outside a block
        (0x08, 0x4, True),  # eq, Z
        (0x08, 0x0, False),
        (0x18, 0x0, True),  # ne
        (0x88, 0x2, True),  # hi: C and not Z
        (0x88, 0x6, False),
        (0xB8, 0x8, True),  # lt: N is not V
        (0xC8, 0x9, True),  # gt
        (0xD8, 0x4, True),  # le
        (0xE8, 0x0, True),  # al
    ],
)
def test_conditions_are_read_from_the_status_register(state: int, flags: int, holds: bool) -> None:
    xpsr = flags << 28 | 1 << 24 | state >> 2 << 10 | (state & 3) << 25
    assert condition_holds(xpsr) is holds
