"""Outputs compared: bit for bit, then by how much."""

from __future__ import annotations

import numpy as np
import pytest

from harness.record.schema import ReferenceRecord
from harness.reference.comparison import Agreement, Comparison, compare, worst_of


def int8(*values: int) -> bytes:
    return np.array(values, np.int8).tobytes()


def float32(*values: float) -> bytes:
    return np.array(values, np.float32).tobytes()


def test_equal_bytes_are_bit_exact_even_when_they_are_not_numbers() -> None:
    assert compare([float32(np.nan)], [float32(np.nan)], ["float32"]).agreement is Agreement.BIT_EXACT


def test_one_quantised_step_is_close_and_two_are_different() -> None:
    close = compare([int8(1, 2)], [int8(1, 3)], ["int8"])
    assert close == Comparison(Agreement.CLOSE, 1.0, 0.5, "steps")
    far = compare([int8(1, 2)], [int8(1, 4)], ["int8"])
    assert (far.agreement, far.max_difference) == (Agreement.DIFFERENT, 2.0)


def test_floats_are_compared_to_their_scale() -> None:
    assert compare([float32(1000.0)], [float32(1000.05)], ["float32"]).agreement is Agreement.CLOSE
    assert compare([float32(0.01)], [float32(0.06)], ["float32"]).agreement is Agreement.DIFFERENT


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_number_against_none_is_different(value: float) -> None:
    assert compare([float32(value)], [float32(1.0)], ["float32"]).agreement is Agreement.DIFFERENT


def test_other_shapes_are_different_without_a_number() -> None:
    result = compare([int8(1)], [int8(1, 2)], ["int8"])
    assert (result.agreement, result.max_difference) == (Agreement.DIFFERENT, None)


def test_the_tolerance_is_in_steps() -> None:
    assert compare([int8(1, 2)], [int8(1, 4)], ["int8"], 2).agreement is Agreement.CLOSE
    assert compare([int8(1, 2)], [int8(1, 3)], ["int8"], 0).agreement is Agreement.DIFFERENT
    assert compare([float32(1000.0)], [float32(1000.25)], ["float32"], 3).agreement is Agreement.CLOSE
    assert compare([float32(1000.0)], [float32(1000.25)], ["float32"], 2).agreement is Agreement.DIFFERENT


def test_several_inferences_are_as_good_as_the_worst() -> None:
    exact, close = Comparison(Agreement.BIT_EXACT, 0.0, 0.0), Comparison(Agreement.CLOSE, 1.0, 0.5, "steps")
    assert worst_of([exact, close]) == Comparison(Agreement.CLOSE, 1.0, 0.25, "steps")
    assert worst_of([close, Comparison(Agreement.DIFFERENT)]) == Comparison(Agreement.DIFFERENT)


@pytest.mark.parametrize(
    ("ours", "theirs", "dtypes", "text"),
    [
        ([int8(1)], [int8(2)], ["int8"], "1 step"),
        ([int8(1)], [int8(12)], ["int8"], "11 steps"),
        ([float32(0.5)], [float32(0.75)], ["float32"], "0.25"),
        ([int8(1), float32(0.5)], [int8(3), float32(0.5)], ["int8", "float32"], "2"),
        ([int8(1)], [int8(1, 2)], ["int8"], ""),
    ],
)
def test_a_difference_says_what_it_is_counted_in(
    ours: list[bytes], theirs: list[bytes], dtypes: list[str], text: str
) -> None:
    found = compare(ours, theirs, dtypes)
    record = ReferenceRecord("r", found.agreement.value, found.max_difference, unit=found.unit)
    assert record.largest == text
