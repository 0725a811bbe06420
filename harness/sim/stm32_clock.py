"""STM32 reset and clock control: ready bits, and the frequencies that follow from them.

Sources: RM0385 rev 8 (STM32F7) chapters 4 and 5, RM0390 rev 6 (STM32F446) chapters 5 and 6, RM0351 rev 9 (STM32L4)
chapters 5 and 6. Oscillators are ready at once; a crystal that the board does not have never is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from harness.sim.device import Device
from harness.sim.stm32_power import VoltageLimits

HSI_HZ = 16_000_000
_RESET_BELOW_ENABLE = 0x20
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
    #: Where the PLL's factors stand, and which of those bits cannot be written while it is on.
    pll_offset = 0
    pll_fixed_bits = 0
    #: The PLL's input and VCO, lowest and highest Hz.
    pll_input_hz = (0, 0)
    vco_hz = (0, 0)
    #: Highest clock of APB1 and APB2.
    apb_limits_hz = (0, 0)
    read_only = frozenset[int]()

    def __init__(self, external: ExternalClock, cause: ResetCause) -> None:
        self.external = external
        self.cause = cause
        #: The core cannot run on with this clock: called with what is wrong.
        self.on_violation: Callable[[str], None] = lambda _text: None
        self.on_change: Callable[[], None] = lambda: None
        self.wait_states: Callable[[], int] = lambda: 15
        self._gated: dict[tuple[int, int], Device] = {}
        super().__init__()

    # --- gates ------------------------------------------------------------------------------------------------

    def gate(self, device: Device, register: int, bit: int) -> None:
        """Give ``device`` a clock only while this bit of an enable register is set, and reset it by the same bit of
        the reset register, which stands 0x20 below."""
        self._gated[register, bit] = device
        device.is_clocked = self._is_enabled(register, bit)

    def _is_enabled(self, register: int, bit: int) -> bool:
        on, held = self.words.get(register, 0), self.words.get(register - _RESET_BELOW_ENABLE, 0)
        return bool(on & ~held & (1 << bit))

    def _update_gates(self, newly_held: int = 0, in_register: int = -1) -> None:
        """``newly_held`` are bits of a reset register, at offset ``in_register``, that have just been set."""
        for (register, bit), device in self._gated.items():
            device.is_clocked = self._is_enabled(register, bit)
            if register - _RESET_BELOW_ENABLE == in_register and newly_held & (1 << bit):
                device.reset()

    def reset(self) -> None:
        super().reset()
        self._update_gates()

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
        before = self.words.get(offset, 0)
        fixed = self._fixed_bits(offset, before) & mask
        if (value ^ before) & fixed:
            self.complain(offset, "fixed", self._why_fixed(offset))
            value = value & ~fixed | before & fixed
        super().store(offset, value, mask)
        self._update_gates(self.words[offset] & ~before, offset)
        if offset == self.csr_offset and value & (1 << self.remove_bit):
            self.cause.flags.clear()
            self.words[offset] &= 1
        if offset in (0x00, 0x04, 0x08, 0x0C):
            self.check()
            self.on_change()

    def _fixed_bits(self, offset: int, before: int) -> int:
        """Bits that cannot be changed now: the PLL's factors while it is on, the switches of what the core runs on."""
        if offset == self.pll_offset and self.pll_on:
            return self.pll_fixed_bits
        return self._switches_in_use() & before if offset == 0x00 else 0

    def _why_fixed(self, offset: int) -> str:
        if offset == 0x00:
            return "+0x000 written to switch off what the core's clock comes from, which stays on"
        return f"+0x{offset:03x} written to change the PLL while it is on, which has no effect"

    @property
    def pll_on(self) -> bool:
        return bool(self.words.get(0x00, 0) & (1 << 24))

    @abstractmethod
    def _switches_in_use(self) -> int:
        """Of the control register: what must stay on while the core runs on it."""

    def _hse_runs(self, control: int) -> bool:
        if not self.external.hz or not control & (1 << 16):
            return False
        return not self.external.bypass or bool(control & (1 << 18))

    @abstractmethod
    def _switched(self) -> int:
        """SWS: the source that SW asks for, where it is ready; else the one after reset."""

    def check(self) -> None:
        """After every change of the clocks, the voltage or the wait states: can the chip run like this?"""
        limit, hz_per_state, most_states = self._limits()
        hclk = self.hclk_hz
        needed = min(most_states, max(0, -(-hclk // hz_per_state) - 1))
        if hclk > limit:
            self.on_violation(f"the core clock is {hclk} Hz, the chip ends at {limit} Hz{self._voltage()}")
        elif self.wait_states() < needed:
            self.on_violation(f"flash at {hclk} Hz needs {needed} wait states, {self.wait_states()} are set")
        for bus, most in enumerate(self.apb_limits_hz, 1):
            if self.pclk_hz(bus) > most:
                self.complain(0x08, f"apb{bus}", f"APB{bus} is clocked at {self.pclk_hz(bus)} Hz, it ends at {most} Hz")
        if self.pll_on:
            self._check_pll()

    def _check_pll(self) -> None:
        source, factor = self._pll_input()
        for name, hz, (low, high) in (
            ("input", source, self.pll_input_hz),
            ("VCO", source * factor, self.vco_hz),
        ):
            if source and not low <= hz <= high:
                self.complain(
                    self.pll_offset, name, f"the PLL's {name} is at {hz} Hz, it works from {low} to {high} Hz"
                )

    @abstractmethod
    def _limits(self) -> tuple[int, int, int]:
        """The highest core clock, what each wait state is good for (Hz), and how many are ever needed."""

    def _voltage(self) -> str:
        """As it goes into a message: what the limit depends on."""
        return ""

    @abstractmethod
    def _pll_input(self) -> tuple[int, int]:
        """Hz behind the divider M, and the factor N; 0 Hz where the source does not run."""


class Stm32F4F7Clock(Stm32Clock):
    """RCC of the STM32F4 and STM32F7."""

    ready_bits = ((0, 1), (16, 17), (24, 25), (26, 27), (28, 29))
    csr_offset = 0x74
    flag_bits = {"brownout": 25, "pin": 26, "power": 27, "software": 28, "watchdog": 29}  # noqa: RUF012
    pll_offset = 0x04
    pll_fixed_bits = 0x7F43_7FFF
    pll_input_hz = (950_000, 2_100_000)
    vco_hz = (100_000_000, 432_000_000)

    def __init__(
        self, external: ExternalClock, cause: ResetCause, *, limits: VoltageLimits, has_kernel_mux: bool
    ) -> None:
        self.limits = limits
        self.has_kernel_mux = has_kernel_mux
        #: PWR's VOS field, and whether over-drive is on.
        self.voltage_scale: Callable[[], int] = lambda: 3
        self.over_drive: Callable[[], bool] = lambda: False
        most = limits.highest_hz
        self.apb_limits_hz = (most // 4, most // 2) if most > 100_000_000 else (most // 2, most)
        super().__init__(external, cause)

    def reset_values(self) -> dict[int, int]:
        return {0x00: 0x0000_0081, 0x04: 0x2400_3010, 0x30: 0x0010_0000}

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
        hsi = HSI_HZ if self.words.get(0x00, 0) & 1 else 0
        return (self.pclk_hz(bus), self.sysclk_hz(), hsi, 32_768)[choice]

    def _switches_in_use(self) -> int:
        source = self._switched()
        if source == 2:
            return 1 << 24 | (1 << 16 if self.words.get(0x04, 0) & (1 << 22) else 1)
        return 1 << 16 if source else 1

    def _pll_input(self) -> tuple[int, int]:
        config = self.words.get(0x04, 0)
        if not self._pll_input_runs(self.words.get(0x00, 0)):
            return 0, 0
        source = self.external.hz if config & (1 << 22) else HSI_HZ
        return source // max(1, config & 0x3F), (config >> 6) & 0x1FF

    def _limits(self) -> tuple[int, int, int]:
        # The regulator's scale holds while the PLL is on, RM0385 4.4.1; without it the core runs at 26 MHz at most.
        limit = self.limits.of(self.voltage_scale(), over_drive=self.over_drive()) if self.pll_on else 50_000_000
        return limit, 30_000_000, 15

    def _voltage(self) -> str:
        return f" with VOS = {self.voltage_scale()}, over-drive {'on' if self.over_drive() else 'off'}"


class Stm32L4Clock(Stm32Clock):
    """RCC of the STM32L4."""

    ready_bits = ((0, 1), (8, 10), (16, 17), (24, 25), (26, 27))
    csr_offset = 0x94
    flag_bits = {"pin": 26, "brownout": 27, "power": 27, "software": 28, "watchdog": 29}  # noqa: RUF012
    remove_bit = 23
    read_only = frozenset({0x1C})  # CIFR
    pll_offset = 0x0C
    pll_fixed_bits = 0xFE62_7FF3  # all but the outputs' enables
    vco_hz = (64_000_000, 344_000_000)

    def __init__(
        self, external: ExternalClock, cause: ResetCause, *, limit_hz: int = 80_000_000, hz_per_state: int = 16_000_000
    ) -> None:
        self.limit_hz = limit_hz
        self.hz_per_state = hz_per_state
        #: Range 1 in boost mode (PWR_CR5.R1MODE = 0), which an STM32L4+ needs above 80 MHz. RM0432 rev 9, 5.1.8.
        self.boost: Callable[[], bool] = lambda: False
        #: PWR_CR1.VOS: 1 or 2.
        self.voltage_range: Callable[[], int] = lambda: 1
        self.apb_limits_hz = (limit_hz, limit_hz)
        self.is_plus = limit_hz > 80_000_000
        self.pll_input_hz = (2_660_000 if self.is_plus else 4_000_000, 16_000_000)
        super().__init__(external, cause)

    def reset_values(self) -> dict[int, int]:
        return {0x00: 0x61, 0x0C: 0x1000, 0x48: 0x100}

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
        hsi = HSI_HZ if self.words.get(0x00, 0) & (1 << 8) else 0
        return (self.pclk_hz(bus), self.sysclk_hz(), hsi, 32_768)[choice]

    def _switches_in_use(self) -> int:
        source = self._switched()
        if source == 3:
            return 1 << 24 | (0, 1, 1 << 8, 1 << 16)[self.words.get(0x0C, 0) & 3]
        return (1, 1 << 8, 1 << 16)[source]

    def _pll_input(self) -> tuple[int, int]:
        config, (source, runs) = self.words.get(0x0C, 0), self._pll_source()
        return source // (((config >> 4) & 7) + 1) if runs else 0, (config >> 8) & 0x7F

    def _limits(self) -> tuple[int, int, int]:
        if self.voltage_range() == 2:  # RM0351 3.3.3 table 9, 5.1.7; RM0432 3.3.3 table 12
            return 26_000_000, 8_000_000 if self.is_plus else 6_000_000, 2 if self.is_plus else 3
        return self.limit_hz, self.hz_per_state, 15

    def _voltage(self) -> str:
        return f" in range {self.voltage_range()}"

    def check(self) -> None:
        super().check()
        if self.hclk_hz > 80_000_000 and not self.boost():
            self.on_violation(f"{self.hclk_hz} Hz needs range 1 boost mode, PWR_CR5.R1MODE is set")
