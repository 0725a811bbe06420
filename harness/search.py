"""The search for the minimum: history of trials in, next size out. Pure arithmetic; resuming is passing the trials.

The first run has an ample arena. From there: the plan's prediction, then one step below it; where the prediction was
wrong, outwards in doubling strides until the minimum is bracketed, then bisection. With a right prediction that is the
ample run and two trials; with one that is off by e bytes at most 2 + 2·log2(e / step) more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.trial import Outcome, Trial
from harness.units import align_up


@dataclass(frozen=True, slots=True)
class SearchSpec:
    """``ample_bytes`` is tried first. ``predicted_bytes`` is the plan's minimum, of any alignment. Sizes are multiples
    of ``step_bytes`` (the ample one of 16)."""

    ample_bytes: int
    predicted_bytes: int
    step_bytes: int = 16

    @property
    def start_bytes(self) -> int:
        """The prediction as a size that may be tried: a multiple of the step, at least one step."""
        return max(self.step_bytes, align_up(self.predicted_bytes, self.step_bytes))


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A size that failed although a smaller one, or the same one, worked."""

    failing_bytes: int
    working_bytes: int


@dataclass(frozen=True, slots=True)
class SearchResult:
    """``min_bytes`` is the smallest size that works and is larger than every size that failed; None before the end.
    ``largest_failing_bytes`` is None where nothing failed. ``trials`` are in the order in which they were made."""

    min_bytes: int | None
    largest_failing_bytes: int | None
    step_bytes: int
    trials: tuple[Trial, ...]
    contradictions: tuple[Contradiction, ...] = ()

    @property
    def is_monotonic(self) -> bool:
        return not self.contradictions


def next_arena_bytes(trials: Sequence[Trial], spec: SearchSpec) -> int | None:
    """The size to try next; None when the search is over, or cannot go on because of an error."""
    if not trials:
        return spec.ample_bytes
    if any(trial.outcome is Outcome.ERROR for trial in trials):
        return None
    low, high = _bracket(trials)
    if high is None:
        return None
    if low is None:
        return _gallop_down(trials, spec, high)
    if high - low <= spec.step_bytes:
        return None
    return _gallop_up(trials, spec, low, high) or _middle(low, high, spec.step_bytes)


def result_of(trials: Sequence[Trial], spec: SearchSpec) -> SearchResult:
    """What the trials say so far. ``min_bytes`` is set only when the search is over."""
    low, high = _bracket(trials)
    finished = high is not None and next_arena_bytes(trials, spec) is None
    has_error = any(trial.outcome is Outcome.ERROR for trial in trials)
    return SearchResult(
        min_bytes=high if finished and not has_error else None,
        largest_failing_bytes=low,
        step_bytes=spec.step_bytes,
        trials=tuple(trials),
        contradictions=_contradictions(trials),
    )


def _bracket(trials: Sequence[Trial]) -> tuple[int | None, int | None]:
    """The largest size that failed, and the smallest above it that works."""
    failing = [trial.arena_bytes for trial in trials if trial.outcome is Outcome.TOO_SMALL]
    low = max(failing, default=None)
    working = [trial.arena_bytes for trial in trials if trial.outcome is Outcome.WORKS]
    return low, min((size for size in working if low is None or size > low), default=None)


def _gallop_down(trials: Sequence[Trial], spec: SearchSpec, high: int) -> int | None:
    """Nothing has failed yet: the start, then below it in doubling strides, last one step (0 bytes cannot work)."""
    if high > spec.start_bytes:
        return spec.start_bytes
    strides = sum(trial.arena_bytes <= spec.start_bytes for trial in trials)
    below = spec.start_bytes - spec.step_bytes * ((1 << strides) - 1)
    if below >= spec.step_bytes:
        return below
    return spec.step_bytes if high > spec.step_bytes else None


def _gallop_up(trials: Sequence[Trial], spec: SearchSpec, low: int, high: int) -> int | None:
    """Only the ample arena works so far: above the start in doubling strides. None when it is time to bisect."""
    if high != spec.ample_bytes or low < spec.start_bytes:
        return None
    strides = sum(spec.start_bytes <= trial.arena_bytes < high for trial in trials)
    above = spec.start_bytes + spec.step_bytes * ((1 << strides) - 1)
    return above if low < above < high else None


def _middle(low: int, high: int, step: int) -> int:
    middle = (low + high) // 2 // step * step
    return middle if middle > low else align_up(low + 1, step)


def _contradictions(trials: Sequence[Trial]) -> tuple[Contradiction, ...]:
    working = [trial.arena_bytes for trial in trials if trial.outcome is Outcome.WORKS]
    smallest = min(working, default=None)
    if smallest is None:
        return ()
    failing = sorted(trial.arena_bytes for trial in trials if trial.outcome is Outcome.TOO_SMALL)
    return tuple(Contradiction(size, smallest) for size in failing if size >= smallest)
