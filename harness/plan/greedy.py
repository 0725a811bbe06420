"""TFLM's greedy memory planner (memory_planner/greedy_memory_planner.cc), result for result, in near-linear time."""

from __future__ import annotations

from collections.abc import Sequence

from harness.plan.buffer import BufferRequest
from harness.plan.planners.heuristics import by_size
from harness.plan.planners.occupancy import place_in_order


def greedy(requests: Sequence[BufferRequest]) -> list[int]:
    """One offset in bytes per request, in their order. Offline offsets are taken as they are (an empty buffer with one,
    which no kernel asks for, would split a gap in TFLM and does not here).

    TFLM places the buffers with an offline offset first, then the others from the largest to the smallest, of equal
    ones the last added first (it fills its list from the end, and its sort is stable). Each goes to the lowest offset
    with enough room between the buffers already placed that live at the same time.
    """
    return place_in_order(requests, by_size(requests))
