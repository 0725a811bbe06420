"""Option types for numbers that bound something: neither NaN nor an infinity bounds anything."""

from __future__ import annotations

import math
from typing import Any

import click


class FiniteRange(click.FloatRange):
    """A ``click.FloatRange`` without ``nan`` (which every comparison of a range lets pass) and ``inf``."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{number:g} is not a finite number.", param, ctx)
        return number
