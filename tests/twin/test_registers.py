"""What the register blocks of a chip refuse, and what they say of it: literal accesses, literal answers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.sim.chip import Chip
from harness.sim.family import build_chip
from harness.sim.wire import Wire

from .bare_metal import twin_board

F7_RCC, F7_PWR, F7_FLASH, F7_GPIOD, F7_SYSCFG, F7_USART3 = (
    0x4002_3800,
    0x4000_7000,
    0x4002_3C00,
    0x4002_0C00,
    0x4001_3800,
    0x4000_4800,
)


class Line:
    """No host at all."""

    host_baud = 115200

    def read(self) -> bytes:
        return b""

    def write(self, data: bytes) -> None:
        del data


class Board:
    """A chip whose registers are written one by one, as a debugger does."""

    def __init__(self, name: str) -> None:
        self.chip: Chip = build_chip(twin_board(name), Wire(Line()))  # type: ignore[arg-type]

    def read(self, address: int) -> int:
        return int.from_bytes(self.chip.bus.read(address, 4), "little")

    def write(self, address: int, value: int) -> None:
        self.chip.bus.write(address, value.to_bytes(4, "little"))

    @property
    def told(self) -> list[str]:
        """Without who did it."""
        return [text.removesuffix(", by the debugger") for text in self.chip.bus.complaints]


@pytest.fixture
def f7() -> Iterator[Board]:
    board = Board("nucleo-f746zg")
    yield board
    board.chip.core.engine.close()


@pytest.fixture
def l4() -> Iterator[Board]:
    board = Board("nucleo-l476rg")
    yield board
    board.chip.core.engine.close()


@pytest.fixture
def nrf() -> Iterator[Board]:
    board = Board("nrf52840dk")
    yield board
    board.chip.core.engine.close()


@pytest.mark.parametrize(
    ("address", "name", "enable", "bit"),
    [
        (F7_GPIOD + 0x14, "GPIOD", 0x30, 3),
        (F7_PWR + 0x00, "PWR", 0x40, 28),
        (F7_SYSCFG + 0x08, "SYSCFG", 0x44, 14),
        (F7_USART3 + 0x0C, "USART3", 0x40, 18),
    ],
)
def test_a_block_without_a_clock_reads_0_and_keeps_nothing(
    f7: Board, address: int, name: str, enable: int, bit: int
) -> None:
    offset = address & 0x3FF
    f7.write(address, 0xC5)
    assert f7.read(address) == 0
    assert f7.told == [
        f"{name}: 0xc5 written to +0x{offset:03x} without a clock",
        f"{name}: +0x{offset:03x} read without a clock",
    ]
    f7.write(F7_RCC + enable, 1 << bit)
    f7.write(address, 0xC1)
    assert f7.read(address) & 0xFF == 0xC1
    assert len(f7.told) == 2


def test_a_reset_by_rcc_gives_a_block_its_reset_values_and_holds_it(f7: Board) -> None:
    f7.write(F7_RCC + 0x30, 1 << 3)
    f7.write(F7_GPIOD, 0x55)
    f7.write(F7_RCC + 0x10, 1 << 3)
    f7.write(F7_GPIOD, 0x55)
    f7.write(F7_RCC + 0x10, 0)
    assert f7.read(F7_GPIOD) == 0
    assert f7.told == ["GPIOD: 0x55 written to +0x000 without a clock"]


def test_the_plls_factors_and_the_voltage_are_fixed_while_the_pll_is_on(f7: Board) -> None:
    f7.write(F7_RCC + 0x40, 1 << 28)
    f7.write(F7_RCC + 0x04, 0x2400_0000 | 216 << 6 | 16)
    f7.write(F7_RCC, 0x0100_0083)
    f7.write(F7_RCC + 0x04, 0x2400_0000 | 100 << 6 | 16)
    f7.write(F7_PWR, 0x4000)
    assert f7.read(F7_RCC + 0x04) == 0x2400_0000 | 216 << 6 | 16
    assert f7.read(F7_PWR) == 0xC000
    assert f7.told == [
        "RCC: +0x004 written to change the PLL while it is on, which has no effect",
        "PWR: VOS written while the PLL is on, which has no effect",
    ]


def test_a_pll_outside_what_it_works_with_is_told(f7: Board) -> None:
    f7.write(F7_RCC + 0x04, 0x2400_0000 | 30 << 6 | 4)
    f7.write(F7_RCC, 0x0100_0083)
    assert f7.told == ["RCC: the PLL's input is at 4000000 Hz, it works from 950000 to 2100000 Hz"]
    f7.write(F7_RCC, 0x0000_0083)
    f7.write(F7_RCC + 0x04, 0x2400_0000 | 50 << 6 | 16)
    f7.write(F7_RCC, 0x0100_0083)
    assert f7.told[1:] == ["RCC: the PLL's VCO is at 50000000 Hz, it works from 100000000 to 432000000 Hz"]


def test_what_the_core_runs_on_stays_on(f7: Board) -> None:
    f7.write(F7_RCC, 0x80)
    assert f7.read(F7_RCC) & 3 == 3
    assert f7.told == ["RCC: +0x000 written to switch off what the core's clock comes from, which stays on"]


def test_a_bus_clock_beyond_its_end_is_told(f7: Board) -> None:
    """144 MHz without dividers: APB1 ends at 54 MHz, APB2 at 108."""
    f7.write(F7_FLASH, 4)
    f7.write(F7_RCC + 0x04, 0x2400_0000 | 288 << 6 | 16)
    f7.write(F7_RCC, 0x0100_0083)
    f7.write(F7_RCC + 0x08, 2)
    assert f7.chip.hclk_hz() == 144_000_000
    assert f7.told == [
        "RCC: APB1 is clocked at 144000000 Hz, it ends at 54000000 Hz",
        "RCC: APB2 is clocked at 144000000 Hz, it ends at 108000000 Hz",
    ]


def test_fewer_wait_states_than_the_running_clock_needs_stop_the_core(f7: Board) -> None:
    f7.write(F7_FLASH, 4)
    f7.write(F7_RCC + 0x04, 0x2400_0000 | 288 << 6 | 16)
    f7.write(F7_RCC, 0x0100_0083)
    f7.write(F7_RCC + 0x08, 2 | 5 << 10 | 4 << 13)
    assert f7.chip.violations == []
    f7.write(F7_FLASH, 3)
    assert f7.chip.violations == ["flash at 144000000 Hz needs 4 wait states, 3 are set"]


def test_flash_registers_that_are_locked_say_so(f7: Board) -> None:
    f7.write(F7_FLASH + 0x10, 1)
    f7.write(F7_FLASH + 0x14, 0xC0FF_55FC)
    f7.write(F7_FLASH + 0x04, 0x1234)
    f7.write(F7_FLASH + 0x1C, 1)
    assert f7.told == [
        "FLASH: 0x1 written to CR while it is locked",
        "FLASH: OPTCR written while it is locked",
        "FLASH: 0x1234 is a wrong key: CR is locked until a reset",
        "FLASH: 0x1 written to +0x01c, which is reserved",
    ]
    assert f7.chip.controller.protection_level == 0


def test_the_stm32l4_at_low_voltage_is_slow(l4: Board) -> None:
    """Range 2: 26 MHz at most, a wait state for each 6 MHz."""
    l4.write(0x4002_1058, 1 << 28)
    l4.write(0x4000_7000, 0x400)
    l4.write(0x4002_1000, 0x8 | 0x90 | 1)  # MSI at 24 MHz
    assert l4.chip.violations == ["flash at 24000000 Hz needs 3 wait states, 0 are set"]
    l4.write(0x4002_2000, 3)
    l4.write(0x4002_1000, 0x8 | 0xA0 | 1)  # 32 MHz
    assert l4.chip.violations[1:] == ["the core clock is 32000000 Hz, the chip ends at 26000000 Hz in range 2"]


def test_reserved_and_read_only_registers_of_an_nrf_are_told(nrf: Board) -> None:
    nrf.write(0x1000_1080, 5)  # UICR.CUSTOMER, while NVMC reads only
    nrf.write(0x4000_040C, 1)  # HFCLKSTAT
    nrf.write(0x4000_0540, 1)
    nrf.write(0x4001_E400, 1)  # NVMC.READY
    nrf.write(0x4001_E504, 0x11)
    nrf.write(0x5000_0510, 1)  # IN
    nrf.write(0x1000_0100, 5)  # FICR
    assert nrf.told == [
        "UICR: +0x080 written, and NVMC.CONFIG does not allow it",
        "CLOCK/POWER: 0x1 written to +0x40c, which is read-only",
        "CLOCK/POWER: 0x1 written to +0x540, which is reserved",
        "NVMC: 0x1 written to +0x400, which is read-only",
        "NVMC: 0x11 written to +0x504, of which bits 0x10 are reserved",
        "GPIO: 0x1 written to +0x510, which is read-only",
        "FICR: 0x5 written to +0x100, which is read-only",
    ]
    assert nrf.read(0x1000_1080) == 0xFFFF_FFFF


def test_an_erase_that_config_does_not_allow_is_told_and_not_made(nrf: Board) -> None:
    nrf.chip.flash.view[0:4] = b"abcd"
    nrf.write(0x4001_E50C, 1)
    assert nrf.told == ["NVMC: +0x50c written to erase, and CONFIG does not allow it"]
    assert bytes(nrf.chip.flash.view[0:4]) == b"abcd"


def test_the_cycle_counter_is_locked_for_programs_only_and_needs_trcena(f7: Board) -> None:
    f7.write(0xE000_1004, 5)
    assert f7.told == ["DWT: +0x004 written without DEMCR.TRCENA, which has no effect"]
    f7.write(0xE000_EDFC, 1 << 24)
    f7.write(0xE000_1004, 5)
    assert f7.read(0xE000_1004) == 5
    assert f7.read(0xE000_1FB4) == 0
    f7.chip.bus.running_at = lambda: 0x0800_0000
    assert f7.read(0xE000_1FB4) == 3
    f7.write(0xE000_1004, 6)
    assert f7.read(0xE000_1004) == 5
    f7.write(0xE000_1FB0, 0xC5AC_CE55)
    f7.write(0xE000_1004, 6)
    assert (f7.read(0xE000_1FB4), f7.read(0xE000_1004)) == (1, 6)
    assert f7.chip.bus.complaints[1:] == [
        "DWT: +0x004 written while LAR locks it, which has no effect, by the instruction at 0x08000000"
    ]


def test_a_vector_table_that_is_not_aligned_to_its_size_is_told(f7: Board, nrf: Board) -> None:
    for board in (f7, nrf):
        board.write(0xE000_ED08, 0x2000)
        board.write(0xE000_ED08, 0x2100)
        board.write(0xE000_ED08, 0x2180)
    assert f7.told == ["SCS: 0x2100 written to VTOR, which must be a multiple of 512"]
    assert nrf.told == ["SCS: 0x2180 written to VTOR, which must be a multiple of 256"]


def test_a_uart_that_sends_frames_with_parity_reaches_nobody(f7: Board) -> None:
    f7.write(F7_RCC + 0x30, 1 << 3)
    f7.write(F7_RCC + 0x40, 1 << 18)
    f7.write(F7_GPIOD, 0xA << 16)
    f7.write(F7_GPIOD + 0x24, 0x77)
    f7.write(F7_USART3 + 0x0C, 139)
    f7.write(F7_USART3, 0xD | 1 << 10)
    f7.write(F7_USART3 + 0x28, 0x41)
    assert f7.told == ["USART3: a byte is sent, and its frame is not 8N1, which the host reads"]
    f7.write(F7_USART3, 0xD)
    f7.write(F7_USART3 + 0x28, 0x41)
    assert f7.chip.uart.wire.sent_bytes == 1
