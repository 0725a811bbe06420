"""What a suite can measure: each metric with its unit, the better direction, and where it stands in a sweep record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from harness.record.schema import SweepRecord

Number = int | float


class Kind(str, Enum):
    """What makes two values comparable, and how exact they are."""

    ARENA = "arena"  # bytes of the arena: do not depend on clock or noise
    SEARCH = "search"  # found by the search, to a step
    TIMING = "timing"  # noisy on silicon
    MEMORY = "memory"  # bytes of the firmware outside the arena


@dataclass(frozen=True, slots=True)
class Metric:
    """``take`` gives None where the record does not hold the number. Smaller is better for every metric."""

    name: str
    unit: str
    kind: Kind
    title: str
    take: Callable[[SweepRecord], Number | None]


def _measured(name: str) -> Callable[[SweepRecord], Number | None]:
    return lambda record: getattr(record.measured, name, None) if record.measured else None


def _planned(name: str) -> Callable[[SweepRecord], Number | None]:
    def take(record: SweepRecord) -> Number | None:
        arena: dict[str, Any] = (record.plan or {}).get("arena") or {}
        return arena.get(name)

    return take


def _min_bytes(record: SweepRecord) -> Number | None:
    return record.search.min_bytes if record.search else None


def _invoke(record: SweepRecord) -> Number | None:
    """The median of timed runs. The one Invoke of a trial is none: it is cold, and nobody asked for it."""
    return round(record.timing.ample.median) if record.timing else None


def _unexplained(record: SweepRecord) -> Number | None:
    return (record.reconciliation or {}).get("unexplained_bytes")


_ALL = (
    Metric("arena_min_bytes", "B", Kind.SEARCH, "smallest arena that works (bisected)", _min_bytes),
    Metric("arena_used_bytes", "B", Kind.ARENA, "arena_used_bytes()", _measured("used_bytes")),
    Metric("arena_head_bytes", "B", Kind.ARENA, "head: planned tensors and scratch", _measured("head_bytes")),
    Metric("arena_tail_bytes", "B", Kind.ARENA, "tail: persistent data", _measured("tail_bytes")),
    Metric("planned_min_bytes", "B", Kind.ARENA, "smallest arena by the plan", _planned("min_bytes")),
    Metric("planned_used_bytes", "B", Kind.ARENA, "arena_used_bytes() by the plan", _planned("used_bytes")),
    Metric("unexplained_bytes", "B", Kind.ARENA, "plan against measurement, not explained", _unexplained),
    Metric("stack_used_bytes", "B", Kind.MEMORY, "stack high-water mark", _measured("stack_used_bytes")),
    Metric("allocate_cycles", "ticks", Kind.TIMING, "AllocateTensors", _measured("allocate_cycles")),
    Metric("invoke_cycles", "ticks", Kind.TIMING, "Invoke, the median of timed runs", _invoke),
)
#: name → metric, in the order in which reports show them.
METRICS: dict[str, Metric] = {metric.name: metric for metric in _ALL}
DEFAULT_METRICS = ("arena_min_bytes", "arena_used_bytes")
