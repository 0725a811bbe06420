"""A planner that searches: hill climbing over orders, then a proof by branch and bound where the model is small.

Why orders: take the best placement there is and push every buffer down until it rests on offset 0 or on a buffer that
is alive with it. Placing the buffers by rising offset, each into the lowest space that holds it, never ends higher. So
some order reaches the optimum, and only orders need to be searched. Effort is counted in placements, not in seconds:
the answer is the same on every machine.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from harness.plan.buffer import BufferRequest
from harness.plan.planners.heuristics import best_fit, by_size, first_use, lower_bound_bytes
from harness.plan.planners.occupancy import place_in_order

#: Placements that hill climbing may try in all (about a second).
CLIMB_PLACEMENTS = 150_000
#: Nodes that branch and bound may open in all (about a second).
PROOF_NODES = 30_000
#: Branch and bound is tried up to this many buffers.
PROOF_BUFFERS = 24
#: Above this many buffers the result of the one-pass planners is returned as it is.
CLIMB_BUFFERS = 1_500


@dataclass(frozen=True, slots=True)
class SearchedPlacement:
    """``proven`` says that no placement needs less: the lower bound is reached, or every order was looked at."""

    offsets: list[int]
    head_bytes: int
    proven: bool


def search(requests: Sequence[BufferRequest]) -> list[int]:
    """The best placement found within the budget (a ``Planner``)."""
    return search_placement(requests).offsets


def search_placement(requests: Sequence[BufferRequest], effort: float = 1.0) -> SearchedPlacement:
    """Start from the best one-pass planner, climb, then try to prove or improve. Never worse than where it starts.
    ``effort`` scales the budgets."""
    bound = lower_bound_bytes(requests)
    seeds = [place_in_order(requests, by_size(requests)), best_fit(requests), first_use(requests)]
    best = min(seeds, key=lambda offsets: _peak(requests, offsets))
    if bound < _peak(requests, best) and len(requests) <= CLIMB_BUFFERS:
        best = _climb(requests, best, bound, round(effort * CLIMB_PLACEMENTS))
    online = all(request.offline_offset is None for request in requests)
    proven = _peak(requests, best) == bound
    if not proven and online and len(requests) <= PROOF_BUFFERS:
        proof = _Proof(requests, _peak(requests, best), bound, round(effort * PROOF_NODES))
        proven = proof.run()
        best = proof.best or best
    return SearchedPlacement(best, _peak(requests, best), proven)


def _peak(requests: Sequence[BufferRequest], offsets: Sequence[int]) -> int:
    return max((offset + r.size_bytes for r, offset in zip(requests, offsets, strict=True)), default=0)


def _climb(requests: Sequence[BufferRequest], best: list[int], bound: int, placements: int) -> list[int]:
    """Move a buffer that reaches the top, or one alive with it, to an earlier place in the order; keep what is not
    worse. Seeded, so that the same model gives the same plan."""
    chance = random.Random(len(requests))
    order = sorted(range(len(requests)), key=lambda i: (best[i], i))
    current = best
    peak = _peak(requests, best)
    for _ in range(placements // max(1, len(requests))):
        if peak <= bound:
            break
        top = chance.choice([i for i, r in enumerate(requests) if current[i] + r.size_bytes == peak])
        near = [i for i in order if requests[i].overlaps_in_time(requests[top])]
        tried = list(order)
        moved = top if chance.random() < 0.5 else chance.choice(near)
        tried.remove(moved)
        tried.insert(chance.randrange(len(tried) + 1), moved)
        offsets = place_in_order(requests, tried)
        height = _peak(requests, offsets)
        if height <= peak:
            order, current, peak = tried, offsets, height
    return current


class _Proof:
    """Branch and bound: place buffers by rising offset, each on top of all that are alive with it.

    ``skyline[t]`` is the highest byte used so far at moment t. What is not placed yet must go above it, so
    skyline[t] + the unplaced bytes alive at t bounds the rest from below.
    """

    def __init__(self, requests: Sequence[BufferRequest], upper_bytes: int, lower_bytes: int, nodes: int) -> None:
        self._sizes = [request.size_bytes for request in requests]
        moments = sorted({request.first_use for request in requests})
        self._lives = [[k for k, t in enumerate(moments) if r.first_use <= t <= r.last_use] for r in requests]
        self._moments = len(moments)
        self._upper = upper_bytes
        self._lower = lower_bytes
        self._offsets = [0] * len(requests)
        self._nodes = 0
        self._most_nodes = nodes
        self.best: list[int] | None = None

    def run(self) -> bool:
        """True when the best is proven; ``best`` holds a better placement when one was found."""
        rest = [0] * self._moments
        for size, life in zip(self._sizes, self._lives, strict=True):
            for moment in life:
                rest[moment] += size
        unplaced = sorted((i for i, size in enumerate(self._sizes) if size), key=lambda i: -self._sizes[i])
        self._descend(tuple(unplaced), [0] * self._moments, rest, 0)
        return self._nodes <= self._most_nodes or self._upper == self._lower

    def _descend(self, unplaced: tuple[int, ...], skyline: list[int], rest: list[int], floor: int) -> None:
        if not unplaced:
            self._upper = max(skyline)
            self.best = list(self._offsets)
            return
        for index in unplaced:
            self._nodes += 1
            if self._nodes > self._most_nodes or self._upper == self._lower:
                return
            life, size = self._lives[index], self._sizes[index]
            offset = max(skyline[moment] for moment in life)
            if offset < floor or offset + size >= self._upper:
                continue
            higher, less = list(skyline), list(rest)
            for moment in life:
                higher[moment] = offset + size
                less[moment] -= size
            if max(map(int.__add__, higher, less)) < self._upper:
                self._offsets[index] = offset
                self._descend(tuple(i for i in unplaced if i != index), higher, less, offset)
