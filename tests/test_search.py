"""The search: pure, few trials, and right for every minimum."""

from __future__ import annotations

import math
from collections.abc import Callable

from hypothesis import example, given
from hypothesis import strategies as st

from harness.search import Contradiction, SearchSpec, next_arena_bytes, result_of
from harness.trial import Outcome, Reason, Trial

WORKS, TOO_SMALL = Outcome.WORKS, Outcome.TOO_SMALL


def search(works: Callable[[int], bool], spec: SearchSpec, history: list[Trial] | None = None) -> list[Trial]:
    trials = list(history or [])
    while (size := next_arena_bytes(trials, spec)) is not None:
        assert size not in [trial.arena_bytes for trial in trials]
        assert size % spec.step_bytes == 0 or size == spec.ample_bytes
        trials.append(Trial(size, WORKS) if works(size) else Trial(size, TOO_SMALL, Reason.ALLOC_FAILED))
        assert len(trials) < 200
    return trials


def test_a_right_prediction_needs_the_ample_run_and_two_trials() -> None:
    spec = SearchSpec(ample_bytes=65536, predicted_bytes=1936)
    trials = search(lambda size: size >= 1936, spec)
    assert [trial.arena_bytes for trial in trials] == [65536, 1936, 1920]
    result = result_of(trials, spec)
    assert (result.min_bytes, result.largest_failing_bytes) == (1936, 1920)


def test_to_the_byte_too() -> None:
    spec = SearchSpec(ample_bytes=65536, predicted_bytes=10136, step_bytes=1)
    trials = search(lambda size: size >= 10136, spec)
    assert [trial.arena_bytes for trial in trials] == [65536, 10136, 10135]


def test_a_prediction_that_is_no_multiple_of_the_step_is_rounded_up() -> None:
    spec = SearchSpec(ample_bytes=65536, predicted_bytes=10129)
    assert [trial.arena_bytes for trial in search(lambda size: size >= 10136, spec)] == [65536, 10144, 10128]


def test_it_gallops_up_from_a_prediction_that_is_too_low() -> None:
    spec = SearchSpec(ample_bytes=65536, predicted_bytes=1024)
    trials = search(lambda size: size >= 1100, spec)
    assert [trial.arena_bytes for trial in trials[:5]] == [65536, 1024, 1040, 1072, 1136]
    assert result_of(trials, spec).min_bytes == 1104


def test_it_gallops_down_from_a_prediction_that_is_too_high() -> None:
    spec = SearchSpec(ample_bytes=65536, predicted_bytes=2048)
    trials = search(lambda size: size >= 1900, spec)
    assert [trial.arena_bytes for trial in trials[:6]] == [65536, 2048, 2032, 2000, 1936, 1808]
    assert result_of(trials, spec).min_bytes == 1904


@given(
    minimum=st.integers(1, 2_000_000),
    predicted=st.integers(0, 2_100_000),
    step=st.sampled_from([1, 16, 64]),
)
@example(minimum=1, predicted=0, step=16)
@example(minimum=2_000_000, predicted=0, step=1)
def test_every_minimum_is_found_in_the_promised_number_of_trials(minimum: int, predicted: int, step: int) -> None:
    spec = SearchSpec(ample_bytes=2_200_000 // 16 * 16, predicted_bytes=predicted, step_bytes=step)
    trials = search(lambda size: size >= minimum, spec)
    found = result_of(trials, spec)
    right = -(-minimum // step) * step
    assert found.min_bytes == right
    assert found.is_monotonic
    assert found.largest_failing_bytes in {right - step, None}
    error = abs(spec.start_bytes - right)
    assert len(trials) - 1 <= 2 + 2 * math.log2(max(1, error / step) + 1)


@given(minimum=st.integers(16, 100_000), predicted=st.integers(16, 100_000), cut=st.integers(0, 40))
def test_resuming_makes_the_same_trials(minimum: int, predicted: int, cut: int) -> None:
    spec = SearchSpec(ample_bytes=131072, predicted_bytes=predicted)
    whole = search(lambda size: size >= minimum, spec)
    assert search(lambda size: size >= minimum, spec, whole[:cut]) == whole


def test_a_failed_ample_run_ends_the_search() -> None:
    spec = SearchSpec(ample_bytes=65536, predicted_bytes=1024)
    trials = [Trial(65536, Outcome.ERROR, Reason.FAULT)]
    assert next_arena_bytes(trials, spec) is None
    assert result_of(trials, spec).min_bytes is None


def test_an_error_on_the_way_ends_the_search_without_a_minimum() -> None:
    spec = SearchSpec(ample_bytes=65536, predicted_bytes=1024)
    trials = [Trial(65536, WORKS), Trial(1024, Outcome.ERROR, Reason.LINK_LOST)]
    assert next_arena_bytes(trials, spec) is None
    assert result_of(trials, spec).min_bytes is None


def test_answers_that_are_not_monotonic_are_reported_and_the_minimum_lies_above_every_failure() -> None:
    """A device on which 1008 works and 1024 fails: the answer must hold above every size that was seen to fail."""
    spec = SearchSpec(ample_bytes=65536, predicted_bytes=2048)
    history = [Trial(65536, WORKS), Trial(1008, WORKS), Trial(1024, TOO_SMALL, Reason.FAULT)]
    trials = search(lambda size: size >= 1200, spec, history)
    result = result_of(trials, spec)
    assert result.min_bytes == 1200
    assert not result.is_monotonic
    assert Contradiction(failing_bytes=1024, working_bytes=1008) in result.contradictions
