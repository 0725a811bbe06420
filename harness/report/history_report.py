"""Series over time, as a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.report.drawing import Drawing, Line, Rect, Text

_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 900, 320, 110, 50, 40


@dataclass(frozen=True, slots=True)
class Panel:
    """One series of a picture: one dot per value, a dashed line before each index in ``changes``; ``labels`` show as
    tips."""

    title: str
    values: Sequence[float]
    labels: Sequence[str]
    changes: Sequence[int]
    unit: str


def picture(title: str, panels: Sequence[Panel]) -> Drawing:
    """The panels below each other, each with a scale of its own."""
    shapes = tuple(shape for at, panel in enumerate(panels) for shape in _shapes(panel, at * _HEIGHT))
    return Drawing(_WIDTH, _HEIGHT * len(panels), title, shapes)


def _shapes(panel: Panel, top: float) -> Iterator[Rect | Line | Text]:
    values, labels, floor = panel.values, panel.labels, top + _HEIGHT - _BOTTOM
    low, high = min(values), max(values)
    span = (high - low) or 1
    step = (_WIDTH - _LEFT - 30) / max(1, len(values) - 1)

    def at(index: int, value: float) -> tuple[float, float]:
        return _LEFT + index * step, floor - (value - low) / span * (_HEIGHT - _TOP - _BOTTOM)

    yield Text(_LEFT, top + 24, panel.title, size=14, bold=True)
    for value in sorted({low, high}):
        _, y = at(0, value)
        yield Line(_LEFT, y, _WIDTH - 30, y, colour="#dddddd")
        yield Text(_LEFT - 8, y + 4, f"{value:,.0f} {panel.unit}", anchor="end")
    for index in panel.changes:
        x, _ = at(index, low)
        yield Line(x - step / 2, top + _TOP, x - step / 2, floor, colour="#cc3311", dashed=True)
    for index, value in enumerate(values):
        x, y = at(index, value)
        if index:
            yield Line(*at(index - 1, values[index - 1]), x, y, colour="#4477aa")
        yield Rect(x - 2, y - 2, 4, 4, fill="#4477aa", tip=labels[index])
    for index in sorted({0, len(values) - 1}):
        x, _ = at(index, low)
        yield Text(x, top + _HEIGHT - 14, labels[index], size=11, anchor="start" if index == 0 else "end")
