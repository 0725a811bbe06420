"""What a placement tells a person: the fullest moment, who is alive there, and what would make it smaller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from harness.model.graph import Model, Tensor, TensorType
from harness.plan.buffer import BufferRequest, Planner
from harness.plan.comparison import head_bytes
from harness.plan.greedy import greedy
from harness.plan.planners.heuristics import live_bytes
from harness.plan.planners.search import search_placement
from harness.plan.timeline import Step
from harness.units import format_bytes, quoted

#: Changed requests by index → bytes by which the head shrinks.
_Saved = Callable[[dict[int, BufferRequest]], int]

#: Re-planning is skipped for models with more buffers than this: it runs the planner once per candidate.
REPLANNED_BUFFERS = 2_000
#: Better places are searched for in models of at most so many buffers, with so much of the planner's whole effort.
SEARCHED_BUFFERS = 200
SEARCH_EFFORT = 0.15
#: Buffers alive at the peak that are looked at for a win.
CANDIDATES = 6


class Use(str, Enum):
    """What a buffer of the head is for. An input that is also an output counts as input."""

    INPUT = "input"
    OUTPUT = "output"
    INTERMEDIATE = "intermediate"
    SCRATCH = "scratch"


@dataclass(frozen=True, slots=True)
class HeadView:
    """A placement with what is needed to name its parts. ``steps`` is the timeline of ``model``."""

    model: Model
    requests: Sequence[BufferRequest]
    offsets: Sequence[int]
    steps: Sequence[Step]

    def use(self, index: int) -> Use:
        request = self.requests[index]
        if request.tensor is None:
            return Use.SCRATCH
        main = self.model.subgraphs[0]
        if request.subgraph == 0 and request.tensor in main.inputs:
            return Use.INPUT
        return Use.OUTPUT if request.subgraph == 0 and request.tensor in main.outputs else Use.INTERMEDIATE

    def tensor(self, index: int) -> Tensor | None:
        request = self.requests[index]
        return None if request.tensor is None else self.model.subgraphs[request.subgraph].tensors[request.tensor]

    def name(self, index: int) -> str:
        """``tensor 12 "conv/Relu"``, ``tensor 3 of subgraph 1 "x"``, ``scratch 0 of CONV_2D 3``; safe to print."""
        request, tensor = self.requests[index], self.tensor(index)
        if tensor is None:
            return f"scratch {request.scratch} of {self.operator(request)}"
        place = f" of subgraph {request.subgraph}" if request.subgraph else ""
        return f"tensor {tensor.index}{place} {quoted(tensor.name, 60)}"

    def operator(self, request: BufferRequest) -> str:
        if request.operator is None:
            return "an operator"
        return Step(request.subgraph, self.model.subgraphs[request.subgraph].operators[request.operator]).label

    def step(self, at: int) -> str:
        return self.steps[at].label if 0 <= at < len(self.steps) else "nothing: no operator uses them"


@dataclass(frozen=True, slots=True)
class Peak:
    """The step at which most bytes are alive (the first of equals). ``buffers`` are alive there, largest first."""

    step: int
    live_bytes: int
    buffers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Win:
    """A change of the model or the build, and how much smaller the head would be with it, by planning again."""

    text: str
    saved_bytes: int


@dataclass(frozen=True, slots=True)
class Region:
    """A part of the arena."""

    section: str  # "head" or "tail"
    name: str
    size_bytes: int


def find_peak(requests: Sequence[BufferRequest]) -> Peak:
    """The fullest moment of a set of buffers."""
    step, live = max(live_bytes(requests), key=lambda moment: (moment[1], -moment[0]), default=(0, 0))
    alive = [i for i, r in enumerate(requests) if r.first_use <= step <= r.last_use and r.size_bytes]
    alive.sort(key=lambda i: (-requests[i].size_bytes, i))
    return Peak(step, live, tuple(alive))


def head_regions(view: HeadView, peak: Peak) -> list[Region]:
    """The head at its fullest moment; the parts add up to the head."""
    sizes = dict.fromkeys(Use, 0)
    padding = 0
    for index in peak.buffers:
        request = view.requests[index]
        sizes[view.use(index)] += request.requested_bytes
        padding += request.size_bytes - request.requested_bytes
    unused = head_bytes(view.requests, view.offsets) - peak.live_bytes
    regions = [Region("head", f"{use.value}s" if use is not Use.SCRATCH else use.value, sizes[use]) for use in Use]
    return [*regions, Region("head", "padding to 16", padding), Region("head", "unused at the peak", unused)]


def find_wins(view: HeadView, peak: Peak, planner: Planner) -> list[Win]:
    """What would shrink the head most, each proven by planning again; at most one entry per buffer, largest first."""
    if len(view.requests) > REPLANNED_BUFFERS:
        return []
    head = head_bytes(view.requests, view.offsets)

    def saved(changed: dict[int, BufferRequest]) -> int:
        requests = [changed.get(i, r) for i, r in enumerate(view.requests)]
        return head - head_bytes(requests, planner(requests))

    wins = [_placement_win(view, peak, planner), _scratch_win(view, peak, saved), _float_win(view, peak, saved)]
    wins += [_life_win(view, peak, index, saved) for index in peak.buffers[:CANDIDATES]]
    found = [win for win in wins if win is not None and win.saved_bytes > 0]
    return sorted(found, key=lambda win: -win.saved_bytes)


def _life_win(view: HeadView, peak: Peak, index: int, saved: _Saved) -> Win | None:
    """A tensor that only waits at the peak: made before, read again later (a skip connection, an early input)."""
    request = view.requests[index]
    if request.tensor is None or not request.first_use < peak.step < request.last_use:
        return None
    steps = range(max(0, request.first_use + 1), min(request.last_use, len(view.steps) - 1) + 1)
    readers = [at for at in steps if _reads(view.steps[at], request)]
    after = [at for at in readers if at > peak.step]
    if peak.step in readers or not after:
        return None
    before = [at for at in readers if at < peak.step]
    what = f"{view.name(index)} ({format_bytes(request.requested_bytes)} bytes)"
    across = sum(view.steps[at].operator is not None for at in range(max(0, request.first_use), after[0] + 1))
    if before:
        text = f"{what} lives across {across} operators because {view.step(after[0])} reads it again (skip connection)"
    else:
        text = f"{what} waits across {across} operators from {view.step(request.first_use)} to {view.step(after[0])}"
    shorter = replace(request, last_use=before[-1] if before else max(0, request.first_use))
    return Win(text, saved({index: shorter}))


def _placement_win(view: HeadView, peak: Peak, planner: Planner) -> Win | None:
    """The same buffers laid out better than TFLM's planner does."""
    head = head_bytes(view.requests, view.offsets)
    online = all(request.offline_offset is None for request in view.requests)
    if planner is not greedy or head == peak.live_bytes or not online or len(view.requests) > SEARCHED_BUFFERS:
        return None
    best = search_placement(view.requests, SEARCH_EFFORT)
    proof = ", and none needs less" if best.proven else ""
    text = f"the same buffers in better places: --write-offline-plan puts them into a copy of the model{proof}"
    return Win(text, head - best.head_bytes)


def _scratch_win(view: HeadView, peak: Peak, saved: _Saved) -> Win | None:
    scratch = [i for i in peak.buffers if view.requests[i].tensor is None]
    if not scratch:
        return None
    total = sum(view.requests[i].requested_bytes for i in scratch)
    kernels = ", ".join(dict.fromkeys(view.operator(view.requests[i]) for i in scratch))
    text = f"{format_bytes(total)} bytes at the peak are scratch that the kernel of {kernels} asks for"
    return Win(text, saved({i: replace(view.requests[i], size_bytes=0) for i in scratch}))


def _float_win(view: HeadView, peak: Peak, saved: _Saved) -> Win | None:
    floats = {
        i: replace(r, size_bytes=-(-r.requested_bytes // 4 // 16) * 16)
        for i, r in enumerate(view.requests)
        if (tensor := view.tensor(i)) is not None and tensor.type == TensorType.FLOAT32
    }
    at_peak = sum(view.requests[i].requested_bytes for i in peak.buffers if i in floats)
    if not at_peak:
        return None
    text = f"{format_bytes(at_peak)} bytes at the peak are float32 tensors: as int8 all float tensors take a quarter"
    return Win(text, saved(floats))


def _reads(step: Step, request: BufferRequest) -> bool:
    return step.operator is not None and step.subgraph == request.subgraph and request.tensor in step.operator.inputs
