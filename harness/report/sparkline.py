"""A series over time, as blocks on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

_BLOCKS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], width: int = 72) -> str:
    """The last ``width`` values, each as a block; equal values are all low."""
    shown = list(values[-width:])
    if not shown:
        return ""
    low, high = min(shown), max(shown)
    span = high - low
    return "".join(_BLOCKS[round((value - low) / span * (len(_BLOCKS) - 1)) if span else 0] for value in shown)
