"""Two sets of outputs, compared: bit for bit, then by how much they differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum


class Agreement(str, Enum):
    """BIT_EXACT: the same bytes. CLOSE: within the tolerance. UNKNOWN: nothing to compare with. SELF: what was measured
    is the reference itself."""

    BIT_EXACT = "bit_exact"
    CLOSE = "close"
    DIFFERENT = "different"
    UNKNOWN = "unknown"
    SELF = "self"


@dataclass(frozen=True, slots=True)
class Comparison:
    """``max_difference`` is in quantised steps for integer outputs, absolute for floats; over all outputs. ``unit``:
    steps where all outputs are integers, values where all are floats, "" where both are among them or nothing is."""

    agreement: Agreement
    max_difference: float | None = None
    mean_difference: float | None = None
    unit: str = ""


#: One quantised step: kernels round differently (TFLM's and LiteRT's rescaling, CMSIS-NN).
INTEGER_TOLERANCE_STEPS = 1
#: Relative to the largest magnitude of the output: float32 sums in another order.
FLOAT_TOLERANCE = 1e-4


def worst_of(comparisons: Sequence[Comparison]) -> Comparison:
    """One comparison for several inferences: the worst agreement, the largest difference, the mean of the means."""
    order = list(Agreement)
    worst = max(comparisons, key=lambda comparison: order.index(comparison.agreement))
    largest = [c.max_difference for c in comparisons if c.max_difference is not None]
    means = [c.mean_difference for c in comparisons if c.mean_difference is not None]
    if len(largest) < len(comparisons):
        return Comparison(worst.agreement)
    unit = next((c.unit for c in comparisons if c.unit), "")
    return Comparison(worst.agreement, max(largest), sum(means) / len(means), unit)


def compare(
    ours: Sequence[bytes],
    theirs: Sequence[bytes],
    dtypes: Sequence[str],
    tolerance_steps: float = INTEGER_TOLERANCE_STEPS,
) -> Comparison:
    """``dtypes`` are numpy names. A step of a float output is FLOAT_TOLERANCE of its largest magnitude. Outputs of
    other number or size are DIFFERENT without a number."""
    import numpy as np

    if list(ours) == list(theirs):
        return Comparison(Agreement.BIT_EXACT, 0.0, 0.0)
    if [len(data) for data in ours] != [len(data) for data in theirs]:
        return Comparison(Agreement.DIFFERENT)
    worst, total, count, close = 0.0, 0.0, 0, True
    for mine, other, dtype in zip(ours, theirs, dtypes, strict=True):
        left = np.frombuffer(mine, dtype).astype(np.float64)
        right = np.frombuffer(other, dtype).astype(np.float64)
        same = (left == right) | (np.isnan(left) & np.isnan(right))
        difference = np.where(same, 0.0, np.abs(left - right))
        difference = np.where(np.isnan(difference), np.inf, difference)
        if difference.size == 0:
            continue
        largest = float(difference.max())
        finite = np.abs(right[np.isfinite(right)])
        scale = float(finite.max()) if finite.size else 1.0
        allowed = tolerance_steps * (FLOAT_TOLERANCE * max(scale, 1e-6) if dtype.startswith("float") else 1)
        close = close and largest <= allowed
        worst, total, count = max(worst, largest), total + float(difference.sum()), count + difference.size
    kinds = {"values" if dtype.startswith("float") else "steps" for dtype in dtypes}
    agreement = Agreement.CLOSE if close else Agreement.DIFFERENT
    return Comparison(agreement, worst, total / max(1, count), kinds.pop() if len(kinds) == 1 else "")
