from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.lab.history.trend import exact_changes, noisy_changes, since_last_change, spread


def _noisy(levels: list[tuple[float, int]], sigma: float, seed: int) -> list[float]:
    source = random.Random(seed)
    return [level + source.gauss(0, sigma) for level, count in levels for _ in range(count)]


def test_every_change_of_bytes_is_a_change() -> None:
    found = exact_changes([100, 100, 116, 116, 100])
    assert [(change.index, change.before, change.after) for change in found] == [(2, 100, 116), (4, 116, 100)]
    assert found[0].percent == 16


@pytest.mark.parametrize("seed", range(20))
def test_a_step_of_three_percent_is_found_in_noise_of_half_a_percent(seed: int) -> None:
    values = _noisy([(100_000, 40), (103_000, 40)], 500, seed)
    (change,) = noisy_changes(values)
    assert abs(change.index - 40) <= 1
    assert change.percent == pytest.approx(3, abs=0.5)


def test_steps_up_and_down_are_found() -> None:
    values = _noisy([(1000, 30), (1100, 20), (900, 30)], 10, seed=3)
    assert [change.index for change in noisy_changes(values)] == [30, 50]


def test_noise_alone_is_hardly_ever_a_change() -> None:
    alarms = sum(bool(noisy_changes(_noisy([(100_000, 80)], 500, seed))) for seed in range(200))
    assert alarms <= 6


def test_one_outlier_is_no_level() -> None:
    assert noisy_changes([1000, 1001, 999, 1000, 1400, 1000, 1001, 999, 1000, 1001]) == []


def test_a_step_without_any_noise_is_found() -> None:
    assert [change.index for change in noisy_changes([5000.0] * 6 + [5001.0] * 6)] == [6]


def test_equal_values_do_not_change() -> None:
    assert noisy_changes([123_456_789.0] * 50) == []
    assert noisy_changes([]) == noisy_changes([1.0]) == exact_changes([]) == []


@pytest.mark.parametrize("seed", range(5))
def test_a_step_is_no_spread(seed: int) -> None:
    """The deviation of noise of 20 is about 20, whatever steps there were, and however short ago."""
    for levels in (
        [(1000.0, 30)],
        [(8000.0, 20), (1000.0, 10)],
        [(8000.0, 28), (1000.0, 2)],
        [(1000.0, 29), (8000.0, 1)],
    ):
        assert 10 < spread(_noisy(levels, 20, seed)) < 35
    assert spread([5.0]) == spread([5.0, 5.0]) == 0


def test_the_level_that_came_last_is_what_remains() -> None:
    assert since_last_change([9, 9, 9, 9, 5, 5, 5]) == [5, 5, 5]
    assert since_last_change([9, 9, 9]) == [9, 9, 9]
    assert since_last_change([]) == []


@given(st.lists(st.integers(0, 10**12), max_size=60))
def test_changes_are_in_order_and_inside(values: list[int]) -> None:
    indices = [change.index for change in noisy_changes(values)]
    assert indices == sorted(set(indices))
    assert all(3 <= index <= len(values) - 3 for index in indices)
