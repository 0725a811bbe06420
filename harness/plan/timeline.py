"""Which operator runs at which step of a plan: the scope counter of TFLM's lifetimes, read backwards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harness.model.graph import Model, Operator
from harness.plan.lifetimes import called_subgraphs
from harness.units import safe_text


@dataclass(frozen=True, slots=True)
class Step:
    """One value of the scope counter. ``operator`` is None at step 0, where the inputs of the model come to life, and
    on entering a subgraph, where ``caller`` is the operator that runs it."""

    subgraph: int
    operator: Operator | None
    caller: Operator | None = None

    @property
    def label(self) -> str:
        """``CONV_2D 3``, or ``WHILE 4: subgraph 2`` on entering a subgraph; names made safe to print."""
        if self.operator is not None:
            place = f"/{self.subgraph}" if self.subgraph else ""
            return f"{safe_text(self.operator.name, 40)} {self.operator.index}{place}"
        return f"{self.caller.name} {self.caller.index}: subgraph {self.subgraph}" if self.caller else "inputs"


def timeline(model: Model, last_step: int) -> list[Step]:
    """The steps 0 to ``last_step``."""
    steps: list[Step] = []
    for step in _walk(model, 0, None):
        steps.append(step)
        if len(steps) > last_step:
            break
    return steps


def _walk(model: Model, subgraph: int, caller: Operator | None) -> Iterator[Step]:
    yield Step(subgraph, None, caller)
    for operator in model.subgraphs[subgraph].operators:
        yield Step(subgraph, operator)
        for called in called_subgraphs(operator):
            yield from _walk(model, called, operator)
