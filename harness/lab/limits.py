"""Limits as a suite writes them: ``arena_min_bytes <= 98304``, ``invoke_cycles <= baseline + 2%``."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

from harness.errors import ConfigError, UsageError
from harness.lab.metrics import METRICS, Number
from harness.units import parse_size, quoted

_FORM = re.compile(r"^\s*(\w+)\s*(<=|>=|<|>|==)\s*(.+?)\s*$")
_RELATIVE = re.compile(r"^baseline(?:\s*([+-])\s*(\d+(?:\.\d+)?)\s*(%?))?$")
_OPERATORS: dict[str, Callable[[Number, Number], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
}


@dataclass(frozen=True, slots=True)
class Limit:
    """``metric OP bound``. Relative to the baseline: bound = baseline · (1 + ``percent``/100) + ``constant``."""

    text: str
    metric: str
    operator: str
    constant: Number
    relative: bool = False
    percent: float = 0.0

    def bound(self, baseline: Number | None) -> Number | None:
        """None where the limit is relative and there is no baseline."""
        if not self.relative:
            return self.constant
        return None if baseline is None else baseline * (1 + self.percent / 100) + self.constant

    def holds(self, value: Number, bound: Number) -> bool:
        return _OPERATORS[self.operator](value, bound)


def parse_limit(text: str) -> Limit:
    """Raises ConfigError with the forms that are understood."""
    match = _FORM.match(text)
    if match is None:
        raise _error(text, "it is not METRIC <= BOUND")
    name, sign, bound = match.groups()
    if name not in METRICS:
        raise _error(text, f"there is no metric {quoted(name)}; metrics are {', '.join(METRICS)}")
    relative = _RELATIVE.match(bound)
    if relative:
        direction, amount, percent = relative.groups()
        number = float(amount or 0) * (-1 if direction == "-" else 1)
        return Limit(text, name, sign, 0 if percent else number, True, number if percent else 0.0)
    try:
        return Limit(text, name, sign, parse_size(bound))
    except UsageError as exc:
        raise _error(text, f"{quoted(bound)} is no number") from exc


def _error(text: str, why: str) -> ConfigError:
    return ConfigError(
        f"limit {quoted(text)}: {why}",
        remedy="write METRIC <= NUMBER (bytes, or 96KiB), or METRIC <= baseline + 2%",
        code="suite.limit",
    )
