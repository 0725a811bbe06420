"""The arena's picture in Unicode blocks, readable with and without colour."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from rich.text import Text

from harness.report.arena_picture import ArenaPicture, Block, Kind
from harness.units import format_bytes

_GLYPHS = {Kind.INPUT: "▒", Kind.OUTPUT: "▓", Kind.INTERMEDIATE: "█", Kind.SCRATCH: "░"}
_STYLES = {
    Kind.INPUT: ("bright_blue",),
    Kind.OUTPUT: ("yellow",),
    Kind.INTERMEDIATE: ("green", "bright_green"),
    Kind.SCRATCH: ("magenta",),
}
_TAIL_GLYPH, _TAIL_STYLE = "╱", "bright_black"
#: A cell shows a buffer that covers at least this part of it.
_VISIBLE = 0.25


def picture_lines(picture: ArenaPicture, width: int = 100, rows: int = 18) -> list[Text]:
    """The picture as lines of at most ``width`` characters: offset upwards, time to the right, then a legend."""
    total = picture.head_bytes + picture.drawn_tail_bytes
    if not total:
        return [Text("the arena is empty")]
    label_width = len(format_bytes(total))
    columns = _columns(picture, max(8, width - label_width - 3))
    step_width = max(1, (width - label_width - 3) // len(columns)) if len(columns) <= width else 1
    step_width = min(step_width, 6)
    alive = [
        [(number, block) for number, block in enumerate(picture.blocks) if block.first <= step <= block.last]
        for step in columns
    ]
    lines = []
    for row in range(rows, 0, -1):
        low, high = total * (row - 1) / rows, total * row / rows
        label = format_bytes(round(high)) if row == rows or row % 4 == 0 else ""
        if picture.is_tail_cut and high > picture.head_bytes:
            label = ""
        line = Text(f"{label:>{label_width}} {'┤' if label else '│'}")
        for blocks in alive:
            glyph, style = _cell(picture.head_bytes, blocks, low, high)
            line.append(glyph * step_width, style=style)
        lines.append(line)
    lines.append(Text(f"{'0':>{label_width}} └{'─' * step_width * len(columns)}"))
    lines.append(Text((" " * (label_width + 2) + _ruler(columns, step_width))[:width]))
    lines.append(_legend(picture))
    return lines


def _columns(picture: ArenaPicture, limit: int) -> list[int]:
    """The step that each column shows: every step, or for long models the fullest one of each group."""
    start = min([0, *(block.first for block in picture.blocks)])
    end = max([len(picture.steps) - 1, *(block.last for block in picture.blocks)])
    steps = range(start, end + 1)
    if len(steps) <= limit:
        return list(steps)
    load = _loads(picture.blocks, start, end)
    bounds = [start + len(steps) * column // limit for column in range(limit + 1)]
    return [max(range(low, high), key=lambda step: load[step - start]) for low, high in pairwise(bounds)]


def _loads(blocks: Sequence[Block], start: int, end: int) -> list[int]:
    change = [0] * (end - start + 2)
    for block in blocks:
        change[block.first - start] += block.size_bytes
        change[block.last + 1 - start] -= block.size_bytes
    load, loads = 0, []
    for delta in change:
        load += delta
        loads.append(load)
    return loads


def _cell(head_bytes: int, alive: Sequence[tuple[int, Block]], low: float, high: float) -> tuple[str, str]:
    """What covers most of the bytes from ``low`` to ``high``."""
    share, glyph, style = _VISIBLE * (high - low), " ", ""
    covered = high - max(low, head_bytes)
    if covered >= share:
        share, glyph, style = covered, _TAIL_GLYPH, _TAIL_STYLE
    for number, block in alive:
        covered = min(high, block.offset_bytes + block.size_bytes) - max(low, block.offset_bytes)
        if covered >= share:
            styles = _STYLES[block.kind]
            share, glyph, style = covered, _GLYPHS[block.kind], styles[number % len(styles)]
    return glyph, style


def _ruler(columns: Sequence[int], step_width: int) -> str:
    text = ""
    for place, step in enumerate(columns):
        at = place * step_width
        if len(text) <= at and (place == 0 or step % 5 == 0 or (len(columns) > 40 and place % 10 == 0)):
            text = text.ljust(at) + f"{step} "
    return text + "step"


def _legend(picture: ArenaPicture) -> Text:
    line = Text("  ")
    for kind in Kind:
        line.append(_GLYPHS[kind] * 2, style=_STYLES[kind][0])
        line.append(f" {kind.value}   ")
    line.append(_TAIL_GLYPH * 2, style=_TAIL_STYLE)
    line.append(" persistent (tail)" + (", not to scale" if picture.is_tail_cut else ""))
    return line
