"""Planners side by side, and what the alignment costs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.abi import ARENA_ALIGNMENT
from harness.plan.buffer import BufferRequest, Planner
from harness.plan.greedy import greedy
from harness.plan.linear import linear
from harness.plan.planners.heuristics import best_fit, first_use, live_bytes, lower_bound_bytes, no_reuse
from harness.plan.planners.search import search, search_placement
from harness.plan.verifier import verify
from harness.units import align_up


@dataclass(frozen=True, slots=True)
class PlannerResult:
    """``ratio`` is head_bytes over the lower bound (1.0 when both are 0). ``optimal``: nothing smaller exists."""

    planner: str
    head_bytes: int
    ratio: float
    seconds: float
    optimal: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """``bound_bytes`` is the largest sum of buffers alive at one time: no planner can do with less."""

    bound_bytes: int
    results: tuple[PlannerResult, ...]


@dataclass(frozen=True, slots=True)
class AlignmentCost:
    """The head if every buffer were rounded to ``alignment``. ``padding_bytes`` is the rounding of all buffers,
    ``peak_padding_bytes`` that of the buffers alive at the fullest moment: what the head really pays."""

    alignment: int
    head_bytes: int
    padding_bytes: int
    peak_padding_bytes: int


def head_bytes(requests: Sequence[BufferRequest], offsets: Sequence[int]) -> int:
    """The size of the head: the highest byte that a buffer ends at."""
    return max((offset + r.size_bytes for r, offset in zip(requests, offsets, strict=True)), default=0)


def compare(
    requests: Sequence[BufferRequest], planners: dict[str, Planner], *, alignment: int = ARENA_ALIGNMENT
) -> Comparison:
    """Run each planner, verify what it made, and measure it."""
    bound = lower_bound_bytes(requests)
    results = []
    for name, planner in planners.items():
        start = time.perf_counter()
        if planner is search:
            searched = search_placement(requests)
            offsets, proven = searched.offsets, searched.proven
        else:
            offsets, proven = planner(requests), False
        seconds = time.perf_counter() - start
        verify(requests, offsets, alignment=alignment)
        head = head_bytes(requests, offsets)
        ratio = head / bound if bound else 1.0
        results.append(PlannerResult(name, head, ratio, seconds, proven or head == bound))
    return Comparison(bound, tuple(results))


def alignment_costs(
    requests: Sequence[BufferRequest], planner: Planner, alignments: Sequence[int] = (4, 8, 16)
) -> tuple[AlignmentCost, ...]:
    """What the head would be with other alignments.

    TFLM's is fixed at 16 when it is compiled, and kernels rely on it.
    """
    costs = []
    for alignment in alignments:
        sized = [replace(r, size_bytes=align_up(r.requested_bytes, alignment), offline_offset=None) for r in requests]
        offsets = planner(sized)
        verify(sized, offsets, alignment=alignment)
        fullest = max(live_bytes(sized), key=lambda moment: moment[1], default=(0, 0))[0]
        padding = [(r, r.size_bytes - r.requested_bytes) for r in sized]
        at_peak = sum(pad for r, pad in padding if r.first_use <= fullest <= r.last_use)
        costs.append(AlignmentCost(alignment, head_bytes(sized, offsets), sum(p for _, p in padding), at_peak))
    return tuple(costs)


#: Planners by the names that ``--planner`` takes: TFLM's two, then others, then the baseline.
PLANNERS: dict[str, Planner] = {
    "greedy": greedy,
    "linear": linear,
    "first_use": first_use,
    "best_fit": best_fit,
    "search": search,
    "none": no_reuse,
}
