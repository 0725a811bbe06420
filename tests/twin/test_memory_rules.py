"""Accesses that a chip refuses: MPU regions, unaligned accesses, registers that are not there."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.board.record import UartDriver
from harness.sim.alignment import is_unaligned, needs_alignment
from harness.sim.injection import inject
from harness.sim.stm32_registers import uart_registers
from harness.sim.stm32_uart import Stm32UartV1
from harness.sim.wire import Wire

from .bare_metal import BOARDS

#: CFSR: DACCVIOL bit 1 with MMARVALID bit 7; UNALIGNED bit 24.
DENIED, UNALIGNED, FINE = "00000082", "01000000", "00000000"


def expected(multiple: str) -> str:
    """``multiple``: what an unaligned LDRD, LDM or VLDR ends as."""
    names = ("ldrd", "strd", "ldm", "stm", "vldr", "vstr")
    return f"""\
regions=00000800
store to no access cfsr={DENIED}
at=00000014
load from no access cfsr={DENIED}
at=00000018
behind it=00000009
behind it cfsr={FINE}
read only=00000007
store to read only cfsr={DENIED}
off=00000007
off cfsr={FINE}
unaligned ldr cfsr={FINE}
{"".join(f"unaligned {name} cfsr={multiple}" + chr(10) for name in names)}ldrd on a word cfsr={FINE}
trapped ldr cfsr={UNALIGNED}
trapped strh cfsr={UNALIGNED}
aligned ldr cfsr={FINE}
done
"""


@pytest.mark.parametrize("board", BOARDS)
def test_the_mpu_and_the_alignment_trap_refuse_what_they_are_set_up_for(board: str, run_firmware: Callable) -> None:
    twin, port = run_firmware("memory", board)
    port.write(b"g")
    assert port.read_until(b"done\n").decode() == expected(FINE)
    assert twin.failure is None


def test_unaligned_multiple_accesses_fault_as_on_a_chip_where_that_is_asked_for(run_firmware: Callable) -> None:
    twin, port = run_firmware("memory", "nucleo-f746zg")
    inject("strict-alignment", twin)
    port.write(b"g")
    assert port.read_until(b"done\n").decode() == expected(UNALIGNED)
    assert twin.failure is None


@pytest.mark.parametrize(
    ("first", "second", "needs"),
    [
        (0xE9D0, 0x0100, True),  # ldrd r0, r1, [r0]
        (0xE9C0, 0x0100, True),  # strd r0, r1, [r0]
        (0xC830, 0, True),  # ldmia r0!, {r4, r5}
        (0xE8B0, 0x0030, True),  # ldmia.w
        (0xB510, 0, True),  # push {r4, lr}
        (0xBD10, 0, True),  # pop {r4, pc}
        (0xE850, 0x0F00, True),  # ldrex r0, [r0]
        (0xEDD0, 0x0A00, True),  # vldr s1, [r0]
        (0xECB0, 0x0B04, True),  # vldmia r0!, {d0, d1}
        (0xE8D0, 0xF001, False),  # tbb [r0, r1]
        (0xE8D0, 0xF011, False),  # tbh
        (0x6800, 0, False),  # ldr r0, [r0]
        (0xF8D0, 0x0001, False),  # ldr.w
        (0xEE30, 0x0A00, False),  # vadd.f32
        (0xBF00, 0, False),  # nop
    ],
)
def test_instructions_that_need_alignment_are_told_from_the_others(first: int, second: int, needs: bool) -> None:
    assert needs_alignment(first, second) is needs


def test_a_doubleword_needs_a_words_alignment() -> None:
    assert [is_unaligned(address, 8) for address in (0, 4, 2)] == [False, False, True]


@pytest.fixture
def uart() -> Stm32UartV1:
    uart = Stm32UartV1("USART2", Wire(None), irq=38)  # type: ignore[arg-type]
    uart.registers = uart_registers(UartDriver.STM32_V1)
    return uart


def test_a_write_to_a_reserved_register_has_no_effect_and_is_told_once(uart: Stm32UartV1) -> None:
    told: list[str] = []
    uart.on_complaint = told.append
    uart.write(0x1C, 4, 0x5)
    uart.write(0x1C, 4, 0x5)
    uart.write(0x10, 4, 0x3)
    assert told == ["USART2: 0x5 written to +0x01c, which is reserved"]
    assert uart.read(0x1C, 4) == 0
    assert uart.read(0x10, 4) == 3


def test_reserved_bits_stay_as_they_are_and_are_told_once(uart: Stm32UartV1) -> None:
    told: list[str] = []
    uart.on_complaint = told.append
    uart.write(0x0C, 4, 0x1_600C)
    uart.write(0x0E, 2, 0x1)
    assert told == ["USART2: 0x1600c written to +0x00c, of which bits 0x14000 are reserved"]
    assert uart.read(0x0C, 4) == 0x200C
