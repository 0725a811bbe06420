"""The memory protection unit of ARMv7-M: regions that data accesses may not touch are enforced.

Source: DDI 0403E, B3.5. Enforced are the access permissions that bind privileged code, as nothing here runs without
privilege: "no access", and "read only". Not enforced: execute-never, and the absence of a background region.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from harness.sim.engine import Engine

log = logging.getLogger(__name__)

REGIONS = 8
TYPE, CTRL, RNR, RBAR, RASR = 0xD90, 0xD94, 0xD98, 0xD9C, 0xDA0
LAST = 0xDB8
ENABLE, HFNMIENA, PRIVDEFENA = 1, 2, 4
_NO_ACCESS, _READ_ONLY = 0, (5, 6, 7)
_VALID = 1 << 4


@dataclass(frozen=True, slots=True)
class Region:
    """A region that is switched on: ``[start, end)`` without the eighths that are switched off."""

    start: int
    end: int
    disabled_eighths: int
    permission: int

    def covers(self, address: int) -> bool:
        if not self.start <= address < self.end:
            return False
        size = self.end - self.start
        return size < 256 or not self.disabled_eighths >> ((address - self.start) * 8 // size) & 1

    def denies(self, is_write: bool) -> bool:
        return self.permission == _NO_ACCESS or (is_write and self.permission in _READ_ONLY)


class Mpu:
    """Registers 0xD90 to 0xDB8 of the System Control Space. ``on_violation`` gets (address, size, is_write)."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.on_violation: Callable[[int, int, bool], None] = lambda _address, _size, _is_write: None
        #: Whether a HardFault, an NMI or FAULTMASK is in force: the MPU then rests, unless HFNMIENA says otherwise.
        self.rests: Callable[[], bool] = lambda: False
        self._watching: list[tuple[int, int]] = []
        self.reset()

    def reset(self) -> None:
        self.control = 0
        self._number = 0
        self._bases = [0] * REGIONS
        self._attributes = [0] * REGIONS
        self._apply()

    def load(self, offset: int) -> int:
        if offset == TYPE:
            return REGIONS << 8
        if offset == CTRL:
            return self.control
        if offset == RNR:
            return self._number
        if (offset - RBAR) % 8 == 0:
            return self._bases[self._number] | self._number
        return self._attributes[self._number]

    def store(self, offset: int, value: int) -> None:
        if offset == CTRL:
            self.control = value & 7
        elif offset == RNR:
            self._number = value & (REGIONS - 1)
        elif offset >= RBAR and (offset - RBAR) % 8 == 0:
            if value & _VALID:
                self._number = value & (REGIONS - 1)
            self._bases[self._number] = value & ~0x1F
        elif offset >= RASR:
            self._attributes[self._number] = value & 0x173F_FF3F
        self._apply()

    def regions(self) -> list[Region]:
        """Those in force, the one that decides last: the highest number wins."""
        if not self.control & ENABLE:
            return []
        found = []
        for base, attributes in zip(self._bases, self._attributes, strict=True):
            size = 2 << (attributes >> 1 & 31)
            if attributes & 1 and size >= 32:
                start = base & ~(size - 1)
                found.append(Region(start, start + size, attributes >> 8 & 0xFF, attributes >> 24 & 7))
        return found

    def denies(self, address: int, size: int, is_write: bool) -> int | None:
        """The first byte that the access may not touch; None for none."""
        if self.rests() and not self.control & HFNMIENA:
            return None
        regions = self.regions()
        for at in range(address, address + size):
            deciding = next((region for region in reversed(regions) if region.covers(at)), None)
            if deciding is not None and deciding.denies(is_write):
                return at
        return None

    def _apply(self) -> None:
        # An access of up to 8 bytes may begin below the region.
        watched = [(max(0, r.start - 7), r.end - 1) for r in self.regions() if r.denies(is_write=True)]
        if watched != self._watching:
            self._watching = watched
            self._engine.watch_accesses("mpu", watched, self._on_access)

    def _on_access(self, address: int, size: int, is_write: bool) -> None:
        denied = self.denies(address, size, is_write)
        if denied is not None:
            self.on_violation(denied, size, is_write)
