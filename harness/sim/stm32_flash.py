"""STM32 flash controllers: keys, locks, sector erase, programming rules, option bytes and read-out protection.

Sources: RM0385 rev 8 chapter 3 (STM32F7), RM0390 rev 6 chapter 3 (STM32F446), RM0351 rev 9 chapter 3 (STM32L4).
Operations finish at once, unless `stuck_busy`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable

from harness.sim.bus import Memory
from harness.sim.device import Device

_KEYS = (0x4567_0123, 0xCDEF_89AB)
_OPTION_KEYS = (0x0819_2A3B, 0x4C5D_6E7F)
_LEVEL_0 = 0xAA
_LEVEL_2 = 0xCC


class FlashFaults:
    """Defects that a test can put into the flash array. Offsets count from the start of the flash."""

    def __init__(self) -> None:
        self.stuck_busy = False
        self.refuse_unlock = False
        self.dead_sectors: set[int] = set()  # erase does nothing, and what is programmed does not hold
        self.stuck_bits: dict[int, int] = {}  # offset → bits that always program as 0
        self.on_operation: Callable[[], None] = lambda: None


class FlashArray:
    """The cells: erase sets, programming only clears."""

    def __init__(self, memory: Memory, sectors: tuple[int, ...], faults: FlashFaults) -> None:
        self.memory = memory
        self.sectors = sectors
        self.starts = [sum(sectors[:index]) for index in range(len(sectors))]
        self.faults = faults
        self.on_change: Callable[[], None] = lambda: None
        self.erase_count = 0
        self.programmed_bytes = 0

    def erase_sector(self, index: int) -> bool:
        if not 0 <= index < len(self.sectors):
            return False
        self.faults.on_operation()
        self.erase_count += 1
        if index not in self.faults.dead_sectors:
            start, size = self.starts[index], self.sectors[index]
            self.memory.view[start : start + size] = b"\xff" * size
            self.on_change()
        return True

    def erase_all(self) -> None:
        for index in range(len(self.sectors)):
            self.erase_sector(index)

    def program(self, offset: int, size: int, value: int) -> None:
        self.faults.on_operation()
        for stuck, bits in self.faults.stuck_bits.items():
            if offset <= stuck < offset + size:
                value &= ~(bits << (8 * (stuck - offset)))
        if self.faults.dead_sectors and bisect_right(self.starts, offset) - 1 in self.faults.dead_sectors:
            value = (1 << (8 * size)) - 1
        view = self.memory.view
        kept = int.from_bytes(view[offset : offset + size], "little") & value
        view[offset : offset + size] = kept.to_bytes(size, "little")
        self.programmed_bytes += size
        self.on_change()

    def is_erased(self, offset: int, size: int) -> bool:
        return bytes(self.memory.view[offset : offset + size]) == b"\xff" * size


class Stm32Flash(Device, ABC):
    """What the two controllers share: keys, lock bits and read-out protection levels."""

    name = "FLASH"
    key_offset = 0x04
    option_key_offset = 0x08
    status_offset = 0x0C
    control_offset = 0x10
    option_offset = 0x14
    rdp_shift = 8
    option_reset = 0
    sequence_error = 1 << 7
    lock_bit = 1 << 31

    def __init__(self, array: FlashArray) -> None:
        self.array = array
        #: The option bytes, kept through resets and power cycles.
        self.options = self.option_reset
        self.on_protection_change: Callable[[], None] = lambda: None
        self.time_busy: Callable[[str, int], None] = lambda _operation, _bytes: None
        #: The wait states may have changed.
        self.on_latency: Callable[[], None] = lambda: None
        super().__init__()

    def reset(self) -> None:
        super().reset()
        self.words[self.option_offset] = self.options
        self._key_step = 0
        self._option_key_step = 0
        self._key_blocked = False
        self.words[self.control_offset] = self.words.get(self.control_offset, 0) | self.lock_bit

    # --- protection -------------------------------------------------------------------------------------------

    @property
    def protection_level(self) -> int:
        level = (self.options >> self.rdp_shift) & 0xFF
        return 0 if level == _LEVEL_0 else 2 if level == _LEVEL_2 else 1

    def set_protection(self, level: int) -> None:
        """From a test: as if option bytes had been programmed on another bench."""
        byte = {0: _LEVEL_0, 1: 0x55, 2: _LEVEL_2}[level]
        self.options = (self.options & ~(0xFF << self.rdp_shift)) | byte << self.rdp_shift
        self.words[self.option_offset] = self.options

    def _program_options(self) -> None:
        before = self.protection_level
        if before == 2:
            return
        self.options = self.words.get(self.option_offset, 0) & ~3 | (self.options & 3)
        if before == 1 and self.protection_level == 0:
            self.array.erase_all()
        self.on_protection_change()

    # --- registers --------------------------------------------------------------------------------------------

    @property
    def locked(self) -> bool:
        return bool(self.words.get(self.control_offset, 0) & self.lock_bit)

    def load(self, offset: int) -> int:
        value = self.words.get(offset, 0)
        if offset == self.status_offset and self.array.faults.stuck_busy:
            value |= 1 << 16
        return value

    def store(self, offset: int, value: int, mask: int) -> None:
        if offset == self.key_offset:
            self._key(value)
        elif offset == self.option_key_offset:
            self._option_key(value)
        elif offset == self.status_offset:
            self.words[offset] = self.words.get(offset, 0) & ~value
        elif offset == self.control_offset:
            self._control(value, mask)
        elif offset == self.option_offset:
            self._option_control(value)
        else:
            super().store(offset, value, mask)
            if offset == 0x00:
                self.on_latency()

    def _key(self, value: int) -> None:
        """A wrong key locks the register until the next reset."""
        if self._key_blocked or self.array.faults.refuse_unlock or not self.locked:
            return
        if value != _KEYS[self._key_step]:
            self.complain(self.key_offset, "key", f"0x{value:x} is a wrong key: CR is locked until a reset")
            self._key_blocked = True
            return
        self._key_step += 1
        if self._key_step == 2:
            self._key_step = 0
            self.words[self.control_offset] &= ~self.lock_bit

    def _option_key(self, value: int) -> None:
        if value != _OPTION_KEYS[self._option_key_step]:
            self._option_key_step = 0
            return
        self._option_key_step += 1
        if self._option_key_step == 2:
            self._option_key_step = 0
            self._unlock_options()

    @abstractmethod
    def _unlock_options(self) -> None: ...

    @abstractmethod
    def _option_control(self, value: int) -> None: ...

    def _control(self, value: int, mask: int) -> None:
        if self.locked:
            if value & ~self.lock_bit:
                self.complain(self.control_offset, "locked", f"0x{value:x} written to CR while it is locked")
            return
        current = (self.words[self.control_offset] & ~mask) | (value & mask)
        self.words[self.control_offset] = current & ~(1 << 16)
        if current & (1 << 16):
            self._start(current)

    @abstractmethod
    def _start(self, control: int) -> None: ...

    def _fail(self, bit: int) -> None:
        self.words[self.status_offset] = self.words.get(self.status_offset, 0) | bit

    @abstractmethod
    def store_cell(self, offset: int, size: int, value: int) -> None:
        """A store to flash memory, ``offset`` from its start."""


class Stm32F4F7Flash(Stm32Flash):
    """FLASH of the STM32F4 and STM32F7: programming as wide as PSIZE says."""

    def __init__(self, array: FlashArray, *, option_reset: int) -> None:
        self.option_reset = option_reset
        super().__init__(array)

    def reset_values(self) -> dict[int, int]:
        return {0x10: 1 << 31}

    @property
    def wait_states(self) -> int:
        return self.words.get(0x00, 0) & 0xF

    def _unlock_options(self) -> None:
        self.words[self.option_offset] &= ~1

    def _option_control(self, value: int) -> None:
        if self.words[self.option_offset] & 1:
            if value & ~1 != self.words[self.option_offset] & ~1:
                self.complain(self.option_offset, "locked", "OPTCR written while it is locked")
            return
        self.words[self.option_offset] = value & ~2
        if value & 2:
            self._program_options()

    def _start(self, control: int) -> None:
        if control & 4:
            self.array.erase_all()
            self.time_busy("chip erase", sum(self.array.sectors))
        elif control & 2:
            sector = (control >> 3) & 0x1F
            sector = sector - 4 if sector >= 16 else sector  # RM0090: SNB 16… are the sectors from 12 on
            if not self.array.erase_sector(sector):
                self._fail(self.sequence_error)
                return
            self.time_busy("erase", self.array.sectors[sector])
        else:
            self._fail(self.sequence_error)

    def store_cell(self, offset: int, size: int, value: int) -> None:
        control = self.words.get(0x10, 0)
        if self.locked or not control & 1:
            self._fail(self.sequence_error)
            return
        if size != 1 << ((control >> 8) & 3):
            self._fail(1 << 6)  # PGPERR
            return
        self.array.program(offset, size, value)
        self.time_busy("program", size)


class Stm32L4Flash(Stm32Flash):
    """FLASH of the STM32L4: 64 bits at a time, only into erased cells; two banks."""

    key_offset = 0x08
    option_key_offset = 0x0C
    status_offset = 0x10
    control_offset = 0x14
    option_offset = 0x20
    rdp_shift = 0
    option_reset = 0xFFEF_F8AA

    def __init__(self, array: FlashArray) -> None:
        self._first_half: tuple[int, int] | None = None
        super().__init__(array)

    def reset_values(self) -> dict[int, int]:
        return {0x00: 0x600, 0x14: 0xC000_0000}

    def reset(self) -> None:
        super().reset()
        self._first_half = None

    @property
    def wait_states(self) -> int:
        return self.words.get(0x00, 0) & 0x7

    def _unlock_options(self) -> None:
        if not self.locked:
            self.words[0x14] &= ~(1 << 30)

    def _option_control(self, value: int) -> None:
        if not self.words[0x14] & (1 << 30):
            self.words[0x20] = value
        else:
            self.complain(0x20, "locked", "OPTR written while it is locked")

    def _control(self, value: int, mask: int) -> None:
        super()._control(value, mask)
        if not self.locked and value & (1 << 17) and not self.words[0x14] & (1 << 30):
            self._program_options()

    def _start(self, control: int) -> None:
        pages = len(self.array.sectors)
        bank = pages // 2
        if control & (1 << 2 | 1 << 15):
            for page in range(pages):
                if control & ((1 << 15) if page >= bank else (1 << 2)):
                    self.array.erase_sector(page)
            self.time_busy("chip erase", sum(self.array.sectors))
        elif control & 2:
            page = ((control >> 3) & 0xFF) + (bank if control & (1 << 11) else 0)
            if not self.array.erase_sector(page):
                self._fail(self.sequence_error)
                return
            self.time_busy("erase", self.array.sectors[page])
        else:
            self._fail(self.sequence_error)

    def store_cell(self, offset: int, size: int, value: int) -> None:
        if self.locked or not self.words.get(0x14, 0) & 1:
            self._fail(self.sequence_error)
            return
        if size != 4:
            self._fail(1 << 6)  # SIZERR
            return
        if self._first_half is None:
            if offset % 8:
                self._fail(1 << 5)  # PGAERR
                return
            self._first_half = (offset, value)
            return
        start, low = self._first_half
        self._first_half = None
        if offset != start + 4:
            self._fail(1 << 5)
        elif not self.array.is_erased(start, 8) and (low or value):
            self._fail(1 << 3)  # PROGERR
        else:
            self.array.program(start, 8, low | value << 32)
            self.time_busy("program", 8)
