"""The plan of several models in one arena, in the form that a record holds and a reconciliation reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.model.graph import Model
from harness.plan.arena import ArenaPlan, CategorySum, Confidence, plan_arena
from harness.plan.arenas import SharedArena, shared_arena
from harness.plan.target import PlanTarget


@dataclass(frozen=True, slots=True)
class SharedPlan:
    """``plans`` are those of each model alone, in the order of the setup; ``arena`` is what they need together."""

    arena: SharedArena
    plans: tuple[ArenaPlan, ...]

    @property
    def target(self) -> PlanTarget:
        return self.plans[0].target

    @property
    def head_bytes(self) -> int:
        return self.arena.head_bytes

    @property
    def tail_bytes(self) -> int:
        return self.arena.tail_bytes

    @property
    def used_bytes(self) -> int:
        return self.arena.used_bytes

    @property
    def min_exact_bytes(self) -> int:
        return self.arena.min_exact_bytes

    @property
    def confidence(self) -> Confidence:
        return self.arena.confidence

    @property
    def reasons(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(reason for plan in self.plans for reason in plan.reasons))

    @property
    def categories(self) -> Mapping[str, CategorySum]:
        """What the recording allocator adds up over all models. The padding in front of an allocation is counted, and
        behind another model's tail it may be another than alone."""
        sums = {}
        for name in self.plans[0].categories:
            each = [plan.categories[name] for plan in self.plans]
            used = sum(item.size_bytes + item.padding_bytes for item in self.arena.tail if item.category.value == name)
            sums[name] = CategorySum(sum(e.requested_bytes for e in each), used, sum(e.count for e in each))
        return sums

    def to_dict(self) -> dict[str, Any]:
        """The JSON form, schema ``harness.shared_plan``, version 1: of ``harness.plan`` the parts that several models
        have together, and each one's own ``arena`` in ``models``."""
        alone = [plan.to_dict() for plan in self.plans]
        return {
            "schema": "harness.shared_plan",
            "schema_version": 1,
            "target": alone[0]["target"],
            "arena": {
                "head_bytes": self.head_bytes,
                "tail_bytes": self.tail_bytes,
                "used_bytes": self.used_bytes,
                "min_bytes": self.arena.min_bytes,
                "min_exact_bytes": self.min_exact_bytes,
                "confidence": self.confidence.value,
                "reasons": list(self.reasons),
            },
            "limit": {"model": self.plans[self.arena.limit_model].model_path, "label": self.arena.limit.label},
            "categories": {
                name: {"requested_bytes": entry.requested_bytes, "used_bytes": entry.used_bytes, "count": entry.count}
                for name, entry in self.categories.items()
            },
            "models": [{"model": plan["model"], "arena": plan["arena"]} for plan in alone],
        }


def plan_models(models: Sequence[Model], target: PlanTarget) -> ArenaPlan | SharedPlan:
    """The plan of one model, or of several that share an arena, set up in this order. Raises UnfitModelError."""
    plans = tuple(plan_arena(model, target) for model in models)
    return plans[0] if len(plans) == 1 else SharedPlan(shared_arena(plans), plans)
