"""Where a series changed its level. Bytes are exact: every other value is a change. Times are noisy: a change must
stand out of the noise.

Times are segmented by binary segmentation: the split that explains most of the variance is taken while it pays for
itself (Schwarz's criterion: a split must lower the cost by more than 3·σ²·ln n), with σ from the median absolute
difference of neighbours, which a step does not inflate. Single outliers are put to the median of their neighbours first
(Hampel's filter, five points wide): one bad run is no change.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import fmean, median, stdev

#: A level of fewer points than this is an outlier, not a level.
MIN_LEVEL = 3
#: A value farther than this many σ from the median of its neighbourhood is an outlier.
_OUTLIER_SIGMAS = 4.0
#: σ of a normal distribution from the median absolute difference of two neighbours: 1 / (√2 · 0.6745).
_MAD_TO_SIGMA = 1.0484
#: The same from the upper quartile of their differences: 1 / (√2 · 1.1503).
_QUARTILE_TO_SIGMA = 0.6147


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """Values from ``index`` on have another level. ``before`` and ``after`` are the levels on both sides."""

    index: int
    before: float
    after: float

    @property
    def percent(self) -> float:
        return 100 * (self.after - self.before) / self.before if self.before else math.inf


def exact_changes(values: Sequence[float]) -> list[ChangePoint]:
    """Every place where a value differs from the one before."""
    return [ChangePoint(at, old, new) for at, (old, new) in enumerate(pairwise(values), start=1) if old != new]


def noisy_changes(values: Sequence[float]) -> list[ChangePoint]:
    """Changes of the mean that stand out of the noise, in order."""
    if len(values) < 2 * MIN_LEVEL:
        return []
    values = _without_outliers(values)
    sums = [0.0, *accumulate(float(value) for value in values)]
    squares = [0.0, *accumulate(float(value) ** 2 for value in values)]

    def cost(start: int, end: int) -> float:
        """Sum of squared distances from the mean."""
        total = sums[end] - sums[start]
        return max(0.0, squares[end] - squares[start] - total * total / (end - start))

    sigma = noise(values)
    scale = max(abs(value) for value in values) or 1.0
    # rounding of the sums must not pass for a change where there is no noise at all
    penalty = max(3 * sigma**2 * math.log(len(values)), len(values) * (1e-6 * scale) ** 2)
    splits: list[int] = []
    parts = [(0, len(values))]
    while parts:
        start, end = parts.pop()
        candidates = range(start + MIN_LEVEL, end - MIN_LEVEL + 1)
        best = min(candidates, key=lambda at: cost(start, at) + cost(at, end), default=None)
        if best is None or cost(start, end) - cost(start, best) - cost(best, end) <= penalty:
            continue
        splits.append(best)
        parts += [(start, best), (best, end)]
    edges = [0, *sorted(splits), len(values)]
    levels = [fmean(values[start:end]) for start, end in pairwise(edges)]
    return [ChangePoint(edge, old, new) for edge, (old, new) in zip(edges[1:-1], pairwise(levels), strict=True)]


def noise(values: Sequence[float]) -> float:
    """σ of the values around their level, whatever steps they make."""
    if len(values) < 2:
        return 0.0
    return _MAD_TO_SIGMA * median(abs(new - old) for old, new in pairwise(values))


def since_last_change(values: Sequence[float]) -> Sequence[float]:
    """The values of the level that came last, oldest first."""
    changes = noisy_changes(values)
    return values[changes[-1].index :] if changes else values


def spread(values: Sequence[float]) -> float:
    """σ for a tolerance: the smaller of two estimates, each of which is too large where the other is not. The standard
    deviation counts a step as noise, also one too new to be a level; differences of neighbours count values that go up
    and down by turns twice. Their upper quartile, not their median, which is 0 where most values are equal."""
    if len(values) < 2:
        return 0.0
    differences = sorted(abs(new - old) for old, new in pairwise(values))
    return min(stdev(values), _QUARTILE_TO_SIGMA * differences[3 * (len(differences) - 1) // 4])


def _without_outliers(values: Sequence[float]) -> list[float]:
    """Every value, or the median of the five around it where it is far from that."""
    reach = _OUTLIER_SIGMAS * noise(values)
    kept = []
    for at, value in enumerate(values):
        middle = median(values[max(0, at - 2) : at + 3])
        kept.append(value if abs(value - middle) <= reach else middle)
    return kept
