"""A plan as a person wants to read it: tables and sentences for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from harness.plan.comparison import AlignmentCost, Comparison
from harness.plan.insight import HeadView, Peak, Region, Win
from harness.plan.stages import Stage
from harness.units import format_bytes, quoted, safe_text

#: TFLM's own names of categories, with what stands behind them.
_GLOSSES = {
    "Persistent buffer data": "Persistent buffer data (operator data, per-channel arrays, input and output lists)",
    "TfLiteTensor variable buffer data": "TfLiteTensor variable buffer data (state between runs)",
}


def region_table(regions: Sequence[Region], used_bytes: int) -> Table:
    """Where the bytes go; shares are of arena_used_bytes()."""
    table = Table("section", "what", box=None, pad_edge=False, header_style="bold", title_justify="left")
    table.add_column("bytes", justify="right", no_wrap=True)
    table.add_column("share", justify="right", no_wrap=True)
    section = ""
    for region in regions:
        if not region.size_bytes:
            continue
        table.add_row(
            region.section if region.section != section else "",
            Text(_GLOSSES.get(region.name, safe_text(region.name))),
            format_bytes(region.size_bytes),
            _percent(region.size_bytes, used_bytes),
        )
        section = region.section
    table.add_section()
    table.add_row(
        "used", "arena_used_bytes()", format_bytes(used_bytes), _percent(used_bytes, used_bytes), style="bold"
    )
    return table


def stage_table(stages: Sequence[Stage]) -> Table:
    """What each stage of AllocateTensors() needs on its own; the largest is the minimum."""
    table = Table("stage", box=None, pad_edge=False, header_style="bold")
    table.add_column("arena bytes", justify="right", no_wrap=True)
    table.add_column("fails first below that")
    decides = max(stage.needed_bytes for stage in stages)
    for stage in stages:
        style = "bold" if stage.needed_bytes == decides else ""
        table.add_row(
            stage.kind.value, format_bytes(stage.needed_bytes), Text(safe_text(stage.step.label)), style=style
        )
    return table


def buffer_table(view: HeadView, indices: Iterable[int]) -> Table:
    """Buffers of the head: lifetime, offset, size."""
    table = Table("buffer", "use", box=None, pad_edge=False, header_style="bold")
    table.add_column("alive", justify="right", no_wrap=True)
    table.add_column("offset", justify="right", no_wrap=True)
    table.add_column("bytes", justify="right", no_wrap=True)
    for index in indices:
        request = view.requests[index]
        alive = f"{request.first_use}–{request.last_use}" if request.first_use >= 0 else "never used"
        offline = " (offline)" if request.offline_offset is not None else ""
        table.add_row(
            Text(view.name(index)),
            view.use(index).value + offline,
            alive,
            format_bytes(view.offsets[index]),
            format_bytes(request.requested_bytes),
        )
    return table


def peak_lines(view: HeadView, peak: Peak) -> list[RenderableType]:
    """The fullest moment and who is alive there."""
    if not peak.buffers:
        return [Text("no tensor needs memory in the head")]
    where = view.step(peak.step)
    line = Text(f"peak: {format_bytes(peak.live_bytes)} bytes are alive at step {peak.step} ({where})")
    return [line, buffer_table(view, peak.buffers)]


def win_lines(view: HeadView, peak: Peak, wins: Sequence[Win], limit: int = 4) -> list[Text]:
    """The biggest wins in plain words, or why there is none."""
    lines = [
        Text(f"{number}. {format_bytes(win.saved_bytes)} bytes less head: {win.text}")
        for number, win in enumerate(wins[:limit], start=1)
    ]
    if not lines and peak.buffers:
        where = view.step(peak.step)
        lines.append(
            Text(f"none: what is alive at the peak is what {where} reads and writes; only smaller tensors help")
        )
    return lines


def comparison_table(comparison: Comparison, tail_bytes: int) -> Table:
    """Planners side by side."""
    table = Table("planner", box=None, pad_edge=False, header_style="bold")
    for name in ("head bytes", "ratio to bound", "head + tail", "time"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    for result in comparison.results:
        table.add_row(
            result.planner,
            format_bytes(result.head_bytes),
            f"{result.ratio:.3f}",
            format_bytes(result.head_bytes + tail_bytes),
            _time(result.seconds),
            "nothing smaller exists" if result.optimal else "",
        )
    table.add_section()
    table.add_row(
        "lower bound", format_bytes(comparison.bound_bytes), "1.000", format_bytes(comparison.bound_bytes + tail_bytes)
    )
    return table


def alignment_table(costs: Sequence[AlignmentCost]) -> Table:
    """What the rounding of buffers costs."""
    table = Table("alignment", box=None, pad_edge=False, header_style="bold")
    for name in ("head bytes", "padding of all buffers", "padding at the peak"):
        table.add_column(name, justify="right", no_wrap=True)
    for cost in costs:
        cells = (cost.head_bytes, cost.padding_bytes, cost.peak_padding_bytes)
        table.add_row(str(cost.alignment), *(format_bytes(cell) for cell in cells))
    return table


def log_lines(view: HeadView) -> list[str]:
    """One line per buffer, in TFLM's order of addition, like the listing of GreedyMemoryPlanner::PrintMemoryPlan."""
    lines = []
    for index, (request, offset) in enumerate(zip(view.requests, view.offsets, strict=True)):
        tensor = view.tensor(index)
        what = f"scratch={request.scratch}" if tensor is None else f"tensor={tensor.index}"
        name = "" if tensor is None else f" name={quoted(tensor.name, 80)}"
        lines.append(
            f"{index} subgraph={request.subgraph} {what}{name} offset={offset} size={request.size_bytes} "
            f"requested={request.requested_bytes} first={request.first_use} last={request.last_use}"
        )
    return lines


def print_all(console: Console, blocks: Iterable[RenderableType]) -> None:
    for block in blocks:
        console.print(block, soft_wrap=isinstance(block, (str, Text)))


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}%" if whole else ""


def _time(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"
