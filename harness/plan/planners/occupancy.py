"""Which placed buffers are alive together with a new one, and the gaps that they leave."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

from harness.plan.buffer import BufferRequest


class Occupancy:
    """Placed buffers, found by time in O(log n + answers).

    A buffer overlaps [first, last] in time if it is alive at ``first``, or if its life begins after ``first`` and not
    after ``last``. The first set comes from a segment tree over the times at which lives begin, the second from lists
    per beginning. So planning a chain of n operators grows as n log n, not as n squared.
    """

    def __init__(self, requests: Sequence[BufferRequest]) -> None:
        self._requests = requests
        self._starts = sorted({request.first_use for request in requests})
        self._width = 1
        while self._width < len(self._starts):
            self._width *= 2
        self._alive: list[list[int]] = [[] for _ in range(2 * self._width)]
        self._begun: list[list[int]] = [[] for _ in self._starts]
        self.offsets: list[int | None] = [None] * len(requests)

    def place(self, index: int, offset_bytes: int) -> None:
        """Give request ``index`` its offset."""
        request = self._requests[index]
        self.offsets[index] = offset_bytes
        left = bisect_left(self._starts, request.first_use)
        right = bisect_right(self._starts, request.last_use)
        self._begun[left].append(index)
        left += self._width
        right += self._width
        while left < right:
            if left & 1:
                self._alive[left].append(index)
                left += 1
            if right & 1:
                right -= 1
                self._alive[right].append(index)
            left //= 2
            right //= 2

    def gaps(self, index: int) -> Iterable[tuple[int, int | None]]:
        """The free spaces (offset, size) of the head during the life of request ``index``, by rising offset. The last
        one has no end (size None). A gap may be of size 0 or less where offline buffers overlap: it holds nothing."""
        cursor = 0
        for offset, end in sorted(self._overlapping(index)):
            yield cursor, offset - cursor
            cursor = max(cursor, end)
        yield cursor, None

    def finished(self) -> list[int]:
        """The offsets of all requests, each placed by now."""
        placed = [offset for offset in self.offsets if offset is not None]
        assert len(placed) == len(self.offsets), "a planner left a buffer without a place"
        return placed

    def _overlapping(self, index: int) -> list[tuple[int, int]]:
        request = self._requests[index]
        start = bisect_left(self._starts, request.first_use)
        found: list[int] = []
        node = start + self._width
        while node:
            found.extend(self._alive[node])
            node //= 2
        for later in range(start + 1, bisect_right(self._starts, request.last_use)):
            found.extend(self._begun[later])
        spans = []
        for other in found:
            offset = self.offsets[other]
            if offset is not None:
                spans.append((offset, offset + self._requests[other].size_bytes))
        return spans


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
