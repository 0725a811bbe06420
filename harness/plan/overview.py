"""A plan with what a person asks of it: regions, the peak, the wins, the kinds of buffers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness.model.graph import Model
from harness.plan.arena import ArenaPlan
from harness.plan.greedy import greedy
from harness.plan.insight import HeadView, Peak, Region, Win, find_peak, find_wins, head_regions
from harness.plan.linear import linear
from harness.plan.stages import Stage, stages
from harness.plan.target import Interpreter
from harness.plan.timeline import timeline
from harness.plan.verifier import Violation, violations
from harness.units import safe_text


@dataclass(frozen=True, slots=True)
class Overview:
    """``regions`` add up to ``plan.used_bytes``. ``offline_faults`` are what is wrong with the model's own offline
    plan, which TFLM takes as it is."""

    plan: ArenaPlan
    view: HeadView
    peak: Peak
    regions: tuple[Region, ...]
    wins: tuple[Win, ...]
    offline_faults: tuple[Violation, ...]
    stages: tuple[Stage, ...]

    def to_dict(self) -> dict[str, Any]:
        """The JSON form of the plan, with what is seen in it. ``peak.buffers`` are indices into ``placements``."""
        view, peak = self.view, self.peak
        document = self.plan.to_dict()
        for index, placement in enumerate(document["placements"]):
            placement |= {"name": _plain_name(view, index), "use": view.use(index).value}
        return document | {
            "regions": [
                {"section": region.section, "name": region.name, "bytes": region.size_bytes} for region in self.regions
            ],
            "peak": {
                "step": peak.step,
                "at": view.step(peak.step),
                "live_bytes": peak.live_bytes,
                "buffers": list(peak.buffers),
            },
            "steps": [step.label for step in view.steps],
            "wins": [{"text": win.text, "saved_bytes": win.saved_bytes} for win in self.wins],
            "stages": [
                {"stage": stage.kind.value, "needed_bytes": stage.needed_bytes, "limit": stage.step.label}
                for stage in self.stages
            ],
            "offline_faults": [{"fault": fault.fault.value, "text": fault.text} for fault in self.offline_faults],
        }


def overview(model: Model, plan: ArenaPlan) -> Overview:
    """Look at a plan of ``model``."""
    requests = [placement.request for placement in plan.placements]
    offsets = [placement.offset_bytes for placement in plan.placements]
    steps = timeline(model, max((request.last_use for request in requests), default=0))
    view = HeadView(model, requests, offsets, steps)
    peak = find_peak(requests)
    keeps_all = plan.target.interpreter is Interpreter.PRESERVE_ALL
    wins = find_wins(view, peak, linear if keeps_all else greedy)
    offline = [v for v in violations(requests, offsets, alignment=16) if _is_offline(view, v)]
    regions = _regions(view, peak, plan)
    return Overview(plan, view, peak, regions, tuple(wins), tuple(offline), stages(plan.setup.steps))


def _regions(view: HeadView, peak: Peak, plan: ArenaPlan) -> tuple[Region, ...]:
    sums: dict[str, int] = {}
    for item in plan.tail:
        sums[item.category.value] = sums.get(item.category.value, 0) + item.size_bytes
    tail = [Region("tail", name, size) for name, size in sums.items()]
    return (*head_regions(view, peak), *tail, Region("tail", "alignment padding", plan.padding_bytes))


def _is_offline(view: HeadView, violation: Violation) -> bool:
    return any(view.requests[index].offline_offset is not None for index in violation.buffers)


def _plain_name(view: HeadView, index: int) -> str:
    tensor = view.tensor(index)
    return view.name(index) if tensor is None else safe_text(tensor.name, 200)
