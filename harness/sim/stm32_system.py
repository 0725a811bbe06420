"""STM32's small blocks: GPIO, system configuration, independent watchdog, debug identity.

Sources: RM0385 rev 8 chapters 6, 27 and 40; RM0351 rev 9 chapters 8, 38 and 48.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from harness.sim.cortex_m import CortexM
from harness.sim.device import Device


class Stm32Gpio(Device):
    """One port. Only what the firmware set can be read back; inputs read 0."""

    read_only = frozenset({0x10})  # IDR

    def __init__(self, letter: str) -> None:
        self.name = f"GPIO{letter}"
        self.letter = letter
        super().__init__()

    def reset_values(self) -> dict[int, int]:
        return {0x00: {"A": 0xA800_0000, "B": 0x0000_0280}.get(self.letter, 0)}

    def load(self, offset: int) -> int:
        return self.words.get(0x14, 0) if offset == 0x10 else self.words.get(offset, 0)

    def store(self, offset: int, value: int, mask: int) -> None:
        output = self.words.get(0x14, 0)
        if offset == 0x18:
            self.words[0x14] = (output & ~(value >> 16)) | (value & 0xFFFF)
        elif offset == 0x28:
            self.words[0x14] = output & ~value
        else:
            super().store(offset, value, mask)

    def carries(self, pin: int, alternate_function: int) -> bool:
        """Whether the pin is switched to this alternate function."""
        mode = (self.words.get(0x00, 0) >> (2 * pin)) & 3
        function = (self.words.get(0x20 + 4 * (pin // 8), 0) >> (4 * (pin % 8))) & 0xF
        return mode == 2 and function == alternate_function


class Stm32SystemConfiguration(Device):
    """SYSCFG: kept, and without effect."""

    name = "SYSCFG"


class Stm32Watchdog(Device):
    """IWDG: once started, it must be reloaded in time or the chip resets."""

    name = "IWDG"
    registers = MappingProxyType({0x00: 0xFFFF, 0x04: 0x7, 0x08: 0xFFF, 0x0C: 0x3, 0x10: 0xFFF})
    read_only = frozenset({0x0C})

    def __init__(self, core: CortexM, lsi_hz: int) -> None:
        self.core = core
        self.lsi_hz = lsi_hz
        self.hclk_hz: Callable[[], int] = lambda: lsi_hz
        self.on_expiry: Callable[[], None] = lambda: None
        super().__init__()

    def reset(self) -> None:
        super().reset()
        self._running = False
        self._unlocked = False
        self.core.events.cancel("iwdg")

    def reset_values(self) -> dict[int, int]:
        return {0x08: 0xFFF, 0x10: 0xFFF}

    @property
    def timeout_s(self) -> float:
        return (self.words.get(0x08, 0) + 1) * (4 << min(self.words.get(0x04, 0) & 7, 6)) / self.lsi_hz

    def rearm(self) -> None:
        if self._running:
            due = self.core.cycles + int(self.timeout_s * self.hclk_hz())
            self.core.events.at("iwdg", due, self.on_expiry)
            self.core.end_slice()

    def load(self, offset: int) -> int:
        return 0 if offset in (0x00, 0x0C) else self.words.get(offset, 0)

    def store(self, offset: int, value: int, mask: int) -> None:
        if offset == 0x00:
            self._unlocked = value == 0x5555
            if value == 0xCCCC:
                self._running = True
            if value in (0xCCCC, 0xAAAA):
                self.rearm()
        elif self._unlocked:
            super().store(offset, value, mask)
        else:
            self.complain(offset, "locked", f"+0x{offset:03x} written before 0x5555 to KR, which has no effect")


class Stm32DebugMcu(Device):
    """DBGMCU: the chip's identity. Its own registers survive a system reset."""

    name = "DBGMCU"

    def __init__(self, idcode: int) -> None:
        self.idcode = idcode
        self._kept: dict[int, int] = {}
        super().__init__()

    def reset(self) -> None:
        self.words = getattr(self, "_kept", {})

    def load(self, offset: int) -> int:
        return self.idcode if offset == 0 else self.words.get(offset, 0)
