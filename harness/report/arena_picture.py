"""The arena as a picture: offset upwards, time to the right, one block per buffer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from harness.report.drawing import Drawing, Line, Rect, Text
from harness.units import format_bytes, safe_text


class Kind(str, Enum):
    """What a block of the arena is for."""

    INPUT = "input"
    OUTPUT = "output"
    INTERMEDIATE = "intermediate"
    SCRATCH = "scratch"


#: Distinct also for readers with colour blindness (the palette of Okabe and Ito, lightened where text lies on it).
COLOURS = {
    Kind.INPUT: ("#56b4e9",),
    Kind.OUTPUT: ("#e69f00",),
    Kind.INTERMEDIATE: ("#4caf91", "#8fd0bd"),
    Kind.SCRATCH: ("#cc79a7",),
}
PERSISTENT_COLOUR = "#d0d0d0"


@dataclass(frozen=True, slots=True)
class Block:
    """A buffer: alive in the closed interval of steps [first, last], at ``offset_bytes`` of the head."""

    label: str
    kind: Kind
    offset_bytes: int
    size_bytes: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class ArenaPicture:
    """``steps`` names what runs at step 0, 1, …; blocks with first = -1 are alive before step 0 and never used.
    ``peak`` is the step at which most bytes are alive."""

    title: str
    head_bytes: int
    tail_bytes: int
    blocks: tuple[Block, ...]
    steps: tuple[str, ...]
    peak: int

    @property
    def drawn_tail_bytes(self) -> int:
        """How much of the tail is drawn: all of it, or, where it would press the head flat, a third of the head."""
        return min(self.tail_bytes, max(self.head_bytes // 3, 16)) if self.head_bytes else self.tail_bytes

    @property
    def is_tail_cut(self) -> bool:
        return self.drawn_tail_bytes < self.tail_bytes


#: Step or offset → pixel.
_Axis = Callable[[float], float]
_Shapes = list[Rect | Line | Text]

_WIDTH, _LEFT, _RIGHT, _TOP, _CHART = 1100, 90, 24, 78, 420


def draw(picture: ArenaPicture) -> Drawing:
    """Lay the picture out."""
    start = min((block.first for block in picture.blocks), default=0)
    start = min(start, 0)
    count = max(len(picture.steps), max((block.last + 1 for block in picture.blocks), default=1)) - start
    step = (_WIDTH - _LEFT - _RIGHT) / max(1, count)
    total = max(1, picture.head_bytes + picture.drawn_tail_bytes)
    scale = _CHART / total

    def x(at: float) -> float:
        return _LEFT + (at - start) * step

    def y(offset: float) -> float:
        return _TOP + _CHART - offset * scale

    named = step >= 13
    bottom = _TOP + _CHART
    legend_y = bottom + (150 if named else 62)
    shapes: _Shapes = [Text(_LEFT, 26, safe_text(picture.title, 110), 16, bold=True)]
    shapes.append(Text(_LEFT, 46, _summary(picture), 12, colour="#555555"))
    shapes.extend(_byte_axis(picture.head_bytes if picture.is_tail_cut else total, y))
    shapes.append(
        Rect(
            x(start),
            y(total),
            step * count,
            picture.drawn_tail_bytes * scale,
            PERSISTENT_COLOUR,
            tip=f"persistent (tail): {format_bytes(picture.tail_bytes)} bytes, always there",
        )
    )
    if picture.drawn_tail_bytes * scale >= 16:
        text = f"tail, {format_bytes(picture.tail_bytes)} bytes" + (" (not to scale)" if picture.is_tail_cut else "")
        middle = y(total) + picture.drawn_tail_bytes * scale / 2 + 4
        shapes.append(Text(_WIDTH - _RIGHT - 8, middle, text, 11, "end", "#555555"))
    shapes.extend(_blocks(picture, x, y, step, scale))
    if picture.steps:
        middle = x(picture.peak + 0.5)
        shapes.append(Line(middle, _TOP - 4, middle, bottom, "#c0392b", 1.2, dashed=True))
        shapes.append(Text(middle, _TOP - 7, "peak", 11, "middle", "#c0392b"))
    shapes.append(Line(_LEFT, bottom, _WIDTH - _RIGHT, bottom, "#222222"))
    shapes.extend(_step_axis(picture.steps, x, bottom, step, named))
    shapes.extend(_legend(legend_y))
    return Drawing(_WIDTH, legend_y + 22, picture.title, tuple(shapes))


def _summary(picture: ArenaPicture) -> str:
    head, tail = picture.head_bytes, picture.tail_bytes
    return f"head {format_bytes(head)} + tail {format_bytes(tail)} = {format_bytes(head + tail)} bytes used"


def _blocks(picture: ArenaPicture, x: _Axis, y: _Axis, step: float, scale: float) -> _Shapes:
    shapes: _Shapes = []
    for number, block in enumerate(picture.blocks):
        colours = COLOURS[block.kind]
        left, width = x(block.first), (block.last - block.first + 1) * step
        top, height = y(block.offset_bytes + block.size_bytes), block.size_bytes * scale
        tip = (
            f"{safe_text(block.label)}: {block.kind.value}, {format_bytes(block.size_bytes)} bytes at offset "
            f"{format_bytes(block.offset_bytes)}, steps {block.first} to {block.last}"
        )
        colour = colours[number % len(colours)]
        shapes.append(Rect(left, top, width, height, colour, "#ffffff" if width > 6 else colour, tip))
        room = int(width / 6.2) - 1
        if height >= 13 and room >= 3:
            shapes.append(Text(left + width / 2, top + height / 2 + 4, _fitting(block.label, room), 10.5, "middle"))
    return shapes


def _fitting(label: str, room: int) -> str:
    """The label, cut to ``room`` characters; where there is little room only its number."""
    text = safe_text(label, room)
    return text if room >= 10 or len(text) <= room else label.split(" ")[0][:room]


def _byte_axis(total: int, y: _Axis) -> _Shapes:
    shapes: _Shapes = []
    stride = _stride(total)
    for offset in range(0, total + 1, stride):
        shapes.append(Line(_LEFT, y(offset), _WIDTH - _RIGHT, y(offset), "#eeeeee"))
        shapes.append(Text(_LEFT - 8, y(offset) + 4, format_bytes(offset), 11, "end", "#555555"))
    shapes.append(Text(22, _TOP + _CHART / 2, "arena offset, bytes", 12, "middle", "#555555", turn_degrees=-90))
    return shapes


def _stride(total: int) -> int:
    """A round power-of-two step that gives four to eight ticks."""
    stride = 16
    while total // stride > 8:
        stride *= 2
    return stride


def _step_axis(steps: Sequence[str], x: _Axis, bottom: float, step: float, named: bool) -> _Shapes:
    shapes: _Shapes = []
    if named:
        for index, name in enumerate(steps):
            text = safe_text(f"{index} {name}", 22)
            shapes.append(Text(x(index + 0.5) + 4, bottom + 12, text, 10, "end", "#555555", turn_degrees=-60))
        return shapes
    every = _round_up(42 / step)
    for index in range(0, len(steps), every):
        shapes.append(Line(x(index + 0.5), bottom, x(index + 0.5), bottom + 4, "#555555"))
        shapes.append(Text(x(index + 0.5), bottom + 17, str(index), 10.5, "middle", "#555555"))
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    shapes.append(Text(middle, bottom + 36, "step (operators in the order they run)", 12, "middle", "#555555"))
    return shapes


def _round_up(value: float) -> int:
    """The next of 1, 2, 5, 10, 20, 50, …"""
    power = 1
    while True:
        for digit in (1, 2, 5):
            if digit * power >= value:
                return digit * power
        power *= 10


def _legend(top: float) -> _Shapes:
    shapes: _Shapes = []
    at = float(_LEFT)
    entries = [(kind.value, COLOURS[kind][0]) for kind in Kind] + [("persistent (tail)", PERSISTENT_COLOUR)]
    for name, colour in entries:
        shapes.append(Rect(at, top - 10, 14, 12, colour))
        shapes.append(Text(at + 20, top, name, 12))
        at += 40 + 7.2 * len(name)
    return shapes
