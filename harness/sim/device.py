"""Register blocks on the bus: 32-bit registers, sub-word accesses, and what a strict chip would object to."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

log = logging.getLogger(__name__)

WORD = 0xFFFF_FFFF


class BusError(Exception):
    """No one answers at this address: the core takes a BusFault, a debugger's transfer faults."""

    def __init__(self, address: int) -> None:
        super().__init__(f"no answer at 0x{address:08x}")
        self.address = address


class NoAnswerError(Exception):
    """The target does not acknowledge: no power, no wire, debug port switched off, or the wrong clock."""


class TransferFaultError(Exception):
    """The access was acknowledged and failed on the chip's bus."""


class Device:
    """A block of 32-bit registers. Subclasses answer `load` and `store` per word offset.

    Registers that only keep what is written to them live in ``words``; ``names`` serve the log.
    """

    name = "device"
    #: The registers that the chip has here, offset → bits that mean something; None where that is not said.
    registers: Mapping[int, int] | None = None
    #: Those of them that cannot be written.
    read_only: frozenset[int] = frozenset()

    def __init__(self) -> None:
        self.words: dict[int, int] = {}
        #: Whether the block has a clock; without one it reads 0 and keeps nothing.
        self.is_clocked = True
        #: Gets what a program should not have done here. Set by the bus, which knows whose access it was.
        self.on_complaint: Callable[[str], None] = log.warning
        self._told: set[tuple[int, str]] = set()
        self.reset()

    def reset(self) -> None:
        """System reset."""
        self.words = dict(self.reset_values())

    def reset_values(self) -> dict[int, int]:
        return {}

    def load(self, offset: int) -> int:
        return self.words.get(offset, 0)

    def store(self, offset: int, value: int, mask: int) -> None:
        """``mask`` has ones for the bits that the access covers; the others of ``value`` are zero."""
        self.words[offset] = (self.words.get(offset, 0) & ~mask) | (value & mask)

    # --- accesses of any width --------------------------------------------------------------------------------

    def read(self, offset: int, size: int) -> int:
        if not self.is_clocked:
            self.complain(offset, "read", f"+0x{offset:03x} read without a clock")
            return 0
        shift = 8 * (offset & 3)
        value = self.load(offset & ~3) >> shift
        return value & ((1 << (8 * size)) - 1)

    def write(self, offset: int, size: int, value: int) -> None:
        shift = 8 * (offset & 3)
        mask = ((1 << (8 * size)) - 1) << shift & WORD
        if not self.is_clocked:
            self.complain(offset, "write", f"0x{value:x} written to +0x{offset:03x} without a clock")
            return
        at, placed = offset & ~3, (value << shift) & mask
        if self.registers is not None:
            known = self.registers.get(at)
            if known is None or at in self.read_only:
                which = "reserved" if known is None else "read-only"
                self.complain(offset, which, f"0x{value:x} written to +0x{offset:03x}, which is {which}")
                return
            reserved = mask & ~known
            if reserved:
                placed = self._keep_reserved(at, placed, reserved)
        self.store(at, placed, mask)

    def _keep_reserved(self, offset: int, value: int, reserved: int) -> int:
        """``value`` with those bits as they are: a chip takes no notice, and neither does the twin, but it says so."""
        kept = self.words.get(offset, 0)
        changed = (value ^ kept) & reserved
        if changed:
            text = f"0x{value:x} written to +0x{offset:03x}, of which bits 0x{changed:x} are reserved"
            self.complain(offset, "bits", text)
        return value & ~reserved | kept & reserved

    def complain(self, offset: int, kind: str, text: str) -> None:
        """Once for each place and kind."""
        if (offset, kind) not in self._told:
            self._told.add((offset, kind))
            self.on_complaint(f"{self.name}: {text}")


class Reserved(Device):
    """An existing peripheral that the twin does not model: reads 0, keeps nothing, and says so once."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._told_of: set[tuple[str, int]] = set()
        super().__init__()

    def _tell(self, verb: str, offset: int) -> None:
        if (verb, offset) not in self._told_of:
            self._told_of.add((verb, offset))
            log.info("%s: %s of +0x%03x, which the twin does not model", self.name, verb, offset)

    def load(self, offset: int) -> int:
        self._tell("read", offset)
        return 0

    def store(self, offset: int, value: int, mask: int) -> None:  # noqa: ARG002
        self._tell("write", offset)


class Events:
    """Due times on the core's instruction clock."""

    def __init__(self) -> None:
        self._due: dict[str, tuple[int, Callable[[], None]]] = {}

    def at(self, name: str, when: int, action: Callable[[], None]) -> None:
        """Call ``action`` at instruction ``when``; an event of the same name is replaced."""
        self._due[name] = (when, action)

    def cancel(self, name: str) -> None:
        self._due.pop(name, None)

    def clear(self) -> None:
        self._due.clear()

    def next_at(self) -> int | None:
        return min((when for when, _ in self._due.values()), default=None)

    def run_due(self, now: int) -> None:
        for name, (when, action) in sorted(self._due.items(), key=lambda item: item[1][0]):
            if when <= now and self._due.get(name) == (when, action):
                del self._due[name]
                action()
