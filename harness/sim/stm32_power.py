"""STM32 power controllers: the core's voltage, and what clock it allows.

Sources: RM0385 rev 8 (STM32F7) chapter 4, RM0390 rev 6 (STM32F446) chapter 5, RM0351 rev 9 (STM32L4) chapter 5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.sim.device import Device


@dataclass(frozen=True, slots=True)
class VoltageLimits:
    """Highest core clock by PWR's VOS field (0 is reserved), without and with over-drive."""

    plain_hz: tuple[int, int, int, int]
    over_drive_hz: tuple[int, int, int, int]

    @property
    def highest_hz(self) -> int:
        return max(self.over_drive_hz)

    def of(self, scale: int, *, over_drive: bool) -> int:
        return (self.over_drive_hz if over_drive else self.plain_hz)[scale]


def _mhz(*values: int) -> tuple[int, int, int, int]:
    first, second, third, fourth = (value * 1_000_000 for value in values)
    return first, second, third, fourth


#: RM0385 rev 8, 4.1.4 and DS10916 table 17. RM0390 rev 6, 5.1.4 and DS10693 table 16; the STM32F429 is the same.
F7_LIMITS = VoltageLimits(_mhz(144, 144, 168, 180), _mhz(144, 144, 180, 216))
F4_LIMITS = VoltageLimits(_mhz(120, 120, 144, 168), _mhz(120, 120, 168, 180))
#: RM0368 rev 5, 5.1.3: 60 and 84 MHz. RM0383 rev 3, 5.1.3: 64, 84 and 100 MHz. Neither has over-drive.
F401_LIMITS = VoltageLimits(_mhz(60, 60, 84, 84), _mhz(60, 60, 84, 84))
F411_LIMITS = VoltageLimits(_mhz(64, 64, 84, 100), _mhz(64, 64, 84, 100))


class Stm32Power(Device):
    """PWR, which the voltage and so the clock's limits depend on."""

    name = "PWR"
    #: Where VOS stands.
    scale_offset, scale_shift = 0x00, 14

    def __init__(self) -> None:
        self.on_change: Callable[[], None] = lambda: None
        super().__init__()

    @property
    def voltage_scale(self) -> int:
        return (self.words.get(self.scale_offset, 0) >> self.scale_shift) & 3

    def store(self, offset: int, value: int, mask: int) -> None:
        super().store(offset, value, mask)
        self.on_change()


class Stm32F4F7Power(Stm32Power):
    """Voltage scaling and over-drive, ready at once."""

    def __init__(self, reset_scale: int) -> None:
        self.reset_scale = reset_scale
        #: VOS can be changed only while the PLL is off: RM0385 4.4.1, RM0390 5.4.1.
        self.pll_on: Callable[[], bool] = lambda: False
        super().__init__()

    def reset_values(self) -> dict[int, int]:
        return {0x00: self.reset_scale << 14}

    @property
    def over_drive(self) -> bool:
        return self.words.get(0, 0) & 0x3_0000 == 0x3_0000

    def load(self, offset: int) -> int:
        value = self.words.get(offset, 0)
        if offset == 0x04:
            return value | 1 << 14 | (self.words.get(0, 0) & 0x3_0000)
        return value

    def store(self, offset: int, value: int, mask: int) -> None:
        scale = 0xC000 & mask
        if offset == 0x00 and (value ^ self.words[0x00]) & scale and self.pll_on():
            self.complain(offset, "scale", "VOS written while the PLL is on, which has no effect")
            value = value & ~scale | self.words[0x00] & scale
        super().store(offset, value, mask)


class Stm32L4Power(Stm32Power):
    """The voltage range is reached at once."""

    scale_shift = 9
    read_only = frozenset({0x10, 0x14})  # SR1, SR2

    def reset_values(self) -> dict[int, int]:
        return {0x00: 0x0000_0200, 0x08: 0x8000, 0x80: 0x0000_0100}

    @property
    def boost(self) -> bool:
        return not self.words.get(0x80, 0) & (1 << 8)
