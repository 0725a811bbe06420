"""A model's history as series: one per board, kernel set and metric (and rig, for times: two boards are two clocks)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

from harness.lab.history.store import HistoryStore, Point
from harness.lab.history.trend import ChangePoint, exact_changes, noisy_changes
from harness.lab.metrics import METRICS, Kind, Metric, Number

_Conditions = tuple[tuple[str, str | int | None], ...]


@dataclass(frozen=True, slots=True)
class Series:
    """Points that have a value and may be compared, oldest first. ``rig`` is empty for what does not depend on it.
    ``conditions``: what tells the series from others of the same board, kernel set and rig; empty where it is the only
    one."""

    metric: Metric
    board: str
    kernels: str
    rig: str
    points: tuple[Point, ...]
    conditions: tuple[tuple[str, str | int | None], ...] = ()

    @property
    def values(self) -> list[Number]:
        return [point.value for point in self.points if point.value is not None]

    def changes(self) -> list[ChangePoint]:
        """Where the level changed."""
        values = self.values
        return noisy_changes(values) if self.metric.kind is Kind.TIMING else exact_changes(values)

    def by_commit(self) -> list[tuple[str, int, float]]:
        """(TFLM commit, results, median value), in order of appearance."""
        groups: dict[str, list[Number]] = {}
        for point in self.points:
            if point.value is not None:
                groups.setdefault(point.tflm_commit, []).append(point.value)
        return [(commit, len(values), median(values)) for commit, values in groups.items()]


@dataclass(frozen=True, slots=True)
class EstimateErrors:
    """How far a tool's estimates are from measured minima. ``under`` of ``count`` would not have worked."""

    tool: str
    board: str
    kernels: str
    tflm_commit: str
    count: int
    under: int
    mean_percent: float
    worst_percent: float


def series_of(
    store: HistoryStore, model: str, metrics: Sequence[str], *, board: str = "", kernels: str = "", last: int = 2000
) -> list[Series]:
    """Every series of the model that has a value."""
    found = []
    for name in metrics:
        metric = METRICS[name]
        groups: dict[tuple[str, str, str], dict[_Conditions, list[Point]]] = {}
        for point in store.points(model, name, board=board, kernels=kernels, last=last):
            if point.value is not None:
                rig = point.rig if metric.kind is Kind.TIMING else ""
                alike = groups.setdefault((point.board, point.kernels, rig), {})
                alike.setdefault(point.conditions, []).append(point)
        for key, alike in sorted(groups.items()):
            found += [
                Series(metric, *key, tuple(points), _distinctive(values, list(alike)))
                for values, points in alike.items()
            ]
    return found


def _distinctive(own: _Conditions, every: Sequence[_Conditions]) -> _Conditions:
    """The conditions in which the groups are not all the same."""
    return tuple(pair for at, pair in enumerate(own) if len({conditions[at] for conditions in every}) > 1)


def estimate_errors(store: HistoryStore, model: str = "") -> list[EstimateErrors]:
    """Per tool, board, kernel set and TFLM commit."""
    groups: dict[tuple[str, str, str, str], list[tuple[int, int]]] = {}
    for *key, estimated, measured in store.estimate_errors(model):
        groups.setdefault(tuple(key), []).append((estimated, measured))  # type: ignore[arg-type]
    return [
        EstimateErrors(
            *key,
            count=len(pairs),
            under=sum(estimated < measured for estimated, measured in pairs),
            mean_percent=fmean(_percent(*pair) for pair in pairs),
            worst_percent=max((_percent(*pair) for pair in pairs), key=abs),
        )
        for key, pairs in sorted(groups.items())
    ]


def _percent(estimated: int, measured: int) -> float:
    return 100 * (estimated - measured) / measured if measured else 0.0
