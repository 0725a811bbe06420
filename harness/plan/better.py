"""A better placement than TFLM's own, as an offline plan that the model carries."""

from __future__ import annotations

from dataclasses import dataclass, replace

from harness.errors import HarnessError, UsageError
from harness.model.graph import Model
from harness.model.reader import parse_model
from harness.plan.arena import ArenaPlan, plan_arena
from harness.plan.offline import METADATA_NAME, encoded_plan
from harness.plan.planners.search import search_placement
from harness.plan.target import Interpreter


class NoBetterPlanError(HarnessError):
    """TFLM's own planner is as good as the best placement found."""

    default_code = "plan.no_better"


@dataclass(frozen=True, slots=True)
class OfflinePlanned:
    """``data`` is the model with the offline plan in its metadata, ``plan`` what it then needs on the same target.

    The plan is right for every kernel set and core, since TFLM places scratch buffers around it; how small it is was
    looked at for one target.
    """

    data: bytes
    plan: ArenaPlan


def plan_offline(model: Model, plan: ArenaPlan) -> OfflinePlanned:
    """Search for a better placement of ``plan`` and put it into the model. An offline plan that is there already is
    replaced. Raises NoBetterPlanError where the arena would not become smaller."""
    from harness.model.realign import with_metadata  # brings numpy, which planning does not need

    if plan.target.interpreter is Interpreter.PRESERVE_ALL:
        raise UsageError(
            "preserve_all_tensors uses the linear planner, which has no offline plan",
            remedy="plan with --interpreter plain",
        )
    requests = [replace(placement.request, offline_offset=None) for placement in plan.placements]
    searched = search_placement(requests)
    offsets = {
        (request.subgraph, request.tensor): offset
        for request, offset in zip(requests, searched.offsets, strict=True)
        if request.tensor is not None
    }
    data = with_metadata(model, METADATA_NAME, encoded_plan(model, offsets))
    better = plan_arena(parse_model(data, model.path), plan.target)
    if better.min_exact_bytes >= plan.min_exact_bytes:
        raise NoBetterPlanError(
            f"no better placement: with the offline plan the minimum is {better.min_exact_bytes:,} bytes, without it "
            f"{plan.min_exact_bytes:,}",
            remedy="nothing to do: the model is as small as it gets on this target",
        )
    return OfflinePlanned(data, better)
