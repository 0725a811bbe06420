"""What a memory planner is asked to place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BufferRequest:
    """One tensor or scratch buffer of the non-persistent part (head).

    ``size_bytes`` is already rounded up to the arena alignment. ``first_use`` and ``last_use`` are scope counters as
    in micro_allocation_info.cc, a closed interval; -1, -1 for tensors that the walk never meets (they are live
    together). ``tensor`` is set for a tensor, ``scratch`` (the request's number) for a scratch buffer, which belongs
    to ``operator`` of ``subgraph``.
    """

    size_bytes: int
    first_use: int
    last_use: int
    subgraph: int
    tensor: int | None = None
    scratch: int | None = None
    operator: int | None = None
    requested_bytes: int = 0
    offline_offset: int | None = None

    def overlaps_in_time(self, other: BufferRequest) -> bool:
        return self.first_use <= other.last_use and other.first_use <= self.last_use


#: A memory planner: requests in TFLM's order of addition → one offset each, in the same order.
Planner = Callable[[Sequence[BufferRequest]], list[int]]
