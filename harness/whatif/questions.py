"""What may be asked beside the plan itself, and what it is asked about."""

from __future__ import annotations

from dataclasses import dataclass

from harness.abi import Abi
from harness.plan.fit import Place
from harness.plan.target import PlanTarget


@dataclass(frozen=True, slots=True)
class ChosenTarget:
    """``abi`` holds the struct sizes to plan with. ``places`` are the board's regions for an arena in its order of
    preference, ``memories`` its RAMs one by one; both are empty without a board."""

    target: PlanTarget
    abi: Abi
    places: tuple[Place, ...] = ()
    memories: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class Questions:
    """``planners`` to compare, by name; ``headroom`` a factor for the recommended size; ``arena_limit_bytes`` a size
    that must hold the arena; ``shapes`` as ``INPUT=DIMS``; ``check`` whether TFLM would run the model rightly."""

    planners: tuple[str, ...] = ()
    alignments: bool = False
    two_arenas: bool = False
    headroom: float | None = None
    arena_limit_bytes: int | None = None
    shapes: tuple[str, ...] = ()
    check: bool = True
