"""A series over time: as blocks on a terminal, as a picture."""

from __future__ import annotations

from collections.abc import Sequence

from harness.report.drawing import Drawing, Line, Rect, Text

_BLOCKS = "▁▂▃▄▅▆▇█"
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 900, 320, 110, 50, 40


def sparkline(values: Sequence[float], width: int = 72) -> str:
    """The last ``width`` values, each as a block; equal values are all low."""
    shown = list(values[-width:])
    if not shown:
        return ""
    low, high = min(shown), max(shown)
    span = high - low
    return "".join(_BLOCKS[round((value - low) / span * (len(_BLOCKS) - 1)) if span else 0] for value in shown)


def picture(title: str, values: Sequence[float], labels: Sequence[str], changes: Sequence[int], unit: str) -> Drawing:
    """One dot per value, a dashed line before each index in ``changes``; ``labels`` show as tips."""
    low, high = min(values), max(values)
    span = (high - low) or 1
    step = (_WIDTH - _LEFT - 30) / max(1, len(values) - 1)

    def at(index: int, value: float) -> tuple[float, float]:
        return _LEFT + index * step, _HEIGHT - _BOTTOM - (value - low) / span * (_HEIGHT - _TOP - _BOTTOM)

    shapes: list[Rect | Line | Text] = [Text(_LEFT, 24, title, size=14, bold=True)]
    for value in sorted({low, high}):
        _, y = at(0, value)
        shapes += [
            Line(_LEFT, y, _WIDTH - 30, y, colour="#dddddd"),
            Text(_LEFT - 8, y + 4, f"{value:,.0f} {unit}", anchor="end"),
        ]
    for index in changes:
        x, _ = at(index, low)
        shapes.append(Line(x - step / 2, _TOP, x - step / 2, _HEIGHT - _BOTTOM, colour="#cc3311", dashed=True))
    for index, value in enumerate(values):
        x, y = at(index, value)
        if index:
            before = at(index - 1, values[index - 1])
            shapes.append(Line(*before, x, y, colour="#4477aa"))
        shapes.append(Rect(x - 2, y - 2, 4, 4, fill="#4477aa", tip=labels[index]))
    for index in sorted({0, len(values) - 1}):
        x, _ = at(index, low)
        anchor = "start" if index == 0 else "end"
        shapes.append(Text(x, _HEIGHT - 14, labels[index], size=11, anchor=anchor))
    return Drawing(_WIDTH, _HEIGHT, title, tuple(shapes))
