"""The memory protection units of ARMv7-M and ARMv8-M: what an access may not touch is enforced.

Sources: DDI 0403E, B3.1 (default map) and B3.5; DDI 0553B, B12 and D1.2 (ARMv8-M). Enforced is what binds privileged
code: access permissions, execute-never, and that without PRIVDEFENA only regions may be used. Memory types and
unprivileged code are not told apart.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from harness.sim.engine import Engine

REGIONS = 8
TYPE, CTRL, RNR, RBAR = 0xD90, 0xD94, 0xD98, 0xD9C
MAIR0, MAIR1 = 0xDC0, 0xDC4
ENABLE, HFNMIENA, PRIVDEFENA = 1, 2, 4
_VALID = 1 << 4
_TOP = 1 << 32
#: The Private Peripheral Bus, which the MPU does not guard, and the System space, from which nothing is executed.
_PPB, _PPB_END = 0xE000_0000, 0xE010_0000
#: Where the default memory map has code: Code, SRAM, external RAM. Peripherals, external devices, System: never.
_DEFAULT_CODE = ((0x0000_0000, 0x4000_0000), (0x6000_0000, 0xA000_0000))
_LARGEST_ACCESS = 8


class Access(Enum):
    READ = "read"
    WRITE = "write"
    EXECUTE = "execute"


_ALL = frozenset(Access)
_DATA = frozenset({Access.READ, Access.WRITE})


@dataclass(frozen=True, slots=True)
class Region:
    """A region that is switched on, ``[start, end)``, and what privileged code may do there."""

    start: int
    end: int
    allowed: frozenset[Access]


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of the address space, ``[start, end)``, to which one rule applies."""

    start: int
    end: int
    allowed: frozenset[Access]


def is_code_by_default(address: int) -> bool:
    """Whether instructions may be fetched from there, as far as the default memory map goes."""
    return any(start <= address < end for start, end in _DEFAULT_CODE)


def _permissions(*, may_read: bool, may_write: bool, never_execute: bool) -> frozenset[Access]:
    if not may_read:
        return frozenset()
    denied = set() if may_write else {Access.WRITE}
    return _ALL - denied - ({Access.EXECUTE} if never_execute else set())


class Mpu(ABC):
    """Registers from 0xD90 on of the System Control Space. ``on_violation`` gets (address, size, is_write)."""

    last = 0xDB8

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.on_violation: Callable[[int, int, bool], None] = lambda _address, _size, _is_write: None
        #: Whether a HardFault, an NMI or FAULTMASK is in force: the MPU then rests, unless HFNMIENA says otherwise.
        self.rests: Callable[[], bool] = lambda: False
        self._spans: list[Span] = []
        self.reset()

    def reset(self) -> None:
        self.control = 0
        self._number = 0
        self._bases = [0] * REGIONS
        self._attributes = [0] * REGIONS
        self._apply()

    # --- registers --------------------------------------------------------------------------------------------

    def load(self, offset: int) -> int:
        match offset:
            case 0xD90:
                return REGIONS << 8
            case 0xD94:
                return self.control
            case 0xD98:
                return self._number
        return self._load_region(offset)

    def store(self, offset: int, value: int) -> None:
        if offset == CTRL:
            self.control = value & 7
        elif offset == RNR:
            self._number = value & (REGIONS - 1)
        elif offset >= RBAR:
            self._store_region(offset, value)
        self._apply()

    @abstractmethod
    def _load_region(self, offset: int) -> int: ...

    @abstractmethod
    def _store_region(self, offset: int, value: int) -> None: ...

    # --- rules ------------------------------------------------------------------------------------------------

    @abstractmethod
    def regions(self) -> list[Region]:
        """Those that are switched on, in the order of their numbers."""

    @abstractmethod
    def _choose(self, found: list[Region]) -> frozenset[Access]:
        """What may be done where all of these lie; there is at least one."""

    def spans(self) -> list[Span]:
        """The whole address space, in order; empty while the MPU is off."""
        if not self.control & ENABLE:
            return []
        regions = self.regions()
        edges = {0, _PPB, _PPB_END, _TOP, *(edge for code in _DEFAULT_CODE for edge in code)}
        edges |= {edge for region in regions for edge in (region.start, region.end)}
        return list(_joined(Span(*pair, self._rule(pair[0], regions)) for pair in pairwise(sorted(edges))))

    def _rule(self, address: int, regions: list[Region]) -> frozenset[Access]:
        if _PPB <= address < _PPB_END:
            return _DATA
        found = [region for region in regions if region.start <= address < region.end]
        if found:
            rule = self._choose(found)
        elif self.control & PRIVDEFENA:
            rule = _ALL if is_code_by_default(address) else _DATA
        else:
            rule = frozenset()
        return rule - {Access.EXECUTE} if address >= _PPB else rule

    def denies(self, address: int, size: int, access: Access) -> int | None:
        """The first byte that the access may not touch; None for none."""
        if not self._spans or (self.rests() and not self.control & HFNMIENA):
            return None
        for span in self._spans:
            if span.end > address and span.start < address + size and access not in span.allowed:
                return max(span.start, address)
        return None

    def denies_fetch(self, address: int, size: int = 2) -> bool:
        """Also where the MPU is off: the default map has regions that nothing is executed from."""
        if self._spans and not (self.rests() and not self.control & HFNMIENA):
            return self.denies(address, size, Access.EXECUTE) is not None
        return not is_code_by_default(address)

    def _apply(self) -> None:
        spans = self.spans()
        if spans == self._spans:
            return
        self._spans = spans
        reads, writes = self._forbidden(Access.READ), self._forbidden(Access.WRITE)
        self._engine.watch_accesses("mpu", reads, writes, self._on_access)
        self._engine.watch_fetches(self._forbidden(Access.EXECUTE), self._denied_code)

    def _forbidden(self, access: Access) -> list[tuple[int, int]]:
        """Ranges of first bytes, both ends included: an access may begin below what it must not touch."""
        found = [(s.start, s.end) for s in self._spans if access not in s.allowed]
        return [(max(0, start - _LARGEST_ACCESS + 1), end - 1) for start, end in found]

    def _denied_code(self, address: int, size: int) -> int | None:
        return self.denies(address, size, Access.EXECUTE)

    def _on_access(self, address: int, size: int, is_write: bool) -> None:
        denied = self.denies(address, size, Access.WRITE if is_write else Access.READ)
        if denied is not None:
            self.on_violation(denied, size, is_write)


def _joined(spans: Iterable[Span]) -> Iterable[Span]:
    """Neighbours with the same rule become one."""
    last: Span | None = None
    for span in spans:
        if last is not None and last.allowed == span.allowed:
            last = Span(last.start, span.end, span.allowed)
            continue
        if last is not None:
            yield last
        last = span
    if last is not None:
        yield last


class MpuV7(Mpu):
    """Regions of a power of two, with eighths that can be switched off; of those that overlap the highest number
    decides."""

    def _load_region(self, offset: int) -> int:
        if (offset - RBAR) % 8 == 0:
            return self._bases[self._number] | self._number
        return self._attributes[self._number]

    def _store_region(self, offset: int, value: int) -> None:
        if (offset - RBAR) % 8 == 0:
            if value & _VALID:
                self._number = value & (REGIONS - 1)
            self._bases[self._number] = value & ~0x1F
        else:
            self._attributes[self._number] = value & 0x173F_FF3F

    def regions(self) -> list[Region]:
        return [
            piece
            for base, attributes in zip(self._bases, self._attributes, strict=True)
            for piece in self._pieces(base, attributes)
        ]

    @staticmethod
    def _pieces(base: int, attributes: int) -> Iterable[Region]:
        """A region as its eighths that are on, or as a whole."""
        size, permission = 2 << (attributes >> 1 & 31), attributes >> 24 & 7
        if not attributes & 1 or size < 32:
            return
        start = base & ~(size - 1)
        allowed = _permissions(
            may_read=permission not in (0, 4),
            may_write=permission in (1, 2, 3),
            never_execute=bool(attributes & (1 << 28)),
        )
        disabled = attributes >> 8 & 0xFF if size >= 256 else 0
        if not disabled:
            yield Region(start, start + size, allowed)
            return
        for eighth in range(8):
            if not disabled >> eighth & 1:
                yield Region(start + eighth * size // 8, start + (eighth + 1) * size // 8, allowed)

    def _choose(self, found: list[Region]) -> frozenset[Access]:
        return found[-1].allowed


class MpuV8(Mpu):
    """Regions from a base to a limit, in steps of 32 bytes; where two overlap, every access faults."""

    last = MAIR1

    def reset(self) -> None:
        self._memory_types = {MAIR0: 0, MAIR1: 0}
        super().reset()

    def _selected(self, offset: int) -> int:
        """RBAR and RLAR are those of RNR; their aliases those of its group of four."""
        alias = (offset - RBAR) // 8
        return (self._number & ~3) | alias if alias else self._number

    def _load_region(self, offset: int) -> int:
        if offset in self._memory_types:
            return self._memory_types[offset]
        if offset > 0xDB8:
            return 0
        registers = self._bases if (offset - RBAR) % 8 == 0 else self._attributes
        return registers[self._selected(offset)]

    def _store_region(self, offset: int, value: int) -> None:
        if offset in self._memory_types:
            self._memory_types[offset] = value
        elif offset <= 0xDB8:
            is_base = (offset - RBAR) % 8 == 0
            registers = self._bases if is_base else self._attributes
            registers[self._selected(offset)] = value if is_base else value & ~0x10

    def regions(self) -> list[Region]:
        return [
            Region(
                base & ~0x1F,
                (limit | 0x1F) + 1,
                _permissions(may_read=True, may_write=not base >> 2 & 1, never_execute=bool(base & 1)),
            )
            for base, limit in zip(self._bases, self._attributes, strict=True)
            if limit & 1 and base & ~0x1F <= limit | 0x1F
        ]

    def _choose(self, found: list[Region]) -> frozenset[Access]:
        return found[0].allowed if len(found) == 1 else frozenset()
