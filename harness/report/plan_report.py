"""One model's plan with the answers to what was asked, as JSON and as what a person reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from harness.errors import UnfitModelError
from harness.plan.arena import ArenaPlan, Confidence
from harness.plan.arenas import SharedArena, TwoArenas
from harness.plan.comparison import AlignmentCost, Comparison
from harness.plan.fit import Fit, Place
from harness.plan.insight import Use
from harness.plan.overview import Overview
from harness.plan.stages import StageKind
from harness.report import plan_tables as tables
from harness.report.arena_picture import ArenaPicture, Block, Kind
from harness.report.arena_terminal import picture_lines
from harness.units import format_bytes, format_size, safe_text

#: Rows of the buffer table that are printed without --log.
SHOWN_BUFFERS = 40

_KINDS = {
    Use.INPUT: Kind.INPUT,
    Use.OUTPUT: Kind.OUTPUT,
    Use.INTERMEDIATE: Kind.INTERMEDIATE,
    Use.SCRATCH: Kind.SCRATCH,
}


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The size to give an arena: ``min_bytes`` × ``headroom``, rounded up to 16."""

    headroom: float
    size_bytes: int


@dataclass(frozen=True, slots=True)
class PlanReport:
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

    def picture(self) -> ArenaPicture:
        """The arena over time."""
        view = self.overview.view
        blocks = tuple(
            Block(
                _short_name(self.overview, index),
                _KINDS[view.use(index)],
                view.offsets[index],
                request.size_bytes,
                request.first_use,
                request.last_use,
            )
            for index, request in enumerate(view.requests)
        )
        steps = tuple(step.label for step in view.steps)
        target = self.plan.target
        title = f"{_file_name(self.plan)}: {target.core}, {target.kernels.value}, {target.interpreter.value}"
        return ArenaPicture(title, self.plan.head_bytes, self.plan.tail_bytes, blocks, steps, self.overview.peak.step)

    def blocks(self, width: int) -> Iterator[RenderableType]:
        """What is printed, in order."""
        yield from self._headline()
        yield Text("\nWhere the bytes go", style="bold")
        yield tables.region_table(self.overview.regions, self.plan.used_bytes)
        yield Text("\nWhat each stage of AllocateTensors() needs: the largest is the minimum", style="bold")
        yield tables.stage_table(self.overview.stages)
        yield Text("\nThe fullest moment", style="bold")
        yield from tables.peak_lines(self.overview.view, self.overview.peak)
        yield Text("\nBiggest wins", style="bold")
        yield from tables.win_lines(self.overview.view, self.overview.peak, self.overview.wins)
        decides = max(self.overview.stages, key=lambda stage: stage.needed_bytes)
        if decides.kind is not StageKind.FINISH:
            over = decides.needed_bytes - self.overview.stages[-1].needed_bytes
            yield Text(
                f"the minimum is decided by the stage: {decides.kind.value}, {over:,} bytes above head and tail: a "
                "smaller head alone does not lower it, fewer tensors do"
            )
        yield Text("\nOffset (up) and time (right)", style="bold")
        yield from picture_lines(self.picture(), min(width, 110))
        yield from self._buffers()
        yield from self._answers()

    def _headline(self) -> Iterator[RenderableType]:
        plan, target = self.plan, self.plan.target
        yield Text(
            f"{_file_name(plan)}  {format_size(plan.model_bytes)}, sha256 {plan.model_sha256[:12]}", style="bold"
        )
        yield Text(
            f"for {target.core}, {target.kernels.value} kernels, {target.interpreter.value} interpreter, {target.abi}, "
            f"TFLM {target.tflm_commit[:12]}"
        )
        grid = Table.grid(padding=(0, 2))
        grid.add_column()
        grid.add_column(justify="right")
        grid.add_column()
        grid.add_row("head", format_bytes(plan.head_bytes), "tensors and scratch buffers, reused over time")
        grid.add_row("tail", format_bytes(plan.tail_bytes), "what TFLM keeps for ever")
        grid.add_row("used", format_bytes(plan.used_bytes), "what arena_used_bytes() will say: not the size to give")
        grid.add_row(
            "min", format_bytes(plan.min_bytes), f"the arena to give it ({plan.min_exact_bytes:,} to the byte)"
        )
        yield grid
        yield Text(f"one byte less fails at: {safe_text(plan.limit.label)}{_at(self.overview)}")
        if plan.confidence is Confidence.EXACT:
            yield Text("exact for this build of TFLM")
        else:
            yield from (Text(f"estimated: {safe_text(reason, 400)}", style="yellow") for reason in plan.reasons)
        if self.unfit is not None:
            yield Text(f"TFLM would not run this model rightly: {safe_text(self.unfit.message, 400)}", style="bold red")
        yield from (Text(f"note: {safe_text(note, 400)}", style="yellow") for note in (*plan.warnings, *self.notes))

    def _buffers(self) -> Iterator[RenderableType]:
        count = len(self.overview.view.requests)
        yield Text(f"\nTensors and scratch buffers in the head ({count})", style="bold")
        yield tables.buffer_table(self.overview.view, range(min(count, SHOWN_BUFFERS)))
        if count > SHOWN_BUFFERS:
            yield Text(f"… and {count - SHOWN_BUFFERS} more: --log lists them all")
        for fault in self.overview.offline_faults:
            yield Text(f"offline plan of the model: {fault.text}", style="yellow")

    def _answers(self) -> Iterator[RenderableType]:
        if self.comparison is not None:
            yield Text("\nPlanners", style="bold")
            yield tables.comparison_table(self.comparison, self.plan.tail_bytes)
        if self.alignments:
            yield Text("\nAlignment of buffers (TFLM: 16)", style="bold")
            yield tables.alignment_table(self.alignments)
        if self.two is not None:
            yield Text("\nTwo arenas", style="bold")
            yield Text(
                f"non-persistent {format_size(self.two.nonpersistent_bytes)}: tensors and scratch, read and written by "
                f"every operator: fast memory{_fits_into(self.two.nonpersistent_bytes, self.memories)}"
            )
            yield Text(
                f"persistent     {format_size(self.two.persistent_bytes)}: structs, operator data, variable tensors: "
                f"may be slower memory{_fits_into(self.two.persistent_bytes, self.memories)}"
            )
        if self.recommendation is not None:
            given = self.recommendation
            yield Text(f"\nwith headroom {given.headroom:g}: kTensorArenaSize = {given.size_bytes}", style="bold")
        if self.fit is not None:
            yield Text(self.fit.text, style="bold green" if self.fit.fits else "bold red")


def shared_dict(shared: SharedArena, plans: Sequence[ArenaPlan], best_order: Sequence[int]) -> dict[str, Any]:
    """The JSON of several models in one arena."""
    return {
        "arena": {
            "head_bytes": shared.head_bytes,
            "tail_bytes": shared.tail_bytes,
            "used_bytes": shared.used_bytes,
            "min_bytes": shared.min_bytes,
            "min_exact_bytes": shared.min_exact_bytes,
            "confidence": shared.confidence.value,
        },
        "limit": {"model": plans[shared.limit_model].model_path, "label": shared.limit.label},
        "separate_bytes": sum(plan.min_bytes for plan in plans),
        "best_order": [plans[number].model_path for number in best_order],
    }


def shared_blocks(
    shared: SharedArena, plans: Sequence[ArenaPlan], best: SharedArena, best_order: Sequence[int]
) -> Iterator[RenderableType]:
    """Several models in one arena, for a person."""
    yield Text(f"\n{len(plans)} models in one arena, set up in this order, one running at a time", style="bold")
    table = Table("model", box=None, pad_edge=False, header_style="bold")
    for name in ("head", "tail", "min alone"):
        table.add_column(name, justify="right")
    for plan in plans:
        sizes = (plan.head_bytes, plan.tail_bytes, plan.min_bytes)
        table.add_row(Text(_file_name(plan)), *(format_bytes(size) for size in sizes))
    table.add_section()
    together = (shared.head_bytes, shared.tail_bytes, shared.min_bytes)
    table.add_row("together", *(format_bytes(size) for size in together), style="bold")
    yield table
    saved = sum(plan.min_bytes for plan in plans) - shared.min_bytes
    yield Text(
        f"used {format_bytes(shared.used_bytes)}, min {format_bytes(shared.min_bytes)} ({shared.min_exact_bytes:,} to "
        f"the byte, {shared.confidence.value}): {saved:,} bytes less than arenas apart"
    )
    limit = f"one byte less fails at: {safe_text(shared.limit.label)} of {_file_name(plans[shared.limit_model])}"
    yield Text(limit)
    if best.min_exact_bytes < shared.min_exact_bytes:
        names = ", ".join(_file_name(plans[number]) for number in best_order)
        yield Text(f"the order {names} needs {shared.min_exact_bytes - best.min_exact_bytes:,} bytes less")


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


def _holding(size_bytes: int, memories: Sequence[Place]) -> list[str]:
    return [memory.name for memory in memories if memory.free_bytes >= size_bytes]


def _fits_into(size_bytes: int, memories: Sequence[Place]) -> str:
    """``; fits into dtcm, sram1``; empty without a board."""
    if not memories:
        return ""
    names = _holding(size_bytes, memories)
    return f"; fits into {', '.join(names)}" if names else "; fits into no memory of the board"


def _two_arenas_dict(two: TwoArenas, memories: Sequence[Place]) -> dict[str, Any]:
    fits = {
        "nonpersistent_fits_into": _holding(two.nonpersistent_bytes, memories),
        "persistent_fits_into": _holding(two.persistent_bytes, memories),
    }
    return (fits if memories else {}) | {
        "persistent_bytes": two.persistent_bytes,
        "nonpersistent_bytes": two.nonpersistent_bytes,
        "used_bytes": two.used_bytes,
        "fast": "nonpersistent",
        "nonpersistent_limit": two.nonpersistent_limit.label,
    }


def _at(overview: Overview) -> str:
    """Where in the model the limiting step is asked for."""
    limit = overview.plan.limit
    if limit.subgraph is None or limit.operator is None:
        return ""
    operator = overview.view.model.subgraphs[limit.subgraph].operators[limit.operator]
    return f" (operator {operator.index} of subgraph {limit.subgraph})"


def _short_name(overview: Overview, index: int) -> str:
    request = overview.view.requests[index]
    tensor = overview.view.tensor(index)
    return f"scratch {request.scratch}" if tensor is None else f"{tensor.index} {tensor.name}"


def _file_name(plan: ArenaPlan) -> str:
    name = plan.model_path.replace("\\", "/").rpartition("/")[2]
    return safe_text(name, 100)
