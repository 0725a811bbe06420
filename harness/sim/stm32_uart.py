"""STM32 USARTs, old (SR/DR) and new (ISR/RDR/TDR): divisor, enables, flags and interrupts.

Sources: RM0390 rev 6 chapter 25 (v1), RM0385 rev 8 chapter 31 (v2), RM0351 rev 9 chapter 41 (LPUART). A byte is sent at
once, and the next one received is there as soon as the firmware took the last, so that nothing is lost by slowness.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from harness.sim.device import Device
from harness.sim.wire import Wire

_RXNE, _TC, _TXE, _ORE = 1 << 5, 1 << 6, 1 << 7, 1 << 3
#: Status reads in vain after which the core is taken to be waiting for the line.
_IDLE_READS = 64


class Stm32Uart(Device, ABC):
    """What both register layouts share."""

    cr1 = 0x0C
    brr = 0x08
    enable_bit = 13
    lpuart = False
    #: Bits of CR1 that make frames other than eight bits without parity: M (M0 and M1), PCE.
    format_bits = 1 << 12 | 1 << 10

    def __init__(self, name: str, wire: Wire, *, irq: int) -> None:
        self.name = name
        self.wire = wire
        self.irq = irq
        self.clock_hz: Callable[[], int] = lambda: 0
        #: Whether its pins are switched to it.
        self.tx_connected: Callable[[], bool] = lambda: True
        self.rx_connected: Callable[[], bool] = lambda: True
        self.pend: Callable[[int], None] = lambda _irq: None
        self.end_slice: Callable[[], None] = lambda: None
        self._received: int | None = None
        self._tx_complete = True
        self._vain_reads = 0
        super().__init__()

    def reset(self) -> None:
        super().reset()
        self._received = None
        self._tx_complete = True
        self._vain_reads = 0

    # --- state ------------------------------------------------------------------------------------------------

    @property
    def is_idle(self) -> bool:
        """The firmware keeps asking for a byte that has not come."""
        return self._vain_reads >= _IDLE_READS

    def baud(self) -> int:
        """Bits per second that the divisor makes of the clock; 0 while it is not set."""
        divisor, clock = self.words.get(self.brr, 0), self.clock_hz()
        if self.lpuart:
            return clock * 256 // divisor if divisor >= 0x300 else 0
        if self.words.get(self.cr1, 0) & (1 << 15):
            divisor = (divisor & 0xFFF0) | (divisor & 7) << 1
            return 2 * clock // divisor if divisor >= 16 else 0
        return clock // divisor if divisor >= 16 else 0

    def _on(self, bit: int) -> bool:
        return bool(self.words.get(self.cr1, 0) & (1 << self.enable_bit) and self.words[self.cr1] & (1 << bit))

    def _frames_fit(self) -> bool:
        return not self.words.get(self.cr1, 0) & self.format_bits

    # --- the line ---------------------------------------------------------------------------------------------

    def poll_line(self) -> None:
        """Take the next byte off the line, where there is one and room for it."""
        if self._received is not None or not self._on(2) or not self.is_clocked or not self.baud():
            return
        byte = self.wire.receive(self.baud())
        if byte is not None and self.rx_connected() and self._frames_fit():
            self._received = byte
            self._vain_reads = 0
            self._interrupts()

    def _send(self, byte: int) -> None:
        self._vain_reads = 0
        if not self._on(3):
            self.complain(self.cr1, "off", "a byte is sent, and the transmitter is off (UE, TE)")
            return
        if not self.baud():
            self.complain(self.brr, "tx", "a byte is sent, and the rate's divisor or its clock is missing")
        elif not self._frames_fit():
            self.complain(self.cr1, "format", "a byte is sent, and its frame is not 8N1, which the host reads")
        elif not self.tx_connected():
            self.complain(0, "tx", "a byte is sent, and the pin is not switched to it")
        else:
            self.wire.send(byte, self.baud())
        self._tx_complete = True
        self._interrupts()

    def _take(self) -> int:
        byte, self._received = self._received, None
        self.poll_line()
        return byte or 0

    def _status(self) -> int:
        self.poll_line()
        if self._received is None:
            self._vain_reads += 1
            if self._vain_reads % _IDLE_READS == 0:
                self.end_slice()
        value = _TXE | (_TC if self._tx_complete else 0)
        return value | (_RXNE if self._received is not None else 0)

    def _interrupts(self) -> None:
        control = self.words.get(self.cr1, 0)
        if not control & (1 << self.enable_bit):
            return
        wanted = control & _RXNE and self._received is not None
        if wanted or control & _TXE or (control & _TC and self._tx_complete):
            self.pend(self.irq)

    # --- registers --------------------------------------------------------------------------------------------

    def load(self, offset: int) -> int:
        return self._load(offset)

    def store(self, offset: int, value: int, mask: int) -> None:
        self._store(offset, value, mask)
        if offset == self.cr1:
            self._interrupts()

    @abstractmethod
    def _load(self, offset: int) -> int: ...

    @abstractmethod
    def _store(self, offset: int, value: int, mask: int) -> None: ...


class Stm32UartV1(Stm32Uart):
    """SR and DR."""

    def _load(self, offset: int) -> int:
        if offset == 0x00:
            return self._status()
        if offset == 0x04:
            return self._take()
        return self.words.get(offset, 0)

    def _store(self, offset: int, value: int, mask: int) -> None:
        if offset == 0x04:
            self._send(value & 0xFF)
        elif offset == 0x00:
            if not value & _TC:
                self._tx_complete = False
        else:
            Device.store(self, offset, value, mask)


class Stm32UartV2(Stm32Uart):
    """ISR, ICR, RDR and TDR."""

    read_only = frozenset({0x1C, 0x24})

    cr1 = 0x00
    brr = 0x0C
    enable_bit = 0
    format_bits = 1 << 28 | 1 << 12 | 1 << 10

    def __init__(self, name: str, wire: Wire, *, irq: int, lpuart: bool = False) -> None:
        self.lpuart = lpuart
        super().__init__(name, wire, irq=irq)

    def _load(self, offset: int) -> int:
        match offset:
            case 0x1C:
                acknowledged = (self._on(3) << 21) | (self._on(2) << 22)
                return self._status() | acknowledged
            case 0x24:
                return self._take()
        return self.words.get(offset, 0)

    def _store(self, offset: int, value: int, mask: int) -> None:
        match offset:
            case 0x28:
                self._send(value & 0xFF)
            case 0x20:
                if value & _TC:
                    self._tx_complete = False
            case 0x18:
                if value & 8:  # RXFRQ
                    self._received = None
            case 0x0C if self._on_at_all():
                self.complain(offset, "fixed", "BRR written while UE is set, which has no effect")
            case _:
                Device.store(self, offset, value, mask)

    def _on_at_all(self) -> bool:
        return bool(self.words.get(0x00, 0) & 1)
