"""The answers about one model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.errors import UnfitModelError, UsageError
from harness.model.checks import refuse_unfit
from harness.model.graph import Model
from harness.model.reader import read_model
from harness.plan.arena import ArenaPlan, plan_arena
from harness.plan.arenas import TwoArenas, two_arenas
from harness.plan.better import plan_offline
from harness.plan.comparison import PLANNERS, AlignmentCost, Comparison, alignment_costs, compare
from harness.plan.fit import Fit, Place, fit
from harness.plan.greedy import greedy
from harness.plan.overview import Overview, overview
from harness.plan.target import Interpreter
from harness.shapes import dynamic_inputs, parse_shapes, with_input_shapes
from harness.units import quoted, with_headroom
from harness.whatif.questions import ChosenTarget, Questions


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The size to give an arena: ``min_bytes`` × ``headroom``, rounded up to 16."""

    headroom: float
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What was asked and answered about one model; None for what was not asked. ``unfit`` is why the pre-flight check
    refuses the model, whose arena can be planned all the same."""

    overview: Overview
    recommendation: Recommendation | None = None
    comparison: Comparison | None = None
    alignments: Sequence[AlignmentCost] = ()
    two: TwoArenas | None = None
    memories: tuple[Place, ...] = ()
    fit: Fit | None = None
    notes: tuple[str, ...] = ()
    unfit: UnfitModelError | None = None
    offline: ArenaPlan | None = None

    @property
    def plan(self) -> ArenaPlan:
        return self.overview.plan

    def to_dict(self) -> dict[str, Any]:
        """The JSON document of one model."""
        document = self.overview.to_dict()
        if self.recommendation is not None:
            given = self.recommendation
            document["recommended"] = {"headroom": given.headroom, "arena_bytes": given.size_bytes}
        if self.comparison is not None:
            document["planners"] = _comparison_dict(self.comparison, self.plan.tail_bytes)
        if self.alignments:
            document["alignments"] = [
                {
                    "alignment": cost.alignment,
                    "head_bytes": cost.head_bytes,
                    "padding_bytes": cost.padding_bytes,
                    "peak_padding_bytes": cost.peak_padding_bytes,
                }
                for cost in self.alignments
            ]
        if self.two is not None:
            document["two_arenas"] = _two_arenas_dict(self.two, self.memories)
        if self.fit is not None:
            document["fit"] = self.fit.to_dict()
        if self.offline is not None:
            document["offline_plan"] = {"arena": self.offline.to_dict()["arena"]}
        document["notes"] = list(self.notes)
        unfit = self.unfit
        document["unfit"] = (
            {"code": unfit.code, "message": unfit.message, "remedy": unfit.remedy} if unfit is not None else None
        )
        return document


def answer_questions(path: Path, chosen: ChosenTarget, questions: Questions) -> Answer:
    """Read the model at ``path``, plan it, and answer what was asked. Raises what reader and planner raise."""
    model = read_model(path)
    unfit = _unfit(model, chosen) if questions.check else None
    notes = []
    dynamic = dynamic_inputs(model)
    if questions.shapes:
        shapes = parse_shapes(model, questions.shapes)
        model = with_input_shapes(model, shapes)
        notes.append(
            f"planned as if converted with {', '.join(questions.shapes)}: TFLM has no dynamic shapes. This is "
            "the worst case of all smaller inputs"
        )
    elif dynamic:
        notes += [
            f"input {quoted(entry.name, 60)} has open dimensions {list(entry.signature)}: TFLM takes the "
            f"{list(entry.shape)} of the file; --shape plans for others"
            for entry in dynamic
        ]
    planned = plan_arena(model, chosen.target, abi=chosen.abi)
    requests = [placement.request for placement in planned.placements]
    recommendation = recommend(planned.min_bytes, questions.headroom)
    return Answer(
        overview=overview(model, planned),
        recommendation=recommendation,
        comparison=compare(requests, {n: PLANNERS[n] for n in questions.planners}) if questions.planners else None,
        alignments=alignment_costs(requests, greedy) if questions.alignments else (),
        two=two_arenas(planned, chosen.abi) if questions.two_arenas else None,
        memories=chosen.memories,
        fit=fit_of(recommendation.size_bytes if recommendation else planned.min_bytes, chosen, questions),
        notes=(*notes, *_preserving_note(model, chosen, planned)),
        unfit=unfit,
    )


def _preserving_note(model: Model, chosen: ChosenTarget, planned: ArenaPlan) -> list[str]:
    """What preserve_all_tensors costs against the plain interpreter."""
    if chosen.target.interpreter is not Interpreter.PRESERVE_ALL:
        return []
    plain = plan_arena(model, replace(chosen.target, interpreter=Interpreter.PLAIN), abi=chosen.abi)
    more = planned.min_bytes - plain.min_bytes
    return [f"without preserve_all_tensors the minimum is {plain.min_bytes:,} bytes: {more:,} less"]


def _unfit(model: Model, chosen: ChosenTarget) -> UnfitModelError | None:
    """What the pre-flight check refuses the model for. Its arena can be planned, but TFLM would not run it rightly."""
    try:
        refuse_unfit(model, chosen.target.kernels.value)
    except UnfitModelError as error:
        return error
    return None


def recommend(min_bytes: int, headroom: float | None) -> Recommendation | None:
    """The size to give; None where no headroom was asked for."""
    return None if headroom is None else Recommendation(headroom, with_headroom(min_bytes, headroom))


def fit_of(needed_bytes: int, chosen: ChosenTarget, questions: Questions) -> Fit | None:
    """Against --arena-limit, which stands for one region, or else the board's places."""
    if questions.arena_limit_bytes is not None:
        return fit(needed_bytes, [Place("the limit", questions.arena_limit_bytes)])
    return fit(needed_bytes, chosen.places) if chosen.places else None


def write_offline_plan(answer: Answer, source: Path, path: Path) -> Answer:
    """Write the model with a better placement, and tell in the report what it then needs."""
    if path.exists() and path.samefile(source):
        raise UsageError("--write-offline-plan would overwrite the model", remedy="name another file")
    better = plan_offline(answer.overview.view.model, answer.plan)
    path.write_bytes(better.data)
    was, is_now = answer.plan, better.plan
    note = (
        f"{quoted(str(path))} carries an offline plan: head {is_now.head_bytes:,} instead of {was.head_bytes:,}, "
        f"minimum {is_now.min_bytes:,} instead of {was.min_bytes:,}; harness sweep proves it on a board"
    )
    return replace(answer, offline=is_now, notes=(*answer.notes, note))


def holding(size_bytes: int, memories: Sequence[Place]) -> list[str]:
    """The names of the memories in which an arena of this size fits."""
    return [memory.name for memory in memories if memory.free_bytes >= size_bytes]


def _comparison_dict(comparison: Comparison, tail_bytes: int) -> dict[str, Any]:
    return {
        "bound_bytes": comparison.bound_bytes,
        "results": [
            {
                "planner": result.planner,
                "head_bytes": result.head_bytes,
                "used_bytes": result.head_bytes + tail_bytes,
                "ratio": round(result.ratio, 6),
                "seconds": round(result.seconds, 6),
                "optimal": result.optimal,
            }
            for result in comparison.results
        ],
    }


def _two_arenas_dict(two: TwoArenas, memories: Sequence[Place]) -> dict[str, Any]:
    fits = {
        "nonpersistent_fits_into": holding(two.nonpersistent_bytes, memories),
        "persistent_fits_into": holding(two.persistent_bytes, memories),
    }
    return (fits if memories else {}) | {
        "persistent_bytes": two.persistent_bytes,
        "nonpersistent_bytes": two.nonpersistent_bytes,
        "used_bytes": two.used_bytes,
        "fast": "nonpersistent",
        "nonpersistent_limit": two.nonpersistent_limit.label,
    }
