"""One-pass planners: an order, and the gap that each buffer takes."""

from __future__ import annotations

from collections.abc import Sequence

from harness.plan.buffer import BufferRequest
from harness.plan.planners.occupancy import place_in_order


def no_reuse(requests: Sequence[BufferRequest]) -> list[int]:
    """Every buffer has its own place: the baseline that all reuse is measured against. Offline offsets are ignored."""
    offsets = []
    cursor = 0
    for request in requests:
        offsets.append(cursor)
        cursor += request.size_bytes
    return offsets


def first_use(requests: Sequence[BufferRequest]) -> list[int]:
    """In the order in which lives begin, each into the lowest gap that holds it: what an allocator does that knows
    nothing of the future."""
    return place_in_order(requests, sorted(range(len(requests)), key=lambda i: (requests[i].first_use, i)))


def best_fit(requests: Sequence[BufferRequest]) -> list[int]:
    """Largest first, each into the smallest gap that holds it: the rule of LiteRT's arena
    (tensorflow/lite/simple_memory_arena.cc, SimpleMemoryArena::Allocate)."""
    return place_in_order(requests, by_size(requests), best_fit=True)


def by_size(requests: Sequence[BufferRequest]) -> list[int]:
    """Indices, largest buffer first; of equals the one added last comes first, as in TFLM's greedy planner."""
    return sorted(range(len(requests)), key=lambda i: (-requests[i].size_bytes, -i))


def live_bytes(requests: Sequence[BufferRequest]) -> list[tuple[int, int]]:
    """(time, bytes alive) at each time at which a life begins, in order. Live bytes can only peak there."""
    change: dict[int, int] = {}
    for request in requests:
        change[request.first_use] = change.get(request.first_use, 0) + request.size_bytes
        change[request.last_use + 1] = change.get(request.last_use + 1, 0) - request.size_bytes
    starts = {request.first_use for request in requests}
    load = 0
    loads = []
    for time in sorted(change):
        load += change[time]
        if time in starts:
            loads.append((time, load))
    return loads


def lower_bound_bytes(requests: Sequence[BufferRequest]) -> int:
    """The largest sum of buffers alive at one time. No placement without overlap needs less."""
    return max((load for _, load in live_bytes(requests)), default=0)
