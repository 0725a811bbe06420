"""The answers about a plan as a person reads them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from harness.plan.arena import ArenaPlan, Confidence
from harness.plan.fit import Fit, Place
from harness.plan.insight import Use
from harness.plan.overview import Overview
from harness.plan.stages import StageKind
from harness.report import plan_tables as tables
from harness.report.arena_picture import ArenaPicture, Block, Kind
from harness.report.arena_terminal import picture_lines
from harness.units import format_bytes, format_size, safe_text, short_commit
from harness.whatif.answer import Answer, Recommendation, holding
from harness.whatif.shared import Shared

#: Rows of the buffer table that are printed without --log.
SHOWN_BUFFERS = 40

_KINDS = {
    Use.INPUT: Kind.INPUT,
    Use.OUTPUT: Kind.OUTPUT,
    Use.INTERMEDIATE: Kind.INTERMEDIATE,
    Use.SCRATCH: Kind.SCRATCH,
}


def arena_picture(answer: Answer) -> ArenaPicture:
    """The arena over time."""
    view = answer.overview.view
    blocks = tuple(
        Block(
            _short_name(answer.overview, index),
            _KINDS[view.use(index)],
            view.offsets[index],
            request.size_bytes,
            request.first_use,
            request.last_use,
        )
        for index, request in enumerate(view.requests)
    )
    steps = tuple(step.label for step in view.steps)
    target = answer.plan.target
    title = f"{_file_name(answer.plan)}: {target.core}, {target.kernels.value}, {target.interpreter.value}"
    return ArenaPicture(title, answer.plan.head_bytes, answer.plan.tail_bytes, blocks, steps, answer.overview.peak.step)


def plan_blocks(answer: Answer, width: int) -> Iterator[RenderableType]:
    """What is printed, in order."""
    yield from _headline(answer)
    yield Text("\nWhere the bytes go", style="bold")
    yield tables.region_table(answer.overview.regions, answer.plan.used_bytes)
    yield Text("\nWhat each stage of AllocateTensors() needs: the largest is the minimum", style="bold")
    yield tables.stage_table(answer.overview.stages)
    yield Text("\nThe fullest moment", style="bold")
    yield from tables.peak_lines(answer.overview.view, answer.overview.peak)
    yield Text("\nBiggest wins", style="bold")
    yield from tables.win_lines(answer.overview.view, answer.overview.peak, answer.overview.wins)
    decides = max(answer.overview.stages, key=lambda stage: stage.needed_bytes)
    if decides.kind is not StageKind.FINISH:
        over = decides.needed_bytes - answer.overview.stages[-1].needed_bytes
        yield Text(
            f"the minimum is decided by the stage: {decides.kind.value}, {over:,} bytes above head and tail: a "
            "smaller head alone does not lower it, fewer tensors do"
        )
    yield Text("\nOffset (up) and time (right)", style="bold")
    yield from picture_lines(arena_picture(answer), min(width, 110))
    yield from _buffers(answer)
    yield from _answers(answer)


def _headline(answer: Answer) -> Iterator[RenderableType]:
    plan, target = answer.plan, answer.plan.target
    yield Text(f"{_file_name(plan)}  {format_size(plan.model_bytes)}, sha256 {plan.model_sha256[:12]}", style="bold")
    yield Text(
        f"for {target.core}, {target.kernels.value} kernels, {target.interpreter.value} interpreter, {target.abi}, "
        f"TFLM {short_commit(target.tflm_commit)}"
    )
    grid = Table.grid(padding=(0, 2))
    grid.add_column()
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column()
    grid.add_row("head", format_bytes(plan.head_bytes), "tensors and scratch buffers, reused over time")
    grid.add_row("tail", format_bytes(plan.tail_bytes), "what TFLM keeps for ever")
    grid.add_row("used", format_bytes(plan.used_bytes), "what arena_used_bytes() will say: not the size to give")
    grid.add_row("min", format_bytes(plan.min_bytes), f"the arena to give it ({plan.min_exact_bytes:,} to the byte)")
    yield grid
    yield Text(f"one byte less fails at: {safe_text(plan.limit.label)}{_at(answer.overview)}")
    if plan.confidence is Confidence.EXACT:
        yield Text("exact for this build of TFLM")
    else:
        yield from (Text(f"estimated: {safe_text(reason, 400)}", style="yellow") for reason in plan.reasons)
    if answer.unfit is not None:
        yield Text(f"TFLM would not run this model rightly: {safe_text(answer.unfit.message, 400)}", style="bold red")
    yield from (Text(f"note: {safe_text(note, 400)}", style="yellow") for note in (*plan.warnings, *answer.notes))


def _buffers(answer: Answer) -> Iterator[RenderableType]:
    count = len(answer.overview.view.requests)
    yield Text(f"\nTensors and scratch buffers in the head ({count})", style="bold")
    yield tables.buffer_table(answer.overview.view, range(min(count, SHOWN_BUFFERS)))
    if count > SHOWN_BUFFERS:
        yield Text(f"… and {count - SHOWN_BUFFERS} more: --log lists them all")
    for fault in answer.overview.offline_faults:
        yield Text(f"offline plan of the model: {fault.text}", style="yellow")


def _answers(answer: Answer) -> Iterator[RenderableType]:
    if answer.comparison is not None:
        yield Text("\nPlanners", style="bold")
        yield tables.comparison_table(answer.comparison, answer.plan.tail_bytes)
    if answer.alignments:
        yield Text("\nAlignment of buffers (TFLM: 16)", style="bold")
        yield tables.alignment_table(answer.alignments)
    if answer.two is not None:
        yield Text("\nTwo arenas", style="bold")
        yield Text(
            f"non-persistent {format_size(answer.two.nonpersistent_bytes)}: tensors and scratch, read and written by "
            f"every operator: fast memory{_fits_into(answer.two.nonpersistent_bytes, answer.memories)}"
        )
        yield Text(
            f"persistent     {format_size(answer.two.persistent_bytes)}: structs, operator data, variable tensors: "
            f"may be slower memory{_fits_into(answer.two.persistent_bytes, answer.memories)}"
        )
    yield from _size_and_fit(answer.recommendation, answer.fit)


def _size_and_fit(recommendation: Recommendation | None, fit: Fit | None) -> Iterator[RenderableType]:
    """The size to write down, and whether it fits."""
    if recommendation is not None:
        given = recommendation
        yield Text(f"\nwith headroom {given.headroom:g}: kTensorArenaSize = {given.size_bytes}", style="bold")
    if fit is not None:
        yield Text(fit.text, style="bold green" if fit.fits else "bold red")


def shared_blocks(answer: Shared) -> Iterator[RenderableType]:
    """Several models in one arena, for a person."""
    shared, plans = answer.arena, answer.plans
    yield Text(f"\n{len(plans)} models in one arena, set up in this order, one running at a time", style="bold")
    table = Table("model", box=None, pad_edge=False, header_style="bold")
    for name in ("head", "tail", "min alone"):
        table.add_column(name, justify="right", no_wrap=True)
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
    if answer.best.min_exact_bytes < shared.min_exact_bytes:
        names = ", ".join(_file_name(plans[number]) for number in answer.best_order)
        yield Text(f"the order {names} needs {shared.min_exact_bytes - answer.best.min_exact_bytes:,} bytes less")
    yield from _size_and_fit(answer.recommendation, answer.fit)


def _fits_into(size_bytes: int, memories: Sequence[Place]) -> str:
    """``; fits into dtcm, sram1``; empty without a board."""
    if not memories:
        return ""
    names = holding(size_bytes, memories)
    return f"; fits into {', '.join(names)}" if names else "; fits into no memory of the board"


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
