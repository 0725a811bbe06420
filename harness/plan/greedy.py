"""TFLM's greedy memory planner (memory_planner/greedy_memory_planner.cc), result for result, in near-linear time.

TFLM places the buffers with an offline offset first, then the others from the largest to the smallest, of equal ones
the last added first. Each goes to the lowest offset with enough room between the buffers already placed that live at
the same time. TFLM walks a list of all placed buffers for that; here two trees over time give the occupied ranges of
just those that live at the same time.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from harness.plan.buffer import BufferRequest


def greedy(requests: Sequence[BufferRequest]) -> list[int]:
    """One offset in bytes per request, in their order. Sizes may be any; offline offsets are taken as they are."""
    offsets = [0] * len(requests)
    if not requests:
        return offsets
    first_time = min(request.first_use for request in requests)
    occupied = _Occupied(max(request.last_use for request in requests) - first_time + 1)
    for index in _placing_order(requests):
        request = requests[index]
        first, last = request.first_use - first_time, request.last_use - first_time
        if request.offline_offset is not None:
            offset = request.offline_offset
        else:
            offset = _lowest_gap(occupied.ranges(first, last), request.size_bytes)
        offsets[index] = offset
        occupied.add(first, last, offset, offset + request.size_bytes)
    return offsets


def _placing_order(requests: Sequence[BufferRequest]) -> list[int]:
    offline = [index for index, request in enumerate(requests) if request.offline_offset is not None]
    online = [index for index in reversed(range(len(requests))) if requests[index].offline_offset is None]
    return offline + sorted(online, key=lambda index: -requests[index].size_bytes)


def _lowest_gap(ranges: list[tuple[int, int]], size_bytes: int) -> int:
    candidate = 0
    for start, end in sorted(ranges):
        if start - candidate >= size_bytes:
            break
        candidate = max(candidate, end)
    return candidate


class _Ranges:
    """A union of byte ranges, kept sorted and merged."""

    __slots__ = ("ends", "starts")

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []

    def add(self, start: int, end: int) -> None:
        low = bisect_left(self.ends, start)
        high = bisect_right(self.starts, end)
        if low < high:
            start, end = min(start, self.starts[low]), max(end, self.ends[high - 1])
        self.starts[low:high] = [start]
        self.ends[low:high] = [end]


class _Occupied:
    """Placed buffers by lifetime. Two lifetimes meet iff one holds the first moment of the other, so a lifetime is kept
    twice: on the nodes of a segment tree that cover it (asked with a moment), and by its first moment (asked with a
    span). Every node keeps only the union of the ranges."""

    def __init__(self, moments: int) -> None:
        self._size = 1 << max(moments - 1, 1).bit_length()
        self._covering: dict[int, _Ranges] = {}
        self._starting: dict[int, _Ranges] = {}

    def add(self, first: int, last: int, start: int, end: int) -> None:
        if end <= start:
            return
        for node in self._span(first, last):
            self._covering.setdefault(node, _Ranges()).add(start, end)
        for node in self._path(first):
            self._starting.setdefault(node, _Ranges()).add(start, end)

    def ranges(self, first: int, last: int) -> list[tuple[int, int]]:
        """The byte ranges of all buffers that live at some moment of ``first`` … ``last``."""
        found: list[tuple[int, int]] = []
        for node in self._path(first):
            self._collect(self._covering, node, found)
        for node in self._span(first + 1, last):
            self._collect(self._starting, node, found)
        return found

    @staticmethod
    def _collect(tree: dict[int, _Ranges], node: int, found: list[tuple[int, int]]) -> None:
        ranges = tree.get(node)
        if ranges is not None:
            found.extend(zip(ranges.starts, ranges.ends, strict=True))

    def _path(self, moment: int) -> Iterator[int]:
        node = moment + self._size
        while node:
            yield node
            node >>= 1

    def _span(self, first: int, last: int) -> Iterator[int]:
        """The fewest nodes that together cover ``first`` … ``last``; none when the span is empty."""
        low, high = first + self._size, last + self._size + 1
        while low < high:
            if low & 1:
                yield low
                low += 1
            if high & 1:
                high -= 1
                yield high
            low >>= 1
            high >>= 1
