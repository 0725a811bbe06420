"""nRF52 blocks: clocks and reset reasons, NVMC with UICR and FICR, UARTE with EasyDMA, watchdog, GPIO.

Source: nRF52840 Product Specification v1.7, chapters 4.3 (NVMC), 4.4 (FICR), 4.5 (UICR), 5.3 (POWER), 5.4 (CLOCK),
6.9 (GPIO), 6.34 (UARTE), 6.36 (WDT).
"""

from __future__ import annotations

from collections.abc import Callable

from harness.sim import nrf52_registers
from harness.sim.bus import Bus, Memory
from harness.sim.cortex_m import CortexM
from harness.sim.device import WORD, Device
from harness.sim.stm32_clock import ResetCause
from harness.sim.stm32_flash import FlashArray
from harness.sim.wire import Wire

_READ, _WRITE, _ERASE = 0, 1, 2
#: RESETREAS bits.
_REASONS = {"pin": 0, "watchdog": 1, "software": 2, "lockup": 3}
#: BAUDRATE register value × clock / 2^32: 16 MHz, PS 6.34.9.
_BAUD_SCALE = 16_000_000 / (1 << 32)
_IDLE_READS = 64
_UARTE_IRQ = 2


class NrfClock(Device):
    """CLOCK, POWER and APPROTECT share one register page."""

    read_only = frozenset({0x408, 0x40C, 0x414, 0x418, 0x41C, 0x428, 0x438, 0x640})

    name = "CLOCK/POWER"
    registers = nrf52_registers.CLOCK_POWER
    hclk_hz = 64_000_000

    def __init__(self, cause: ResetCause) -> None:
        self.cause = cause
        super().__init__()

    def reset_values(self) -> dict[int, int]:
        return {0x558: 1}

    @property
    def crystal_runs(self) -> bool:
        return bool(self.words.get(0x000, 0))

    def load(self, offset: int) -> int:
        words = self.words
        match offset:
            case 0x400:
                return sum(1 << bit for flag, bit in _REASONS.items() if flag in self.cause.flags)
            case 0x408:
                return words.get(0x000, 0)
            case 0x40C:
                return 0x1_0000 | (words.get(0x000, 0) & 1)
            case 0x414:
                return words.get(0x008, 0)
            case 0x418:
                return (words.get(0x008, 0) & 1) << 16 | (words.get(0x518, 0) & 3)
        return words.get(offset, 0)

    def store(self, offset: int, value: int, mask: int) -> None:
        if offset == 0x400:
            self.cause.flags -= {flag for flag, bit in _REASONS.items() if value & (1 << bit)}
        elif offset == 0x000 and value & 1:
            self.words |= {0x000: 1, 0x100: 1}
        elif offset == 0x004 and value & 1:
            self.words[0x000] = 0
        elif offset == 0x008 and value & 1:
            self.words |= {0x008: 1, 0x104: 1}
        elif offset == 0x00C and value & 1:
            self.words[0x008] = 0
        else:
            super().store(offset, value, mask)


class NrfFlash(Device):
    """NVMC: word writes while CONFIG says so, page erase, whole erase."""

    read_only = frozenset({0x400, 0x408})

    name = "NVMC"
    registers = nrf52_registers.NVMC

    def __init__(self, array: FlashArray, uicr: NrfUicr) -> None:
        self.array = array
        self.uicr = uicr
        self.time_busy: Callable[[str, int], None] = lambda _operation, _bytes: None
        #: A store that the controller does not allow: PS 4.3.1, the core takes a fault.
        self.on_refused: Callable[[int], None] = lambda _offset: None
        super().__init__()

    @property
    def mode(self) -> int:
        return self.words.get(0x504, 0) & 3

    @property
    def locked(self) -> bool:
        return self.mode == _READ

    def load(self, offset: int) -> int:
        if offset in (0x400, 0x408):
            return 0 if self.array.faults.stuck_busy else 1
        return self.words.get(offset, 0)

    def store(self, offset: int, value: int, mask: int) -> None:
        if offset == 0x504 and self.array.faults.refuse_unlock:
            return
        if offset == 0x508 and self.mode == _ERASE:
            page = self.array.sectors[0]
            self.array.erase_sector(value // page)
            self.time_busy("erase", page)
        elif offset == 0x50C and self.mode == _ERASE and value & 1:
            self.array.erase_all()
            self.uicr.erase()
            self.time_busy("chip erase", sum(self.array.sectors))
        elif offset == 0x514 and self.mode == _ERASE and value & 1:
            self.uicr.erase()
        elif offset in (0x508, 0x50C, 0x514):
            if value:
                self.complain(offset, "mode", f"+0x{offset:03x} written to erase, and CONFIG does not allow it")
        else:
            super().store(offset, value, mask)

    def store_cell(self, offset: int, size: int, value: int) -> None:
        if self.mode != _WRITE or size != 4 or offset % 4:
            self.on_refused(offset)
            return
        self.array.program(offset, size, value)
        self.time_busy("program", size)


class NrfUicr(Device):
    """UICR: flash cells outside the array; kept through resets."""

    name = "UICR"
    registers = nrf52_registers.UICR
    APPROTECT = 0x208

    def __init__(self) -> None:
        self.cells: dict[int, int] = {}
        self.may_write: Callable[[], bool] = lambda: False
        self.on_reset: Callable[[], None] = lambda: None
        super().__init__()

    def reset(self) -> None:
        super().reset()
        self.on_reset()

    def erase(self) -> None:
        self.cells.clear()

    def load(self, offset: int) -> int:
        return self.cells.get(offset, WORD)

    def store(self, offset: int, value: int, mask: int) -> None:
        if self.may_write():
            self.cells[offset] = self.cells.get(offset, WORD) & (value | ~mask & WORD)
        else:
            self.complain(offset, "mode", f"+0x{offset:03x} written, and NVMC.CONFIG does not allow it")

    @property
    def protected(self) -> bool:
        """Chips before the hardened revisions: 0x00 in the low byte protects from the next reset on."""
        return self.load(self.APPROTECT) & 0xFF == 0


class NrfFicr(Device):
    """FICR: read-only facts about the chip."""

    name = "FICR"

    def __init__(self, facts: dict[int, int]) -> None:
        self.facts = facts
        super().__init__()

    def load(self, offset: int) -> int:
        return self.facts.get(offset, WORD)

    def store(self, offset: int, value: int, mask: int) -> None:  # noqa: ARG002
        self.complain(offset, "read-only", f"0x{value:x} written to +0x{offset:03x}, which is read-only")


class NrfGpio(Device):
    """P0 and P1 in one page; only outputs can be read back."""

    name = "GPIO"
    registers = nrf52_registers.GPIO
    read_only = frozenset({0x510, 0x810})

    def load(self, offset: int) -> int:
        if offset & 0xFF in (0x10,) and 0x500 <= offset < 0x900:
            return self.words.get(offset - 0xC, 0)
        base = 0x500 if offset < 0x800 else 0x800
        if offset - base in (0x08, 0x0C):
            return self.words.get(base + 0x04, 0)
        if offset - base in (0x18, 0x1C):
            return self.words.get(base + 0x14, 0)
        return self.words.get(offset, 0)

    def store(self, offset: int, value: int, mask: int) -> None:
        base = 0x500 if offset < 0x800 else 0x800
        register = {0x08: 0x04, 0x0C: 0x04, 0x18: 0x14, 0x1C: 0x14}.get(offset - base)
        if register is None:
            super().store(offset, value, mask)
            return
        old = self.words.get(base + register, 0)
        self.words[base + register] = old | value if offset - base in (0x08, 0x18) else old & ~value


class NrfWatchdog(Device):
    """WDT: cannot be stopped; all enabled reload registers must be written."""

    name = "WDT"
    registers = nrf52_registers.WDT
    read_only = frozenset({0x400, 0x404})
    _RELOAD = 0x6E52_4635

    def __init__(self, core: CortexM) -> None:
        self.core = core
        self.on_expiry: Callable[[], None] = lambda: None
        super().__init__()

    def reset(self) -> None:
        super().reset()
        self._running = False
        self._requested = 0
        self.core.events.cancel("wdt")

    def reset_values(self) -> dict[int, int]:
        return {0x504: WORD, 0x508: 1, 0x50C: 1}

    @property
    def timeout_s(self) -> float:
        return (self.words[0x504] + 1) / 32_768

    def _rearm(self) -> None:
        self._requested = 0
        due = self.core.cycles + int(self.timeout_s * NrfClock.hclk_hz)
        self.core.events.at("wdt", due, self.on_expiry)
        self.core.end_slice()

    def load(self, offset: int) -> int:
        if offset == 0x400:
            return int(self._running)
        if offset == 0x404:
            return self.words[0x508] & ~self._requested
        return self.words.get(offset, 0)

    def store(self, offset: int, value: int, mask: int) -> None:
        if offset == 0x000 and value & 1:
            self._running = True
            self._rearm()
        elif 0x600 <= offset < 0x620:
            if value == self._RELOAD and self._running:
                self._requested |= 1 << ((offset - 0x600) // 4)
                if self._requested & self.words[0x508] == self.words[0x508]:
                    self._rearm()
        elif not self._running or not 0x504 <= offset <= 0x50C:
            super().store(offset, value, mask)
        else:
            self.complain(offset, "running", f"+0x{offset:03x} written while the watchdog runs, which has no effect")


class NrfUarte(Device):
    """UARTE0: bytes move between the line and RAM by EasyDMA."""

    name = "UARTE0"
    registers = nrf52_registers.UARTE
    read_only = frozenset({0x53C, 0x54C})

    def __init__(self, wire: Wire, bus: Bus, ram: Memory, *, count_bits: int) -> None:
        self.wire = wire
        self.bus = bus
        self.ram = ram
        self.count_mask = (1 << count_bits) - 1
        self.pend: Callable[[int], None] = lambda _irq: None
        self.end_slice: Callable[[], None] = lambda: None
        #: The pins that are wired to the host, port and number as PSEL has them; None: any.
        self.tx_pin: int | None = None
        self.rx_pin: int | None = None
        #: Whether the crystal runs, which the rate's accuracy needs.
        self.crystal_runs: Callable[[], bool] = lambda: True
        #: EasyDMA was pointed at something that is not RAM.
        self.on_bad_pointer: Callable[[int], None] = lambda _address: None
        self._vain_reads = 0
        super().__init__()

    def reset(self) -> None:
        super().reset()
        self._receiving = False
        self._amount = 0
        self._pointer = 0
        self._room = 0
        self._vain_reads = 0

    def reset_values(self) -> dict[int, int]:
        return {0x508: WORD, 0x50C: WORD, 0x510: WORD, 0x514: WORD, 0x524: 0x0400_0000}

    @property
    def is_idle(self) -> bool:
        return self._vain_reads >= _IDLE_READS

    @property
    def _on(self) -> bool:
        return self.words.get(0x500, 0) == 8

    def baud(self) -> int:
        return int(self.words.get(0x524, 0) * _BAUD_SCALE)

    # --- registers --------------------------------------------------------------------------------------------

    def load(self, offset: int) -> int:
        self.poll_line()
        if offset in (0x108, 0x110):
            if self.words.get(offset, 0):
                self._vain_reads = 0
            else:
                self._vain_reads += 1
                if self._vain_reads % _IDLE_READS == 0:
                    self.end_slice()
        if offset in (0x304, 0x308):
            return self.words.get(0x300, 0)
        return self.words.get(offset, 0)

    def store(self, offset: int, value: int, mask: int) -> None:
        if 0x000 <= offset < 0x100:
            if value & 1:
                self._task(offset)
        elif offset == 0x304:
            self.words[0x300] = self.words.get(0x300, 0) | value
            self._interrupts()
        elif offset == 0x308:
            self.words[0x300] = self.words.get(0x300, 0) & ~value
        elif offset == 0x480:
            self.words[0x480] = self.words.get(0x480, 0) & ~value
        else:
            super().store(offset, value, mask)
            if offset == 0x300:
                self._interrupts()

    def _task(self, offset: int) -> None:
        if not self._on:
            self.complain(offset, "off", f"task +0x{offset:03x} started, and ENABLE is not 8")
            return
        match offset:
            case 0x000:
                self._start_receiving()
            case 0x004:
                if self._receiving:
                    self._end_receiving(restart=False)
                self._event(0x144)
            case 0x008:
                self._transmit()
            case 0x00C:
                self._event(0x158)

    def _event(self, offset: int) -> None:
        self.words[offset] = 1
        self._interrupts()

    def _interrupts(self) -> None:
        enabled = self.words.get(0x300, 0)
        events = sum(1 << n for n in range(32) if self.words.get(0x100 + 4 * n, 0))
        if enabled & events:
            self.pend(_UARTE_IRQ)

    # --- the line ---------------------------------------------------------------------------------------------

    def _reaches(self, register: int, pin: int | None) -> bool:
        """Whether a PSEL register connects the pin that the host is wired to."""
        selected = self.words[register]
        return not selected >> 31 and (pin is None or selected & 0x3F == pin)

    def _in_ram(self, address: int, size: int) -> bool:
        return self.ram.offset(address, size) is not None

    def _transmit(self) -> None:
        self._vain_reads = 0
        pointer, count = self.words.get(0x544, 0), self.words.get(0x548, 0) & self.count_mask
        self._event(0x150)
        if count and not self._in_ram(pointer, count):
            self.on_bad_pointer(pointer)
            return
        if not self.crystal_runs():
            self.complain(0x008, "clock", "a byte is sent, and the crystal was not started (HFCLKSTART)")
        if count and not self._reaches(0x50C, self.tx_pin):
            self.complain(0x50C, "tx", "a byte is sent, and PSEL.TXD does not name the pin that is wired")
        elif count and self.words.get(0x56C, 0) & 0xE:
            self.complain(0x56C, "format", "a byte is sent with a parity bit, which the host does not read")
        elif count:
            for byte in self.bus.read(pointer, count):
                self.wire.send(byte, self.baud())
        self.words[0x54C] = count
        self.words[0x11C] = 1
        self._event(0x120)

    def _start_receiving(self) -> None:
        pointer, room = self.words.get(0x534, 0), self.words.get(0x538, 0) & self.count_mask
        if room and not self._in_ram(pointer, room):
            self.on_bad_pointer(pointer)
            return
        self._receiving, self._pointer, self._room, self._amount = True, pointer, room, 0
        self._event(0x14C)
        self.poll_line()

    def _end_receiving(self, *, restart: bool) -> None:
        self._receiving = False
        self.words[0x53C] = self._amount
        self._event(0x110)
        if restart and self.words.get(0x200, 0) & (1 << 5):
            self._start_receiving()

    def poll_line(self) -> None:
        """Move what has come in to RAM."""
        while self._on and self._receiving and self._amount < self._room and self._reaches(0x514, self.rx_pin):
            byte = self.wire.receive(self.baud())
            if byte is None:
                return
            self._vain_reads = 0
            offset = self.ram.offset(self._pointer + self._amount, 1)
            assert offset is not None
            self.ram.view[offset] = byte
            self._amount += 1
            self._event(0x108)
            if self._amount == self._room:
                self._end_receiving(restart=True)
