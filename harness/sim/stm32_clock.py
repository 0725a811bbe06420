"""STM32 reset and clock control with its power controller: ready bits, and the frequencies that follow from them.

Sources: RM0385 rev 8 (STM32F7) chapters 4 and 5, RM0390 rev 6 (STM32F446) chapters 5 and 6, RM0351 rev 9 (STM32L4)
chapters 5 and 6. Oscillators are ready at once; a crystal that the board does not have never is.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from harness.sim.device import Device

log = logging.getLogger(__name__)

HSI_HZ = 16_000_000
LSI_HZ = 32_000
_AHB_SHIFT = (0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 6, 7, 8, 9)
_APB_SHIFT = (0, 0, 0, 0, 1, 2, 3, 4)
#: MSI ranges of the STM32L4, RM0351 6.4.1.
_MSI_HZ = (100e3, 200e3, 400e3, 800e3, 1e6, 2e6, 4e6, 8e6, 16e6, 24e6, 32e6, 48e6)


@dataclass(frozen=True, slots=True)
class ExternalClock:
    """What is soldered to OSC_IN: 0 Hz for nothing."""

    hz: int = 0
    bypass: bool = False


class ResetCause:
    """Why the chip was reset last; each family shows it in its own register."""

    def __init__(self) -> None:
        self.flags: set[str] = {"power", "pin"}


class Stm32Clock(Device, ABC):
    """What the families' RCC blocks share."""

    name = "RCC"
    #: (on bit, ready bit) pairs of the control register.
    ready_bits: tuple[tuple[int, int], ...] = ()
    csr_offset = 0
    #: Reset flags' places in the CSR, and its remove-flags bit.
    flag_bits: dict[str, int] = {}  # noqa: RUF012
    remove_bit = 24

    def __init__(self, external: ExternalClock, cause: ResetCause) -> None:
        self.external = external
        self.cause = cause
        #: The core cannot run on with this clock: called with what is wrong.
        self.on_violation: Callable[[str], None] = lambda _text: None
        self.on_change: Callable[[], None] = lambda: None
        self.wait_states: Callable[[], int] = lambda: 15
        self.over_drive: Callable[[], bool] = lambda: True
        super().__init__()

    # --- frequencies ------------------------------------------------------------------------------------------

    @abstractmethod
    def sysclk_hz(self) -> int: ...

    @abstractmethod
    def pclk_hz(self, bus: int) -> int: ...

    @abstractmethod
    def uart_hz(self, instance: str, bus: int) -> int: ...

    @property
    def hclk_hz(self) -> int:
        return self.sysclk_hz() >> _AHB_SHIFT[(self.words.get(0x08, 0) >> 4) & 0xF]

    def is_enabled(self, register: int, bit: int) -> bool:
        """Whether the clock of a peripheral is on, by its RCC register offset and bit."""
        return bool(self.words.get(register, 0) & (1 << bit))

    # --- registers --------------------------------------------------------------------------------------------

    def load(self, offset: int) -> int:
        value = self.words.get(offset, 0)
        if offset == 0x00:
            for on, ready in self.ready_bits:
                if value & (1 << on) and not (on == 16 and not self._hse_runs(value)):
                    value |= 1 << ready
            return value
        if offset == 0x08:
            return (value & ~0xC) | self._switched() << 2
        if offset == self.csr_offset:
            flags = sum(1 << bit for flag, bit in self.flag_bits.items() if flag in self.cause.flags)
            return (value & 0x1) | (value & 1) << 1 | flags
        return value

    def store(self, offset: int, value: int, mask: int) -> None:
        super().store(offset, value, mask)
        if offset == self.csr_offset and value & (1 << self.remove_bit):
            self.cause.flags.clear()
            self.words[offset] &= 1
        if offset in (0x00, 0x04, 0x08, 0x0C):
            self._check()
            self.on_change()

    def _hse_runs(self, control: int) -> bool:
        if not self.external.hz or not control & (1 << 16):
            return False
        return not self.external.bypass or bool(control & (1 << 18))

    @abstractmethod
    def _switched(self) -> int:
        """SWS: the source that SW asks for, where it is ready; else the one after reset."""

    @abstractmethod
    def _check(self) -> None: ...

    def _check_wait_states(self, hz_per_state: int, limit_hz: int) -> None:
        hclk = self.hclk_hz
        needed = max(0, -(-hclk // hz_per_state) - 1)
        if hclk > limit_hz:
            self.on_violation(f"the core clock is {hclk} Hz, the chip ends at {limit_hz} Hz")
        elif self.wait_states() < needed:
            self.on_violation(f"flash at {hclk} Hz needs {needed} wait states, {self.wait_states()} are set")


class Stm32F4F7Clock(Stm32Clock):
    """RCC of the STM32F4 and STM32F7."""

    ready_bits = ((0, 1), (16, 17), (24, 25), (26, 27), (28, 29))
    csr_offset = 0x74
    flag_bits = {"brownout": 25, "pin": 26, "power": 27, "software": 28, "watchdog": 29}  # noqa: RUF012

    def __init__(self, external: ExternalClock, cause: ResetCause, *, limit_hz: int, has_kernel_mux: bool) -> None:
        self.limit_hz = limit_hz
        self.has_kernel_mux = has_kernel_mux
        super().__init__(external, cause)

    def reset_values(self) -> dict[int, int]:
        return {0x00: 0x0000_0081, 0x04: 0x2400_3010}

    def _pll_hz(self) -> int:
        config = self.words.get(0x04, 0)
        source = self.external.hz if config & (1 << 22) else HSI_HZ
        m, n = config & 0x3F, (config >> 6) & 0x1FF
        p = 2 * (((config >> 16) & 3) + 1)
        return source // m * n // p if m else 0

    def _switched(self) -> int:
        wanted, control = self.words.get(0x08, 0) & 3, self.words.get(0x00, 0)
        if wanted == 1 and self._hse_runs(control):
            return 1
        if wanted == 2 and control & (1 << 24) and self._pll_input_runs(control):
            return 2
        return 0

    def _pll_input_runs(self, control: int) -> bool:
        return self._hse_runs(control) if self.words.get(0x04, 0) & (1 << 22) else bool(control & 1)

    def load(self, offset: int) -> int:
        value = super().load(offset)
        if offset == 0x00 and value & (1 << 25) and not self._pll_input_runs(value):
            value &= ~(1 << 25)
        return value

    def sysclk_hz(self) -> int:
        return (HSI_HZ, self.external.hz, self._pll_hz())[self._switched()]

    def pclk_hz(self, bus: int) -> int:
        shift = 10 if bus == 1 else 13
        return self.hclk_hz >> _APB_SHIFT[(self.words.get(0x08, 0) >> shift) & 7]

    def uart_hz(self, instance: str, bus: int) -> int:
        if not self.has_kernel_mux:
            return self.pclk_hz(bus)
        order = ("USART1", "USART2", "USART3", "UART4", "UART5", "USART6", "UART7", "UART8")
        choice = (self.words.get(0x90, 0) >> (2 * order.index(instance))) & 3
        return (self.pclk_hz(bus), self.sysclk_hz(), HSI_HZ, 32_768)[choice]

    def _check(self) -> None:
        over_drive_from = 180_000_000 if self.limit_hz > 200_000_000 else 168_000_000
        limit = self.limit_hz if self.over_drive() else min(self.limit_hz, over_drive_from)
        self._check_wait_states(30_000_000, limit)


class Stm32L4Clock(Stm32Clock):
    """RCC of the STM32L4."""

    ready_bits = ((0, 1), (8, 10), (16, 17), (24, 25), (26, 27))
    csr_offset = 0x94
    flag_bits = {"pin": 26, "brownout": 27, "power": 27, "software": 28, "watchdog": 29}  # noqa: RUF012
    remove_bit = 23

    def __init__(
        self, external: ExternalClock, cause: ResetCause, *, limit_hz: int = 80_000_000, hz_per_state: int = 16_000_000
    ) -> None:
        self.limit_hz = limit_hz
        self.hz_per_state = hz_per_state
        #: Range 1 in boost mode (PWR_CR5.R1MODE = 0), which an STM32L4+ needs above 80 MHz. RM0432 rev 9, 5.1.8.
        self.boost: Callable[[], bool] = lambda: False
        super().__init__(external, cause)

    def reset_values(self) -> dict[int, int]:
        return {0x00: 0x61, 0x0C: 0x1000}

    def _msi_hz(self) -> int:
        control = self.words.get(0x00, 0)
        chosen = (control >> 4) & 0xF if control & 8 else 6
        return int(_MSI_HZ[min(chosen, 11)])

    def _pll_source(self) -> tuple[int, bool]:
        control, config = self.words.get(0x00, 0), self.words.get(0x0C, 0)
        match config & 3:
            case 1:
                return self._msi_hz(), bool(control & 1)
            case 2:
                return HSI_HZ, bool(control & (1 << 8))
            case 3:
                return self.external.hz, self._hse_runs(control)
        return 0, False

    def _pll_hz(self) -> int:
        config = self.words.get(0x0C, 0)
        m, n, r = ((config >> 4) & 7) + 1, (config >> 8) & 0x7F, 2 * (((config >> 25) & 3) + 1)
        return self._pll_source()[0] // m * n // r

    def _switched(self) -> int:
        wanted, control = self.words.get(0x08, 0) & 3, self.words.get(0x00, 0)
        ready = (
            True,
            bool(control & (1 << 8)),
            self._hse_runs(control),
            bool(control & (1 << 24)) and self._pll_source()[1] and bool(self.words.get(0x0C, 0) & (1 << 24)),
        )
        return wanted if ready[wanted] else 0

    def load(self, offset: int) -> int:
        value = super().load(offset)
        if offset == 0x00 and value & (1 << 25) and not self._pll_source()[1]:
            value &= ~(1 << 25)
        return value

    def sysclk_hz(self) -> int:
        return (self._msi_hz(), HSI_HZ, self.external.hz, self._pll_hz())[self._switched()]

    def pclk_hz(self, bus: int) -> int:
        shift = 8 if bus == 1 else 11
        return self.hclk_hz >> _APB_SHIFT[(self.words.get(0x08, 0) >> shift) & 7]

    def uart_hz(self, instance: str, bus: int) -> int:
        order = ("USART1", "USART2", "USART3", "UART4", "UART5", "LPUART1")
        choice = (self.words.get(0x88, 0) >> (2 * order.index(instance))) & 3
        return (self.pclk_hz(bus), self.sysclk_hz(), HSI_HZ, 32_768)[choice]

    def _check(self) -> None:
        self._check_wait_states(self.hz_per_state, self.limit_hz)
        if self.hclk_hz > 80_000_000 and not self.boost():
            self.on_violation(f"{self.hclk_hz} Hz needs range 1 boost mode, PWR_CR5.R1MODE is set")


class Stm32F4F7Power(Device):
    """PWR: voltage scaling and over-drive, ready at once."""

    name = "PWR"

    def reset_values(self) -> dict[int, int]:
        return {0x00: 0x0000_C000}

    @property
    def over_drive(self) -> bool:
        return self.words.get(0, 0) & 0x3_0000 == 0x3_0000

    def load(self, offset: int) -> int:
        value = self.words.get(offset, 0)
        if offset == 0x04:
            return value | 1 << 14 | (self.words.get(0, 0) & 0x3_0000)
        return value


class Stm32L4Power(Device):
    """PWR: the voltage range is reached at once."""

    name = "PWR"

    def reset_values(self) -> dict[int, int]:
        return {0x00: 0x0000_0200, 0x80: 0x0000_0100}

    @property
    def boost(self) -> bool:
        return not self.words.get(0x80, 0) & (1 << 8)
