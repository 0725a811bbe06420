"""What each stage of setting a model up needs, each on its own: which one decides the minimum, and by how much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from harness.plan.setup import SetupStep, StepKind
from harness.units import align_up


class StageKind(str, Enum):
    """The stages of AllocateTensors(), in order."""

    LOAD = "load the model"  # allocator objects, tensor and node tables, operator parameters, Init
    PREPARE = "prepare the operators"  # temporary tensors of each Prepare, what kernels keep, scratch requests
    PLAN = "plan the memory"  # table of lifetimes, variable tensors, the planner's own table
    FINISH = "lay out head and tail"  # the head at its final size, tensors for inputs and outputs


@dataclass(frozen=True, slots=True)
class Stage:
    """``needed_bytes`` is the smallest arena in which every step of this stage passes; ``step`` fails first below."""

    kind: StageKind
    needed_bytes: int
    step: SetupStep


def stages(steps: Sequence[SetupStep]) -> tuple[Stage, ...]:
    """The stages that have steps. The largest of their needs is the plan's ``min_exact_bytes``."""
    kinds = _kinds(steps)
    present = [kind for kind in StageKind if kind in kinds]
    return tuple(_stage(steps, kinds, kind) for kind in present)


def _kinds(steps: Sequence[SetupStep]) -> list[StageKind]:
    """The stage of each step. Operators are prepared from the first temporary tensor to the last step that belongs to
    one; the head gets its final size in the last HEAD step."""
    final = max(at for at, step in enumerate(steps) if step.kind is StepKind.HEAD)
    prepared = [
        at for at, step in enumerate(steps) if step.operator is not None and step.kind is not StepKind.PERSISTENT
    ]
    first, last = (prepared[0], prepared[-1]) if prepared else (final, -1)
    planning = last + 1 if prepared else _planning(steps, final)
    kinds = []
    for at in range(len(steps)):
        if at >= final:
            kinds.append(StageKind.FINISH)
        elif at >= planning:
            kinds.append(StageKind.PLAN)
        else:
            kinds.append(StageKind.PREPARE if at >= first else StageKind.LOAD)
    return kinds


def _planning(steps: Sequence[SetupStep], final: int) -> int:
    """Where planning begins in a model without operators: at the first temporary."""
    return next((at for at, step in enumerate(steps) if step.kind is StepKind.TEMP), final)


def _stage(steps: Sequence[SetupStep], kinds: Sequence[StageKind], kind: StageKind) -> Stage:
    """Read backwards, as Setup.minimum does, but let only the steps of one stage count."""
    need, limit = 0, None
    for step, its_kind in zip(reversed(steps), reversed(kinds), strict=True):
        if its_kind is kind and (limit is None or step.floor_bytes >= need):
            need, limit = max(need, step.floor_bytes), step
        if step.kind is StepKind.PERSISTENT and limit is not None:
            need = align_up(need, step.alignment) + step.size_bytes
    assert limit is not None
    return Stage(kind, need, limit)
