"""When each tensor and scratch buffer is alive (micro_allocation_info.cc, AllocationInfoBuilder).

A scope counter goes up by one for each operator, and once more before each subgraph that an operator calls. Lifetimes
are closed intervals of it. What the walk from subgraph 0 never meets keeps (−1, −1), so all of that is alive together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from harness.errors import UnfitModelError
from harness.model.graph import Model, Operator
from harness.plan.preparation import ScratchRequest

NEVER = (-1, -1)

#: Ours: the walk is recursive here as in TFLM, where each level takes some hundred bytes of stack.
MAX_NESTING = 200

#: The operators that run subgraphs, by the options that name them. TFLM compares ``builtin_code``, the new field.
_CALLS = {
    118: ("then_subgraph_index", "else_subgraph_index"),  # IF
    119: ("cond_subgraph_index", "body_subgraph_index"),  # WHILE
    129: ("init_subgraph_index",),  # CALL_ONCE
}


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """``tensors[subgraph][tensor]`` and ``scratch[number]`` are (first, last) scopes."""

    tensors: list[list[tuple[int, int]]]
    scratch: list[tuple[int, int]]


def lifetimes(model: Model, scratch: Sequence[ScratchRequest] = (), *, new_code_only: bool = True) -> Lifetimes:
    """Walks subgraph 0 as TFLM does. Raises UnfitModelError when subgraphs call one another in a circle."""
    walk = _Walk(model, scratch, new_code_only)
    walk.mark(0)
    return Lifetimes(
        [list(zip(first, last, strict=True)) for first, last in zip(walk.first, walk.last, strict=True)],
        walk.scratch,
    )


class _Walk:
    def __init__(self, model: Model, scratch: Sequence[ScratchRequest], new_code_only: bool) -> None:
        self.model = model
        self.first = [[-1] * len(subgraph.tensors) for subgraph in model.subgraphs]
        self.last = [[-1] * len(subgraph.tensors) for subgraph in model.subgraphs]
        self.scratch = [NEVER] * len(scratch)
        self._scratch_of: dict[tuple[int, int], list[int]] = defaultdict(list)
        for request in scratch:
            self._scratch_of[request.subgraph, request.operator].append(request.number)
        self._new_code_only = new_code_only
        self._scope = 0
        self._calling: list[int] = []

    def mark(self, index: int) -> None:
        """MarkAllocationLifetimes."""
        if index in self._calling:
            circle = " → ".join(str(called) for called in (*self._calling, index))
            raise UnfitModelError(
                f"subgraphs call one another in a circle ({circle}): TFLM would overflow its stack",
                code="model.recursive",
                remedy="unroll the recursion before conversion",
            )
        if len(self._calling) == MAX_NESTING:
            raise UnfitModelError(
                f"subgraphs call one another more than {MAX_NESTING} deep: TFLM walks them on the stack",
                code="model.nesting",
                remedy="flatten the control flow before conversion",
            )
        self._calling.append(index)
        subgraph = self.model.subgraphs[index]
        for tensor in subgraph.inputs:
            self._created(index, tensor)
            self._used(index, tensor)
        for operator in subgraph.operators:
            self._scope += 1
            self._operator(index, operator)
        for tensor in subgraph.outputs:
            self._created(index, tensor)
            self._used(index, tensor)
        self._calling.pop()

    def _operator(self, index: int, operator: Operator) -> None:
        for tensor in operator.outputs:
            self._created(index, tensor)
        start = self._scope
        for called in called_subgraphs(operator, new_code_only=self._new_code_only):
            self._scope += 1
            self.mark(called)
        for tensor in (*operator.inputs, *operator.outputs):
            self._used(index, tensor)
        for number in self._scratch_of.get((index, operator.index), ()):
            first = self.scratch[number][0]
            self.scratch[number] = (start if first == -1 else first, self._scope)

    def _created(self, index: int, tensor: int) -> None:
        if tensor >= 0 and self.first[index][tensor] == -1:
            self.first[index][tensor] = self._scope

    def _used(self, index: int, tensor: int) -> None:
        if tensor >= 0:
            self.last[index][tensor] = self._scope


def called_subgraphs(operator: Operator, *, new_code_only: bool = False) -> list[int]:
    """The subgraphs that IF, WHILE or CALL_ONCE runs, in the order in which TFLM walks them
    (MarkSubgraphLifetimesIfNecessary). ``new_code_only``: TFLM 90b983c reads only the file's new code field there, and
    so walks past the IF of an old file."""
    opcode = operator.opcode
    options = _CALLS.get(opcode.builtin_code if new_code_only else opcode.code, ())
    called = [operator.options.get(name, 0) for name in options]
    return [index for index in called if isinstance(index, int) and index != -1]
