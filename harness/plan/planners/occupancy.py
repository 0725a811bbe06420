"""Which bytes are taken while a buffer lives, and the gaps between them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

from harness.plan.buffer import BufferRequest

#: Moments are grouped by 2 ** _GROUP_BITS, those groups again, and so on: few levels, and few groups per lifetime.
_GROUP_BITS = 4
_GROUP_MASK = (1 << _GROUP_BITS) - 1


class Occupancy:
    """The byte ranges of placed buffers, found by time in about log n.

    Two lifetimes meet iff one of them holds the first moment of the other. So each placed buffer is kept twice: with
    the groups of moments that together make up its life (asked with one moment), and with all groups that hold its
    first moment (asked with a span). A group keeps only the union of its ranges, which planners keep short by packing.
    """

    def __init__(self, requests: Sequence[BufferRequest]) -> None:
        self._requests = requests
        self._epoch = min((request.first_use for request in requests), default=0)
        moments = max((request.last_use for request in requests), default=0) - self._epoch + 1
        self._levels = 1
        while moments > 1 << (_GROUP_BITS * self._levels):
            self._levels += 1
        self._alive: dict[tuple[int, int], _Ranges] = {}
        self._begun: dict[tuple[int, int], _Ranges] = {}
        self._offsets: list[int | None] = [None] * len(requests)

    def place(self, index: int, offset_bytes: int) -> None:
        """Give request ``index`` its offset."""
        request = self._requests[index]
        self._offsets[index] = offset_bytes
        if not request.size_bytes:
            return
        first, last = request.first_use - self._epoch, request.last_use - self._epoch
        end_bytes = offset_bytes + request.size_bytes
        for groups, held in ((self._alive, self._span(first, last)), (self._begun, self._groups_of(first))):
            for group in held:
                ranges = groups.get(group)
                if ranges is None:
                    groups[group] = _Ranges(offset_bytes, end_bytes)
                else:
                    ranges.add(offset_bytes, end_bytes)

    def gaps(self, index: int) -> Iterable[tuple[int, int | None]]:
        """The free spaces (offset, size) of the head during the life of request ``index``, by rising offset. The last
        one has no end (size None). A gap may be of size 0 or less where buffers overlap or touch: it holds nothing."""
        request = self._requests[index]
        first, last = request.first_use - self._epoch, request.last_use - self._epoch
        taken: list[tuple[int, int]] = []
        for groups, asked in ((self._alive, self._groups_of(first)), (self._begun, self._span(first + 1, last))):
            for group in asked:
                ranges = groups.get(group)
                if ranges is not None:
                    taken.extend(zip(ranges.starts, ranges.ends, strict=True))
        cursor = 0
        for offset, end in sorted(taken):
            yield cursor, offset - cursor
            cursor = max(cursor, end)
        yield cursor, None

    def finished(self) -> list[int]:
        """The offsets of all requests, each placed by now."""
        placed = [offset for offset in self._offsets if offset is not None]
        assert len(placed) == len(self._offsets), "a planner left a buffer without a place"
        return placed

    def _groups_of(self, moment: int) -> Iterator[tuple[int, int]]:
        """The groups (level, number) of every level that hold one moment."""
        for level in range(self._levels):
            yield level, moment >> (_GROUP_BITS * level)

    def _span(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """The fewest groups that together are ``first`` … ``last``; none for an empty span."""
        low, high = first, last + 1
        for level in range(self._levels):
            top = level == self._levels - 1
            while low < high and (top or low & _GROUP_MASK):
                yield level, low
                low += 1
            while low < high and high & _GROUP_MASK:
                high -= 1
                yield level, high
            low >>= _GROUP_BITS
            high >>= _GROUP_BITS


class _Ranges:
    """A union of byte ranges, kept sorted and merged."""

    __slots__ = ("ends", "starts")

    def __init__(self, start: int, end: int) -> None:
        self.starts = [start]
        self.ends = [end]

    def add(self, start: int, end: int) -> None:
        low = bisect_left(self.ends, start)
        high = bisect_right(self.starts, end)
        if low < high:
            start, end = min(start, self.starts[low]), max(end, self.ends[high - 1])
        self.starts[low:high] = [start]
        self.ends[low:high] = [end]


def place_in_order(requests: Sequence[BufferRequest], order: Iterable[int], *, best_fit: bool = False) -> list[int]:
    """Place offline buffers where their plan says, then the rest in ``order``: each into the lowest gap that holds it,
    or with ``best_fit`` into the smallest such gap (the lowest of equals; the open end only when no gap holds it)."""
    occupancy = Occupancy(requests)
    for index, request in enumerate(requests):
        if request.offline_offset is not None:
            occupancy.place(index, request.offline_offset)
    for index in order:
        if requests[index].offline_offset is None:
            occupancy.place(index, _choose(occupancy.gaps(index), requests[index].size_bytes, best_fit))
    return occupancy.finished()


def _choose(gaps: Iterable[tuple[int, int | None]], size_bytes: int, best_fit: bool) -> int:
    best: tuple[int, int] | None = None
    end = 0
    for offset, size in gaps:
        if size is None:
            end = offset
        elif size >= size_bytes:
            if not best_fit:
                return offset
            if best is None or size < best[0]:
                best = (size, offset)
    return end if best is None else best[1]
