"""TFLM's linear memory planner (memory_planner/linear_memory_planner.cc): nothing is reused. The interpreter takes it
when all tensors are to be preserved."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from harness.plan.buffer import BufferRequest


def linear(requests: Sequence[BufferRequest]) -> list[int]:
    """The running sum of the sizes, in bytes."""
    return list(accumulate((request.size_bytes for request in requests), initial=0))[: len(requests)]
