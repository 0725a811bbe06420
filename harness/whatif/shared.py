"""Several models in one arena: together, in the order given and in the best one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from harness.plan.arena import ArenaPlan
from harness.plan.arenas import SharedArena, shared_arena
from harness.plan.fit import Fit
from harness.whatif.answer import Answer, Recommendation, fit_of, recommend
from harness.whatif.questions import ChosenTarget, Questions

#: All orders are tried up to this many models.
ORDERED_MODELS = 6


@dataclass(frozen=True, slots=True)
class Shared:
    """Several models in one arena: in the order given, and in the best one."""

    arena: SharedArena
    best: SharedArena
    best_order: tuple[int, ...]
    plans: Sequence[ArenaPlan]
    recommendation: Recommendation | None
    fit: Fit | None

    def to_dict(self) -> dict[str, Any]:
        """``shared_arena`` of the JSON document."""
        arena = self.arena
        document: dict[str, Any] = {
            "arena": {
                "head_bytes": arena.head_bytes,
                "tail_bytes": arena.tail_bytes,
                "used_bytes": arena.used_bytes,
                "min_bytes": arena.min_bytes,
                "min_exact_bytes": arena.min_exact_bytes,
                "confidence": arena.confidence.value,
            },
            "limit": {"model": self.plans[arena.limit_model].model_path, "label": arena.limit.label},
            "separate_bytes": sum(plan.min_bytes for plan in self.plans),
            "best_order": [self.plans[number].model_path for number in self.best_order],
        }
        if self.recommendation is not None:
            given = self.recommendation
            document["recommended"] = {"headroom": given.headroom, "arena_bytes": given.size_bytes}
        if self.fit is not None:
            document["fit"] = self.fit.to_dict()
        return document


def share(answers: Sequence[Answer], chosen: ChosenTarget, questions: Questions) -> Shared:
    """What the models need together. Raises UnfitModelError where they cannot share."""
    plans = [answer.plan for answer in answers]
    arena = shared_arena(plans)
    given = tuple(range(len(plans)))
    orders = permutations(given) if len(plans) <= ORDERED_MODELS else [given]
    best, order = min(
        ((shared_arena([plans[number] for number in order]), order) for order in orders),
        key=lambda pair: (pair[0].min_exact_bytes, pair[1]),
    )
    recommendation = recommend(arena.min_bytes, questions.headroom)
    needed = recommendation.size_bytes if recommendation else arena.min_bytes
    return Shared(arena, best, order, plans, recommendation, fit_of(needed, chosen, questions))
