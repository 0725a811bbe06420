"""Proof that a placement is sound. Shares no code with the planners: it looks at what they made, not at how."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from harness.errors import HarnessError
from harness.plan.buffer import BufferRequest
from harness.plan.setup import TailItem


class Fault(str, Enum):
    """What can be wrong with a placement."""

    COUNT = "count"  # not one offset per buffer
    OVERLAP = "overlap"  # two live buffers share a byte
    MISALIGNED = "misaligned"  # an offset is no multiple of the alignment
    OUT_OF_BOUNDS = "out_of_bounds"  # below 0 or beyond the end
    OFFLINE_OVERLAP = "offline_overlap"  # two buffers share a byte because the model's own offline plan says so


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that is wrong. ``buffers`` are positions in the list of requests."""

    fault: Fault
    buffers: tuple[int, ...]
    text: str


class UnsoundPlanError(HarnessError):
    """A planner of this tool made a placement that would corrupt data: our bug, never to be used as a plan."""

    default_code = "plan.unsound"


def verify(
    requests: Sequence[BufferRequest], offsets: Sequence[int], *, alignment: int, limit_bytes: int | None = None
) -> None:
    """Raise UnsoundPlanError unless the placement is sound. What the model's offline plan asks for is the model's
    affair (TFLM lets it overlap and takes its offsets as they are), so that is left to ``violations``."""
    found = [
        violation
        for violation in violations(requests, offsets, alignment=alignment, limit_bytes=limit_bytes)
        if violation.fault is not Fault.OFFLINE_OVERLAP
        and not (violation.buffers and all(requests[i].offline_offset is not None for i in violation.buffers))
    ]
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise UnsoundPlanError(
            f"the placement is unsound: {found[0].text}{more}",
            remedy="this is a bug of the planner: report it with the model; do not use this plan",
        )


def violations(
    requests: Sequence[BufferRequest], offsets: Sequence[int], *, alignment: int, limit_bytes: int | None = None
) -> list[Violation]:
    """Everything that is wrong with a placement, in order of time. ``limit_bytes`` is the first byte out of bounds."""
    if len(requests) != len(offsets):
        return [Violation(Fault.COUNT, (), f"{len(requests)} buffers have {len(offsets)} offsets")]
    found: list[Violation] = []
    for index, (request, offset) in enumerate(zip(requests, offsets, strict=True)):
        if offset % alignment:
            text = f"buffer {index} is at {offset}, no multiple of {alignment}"
            found.append(Violation(Fault.MISALIGNED, (index,), text))
        end = offset + request.size_bytes
        if offset < 0 or (limit_bytes is not None and end > limit_bytes):
            text = f"buffer {index} takes bytes {offset} to {end} of {limit_bytes}"
            found.append(Violation(Fault.OUT_OF_BOUNDS, (index,), text))
    return found + _overlaps(requests, offsets)


def _overlaps(requests: Sequence[BufferRequest], offsets: Sequence[int]) -> list[Violation]:
    """Walk through time with the live buffers held by rising offset. While these are disjoint, a buffer that is born
    can only collide with those around its own offset; one that does collide is reported and left out."""
    births = [(r.first_use, 1, i) for i, r in enumerate(requests) if r.size_bytes > 0 and r.first_use <= r.last_use]
    deaths = [(requests[i].last_use + 1, 0, i) for _, _, i in births]
    alive: list[tuple[int, int, int]] = []  # (offset, end, index)
    found: list[Violation] = []
    left_out: set[int] = set()
    for _, is_birth, index in sorted(births + deaths):
        span = (offsets[index], offsets[index] + requests[index].size_bytes, index)
        if not is_birth:
            if index not in left_out:
                del alive[bisect_left(alive, span)]
            continue
        colliding = _colliding(alive, span)
        if not colliding:
            insort(alive, span)
            continue
        left_out.add(index)
        for other in colliding:
            offline = requests[index].offline_offset is not None and requests[other[2]].offline_offset is not None
            text = (
                f"buffers {other[2]} (bytes {other[0]} to {other[1]}) and {index} (bytes {span[0]} to {span[1]}) are "
                f"both alive at time {requests[index].first_use}"
            )
            pair = (min(index, other[2]), max(index, other[2]))
            found.append(Violation(Fault.OFFLINE_OVERLAP if offline else Fault.OVERLAP, pair, text))
    return found


def _colliding(alive: list[tuple[int, int, int]], span: tuple[int, int, int]) -> list[tuple[int, int, int]]:
    at = bisect_left(alive, span)
    first = at - 1 if at and alive[at - 1][1] > span[0] else at
    last = at
    while last < len(alive) and alive[last][0] < span[1]:
        last += 1
    return alive[first:last]


def verify_tail(items: Sequence[TailItem], *, arena_bytes: int, head_bytes: int) -> None:
    """Raise UnsoundPlanError unless the persistent allocations lie apart, aligned, in the order in which they are made,
    between the head and the end of an arena of ``arena_bytes`` from an aligned base."""
    above = arena_bytes
    for item in items:
        start = arena_bytes - item.offset_bytes
        end = start + item.size_bytes
        if start % item.alignment or end > above or start < head_bytes:
            raise UnsoundPlanError(
                f"the tail is unsound: {item.label} takes bytes {start} to {end}, aligned to {item.alignment}; free "
                f"were bytes {head_bytes} to {above}",
                remedy="this is a bug of the plan: report it with the model; do not use this plan",
            )
        above = start
