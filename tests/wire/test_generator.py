"""Inputs from a seed: the same on both sides."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.wire.generator import digest, generate_input, pattern_of, random_words


def test_splitmix64_gives_its_published_first_number() -> None:
    """Seed 1234567 of the reference implementation gives 6457827717110365317 first (state = seed, one step)."""
    from harness.wire.generator import INPUT_GAMMA

    seed = (1234567 - INPUT_GAMMA) % 2**64
    assert random_words(seed, 0, 2) == [6457827717110365317, 3203168211198807973]


@given(st.integers(0, 2**64 - 1), st.integers(0, 20), st.integers(0, 40))
def test_the_fast_path_gives_the_same_words(seed: int, index: int, count: int) -> None:
    assert generate_input(seed, index, 9, count) == bytes(word & 0xFF for word in random_words(seed, index, count))


def test_a_large_input_is_one_stream_across_blocks() -> None:
    count = (1 << 20) + 3
    assert generate_input(7, 0, 9, count)[-3:] == bytes(word & 0xFF for word in random_words(7, 0, count)[-3:])


def test_floats_lie_in_minus_one_to_one() -> None:
    values = np.frombuffer(generate_input(1, 0, 0, 10_000), np.float32)
    assert values.min() >= -1.0
    assert values.max() < 1.0
    assert abs(values.mean()) < 0.05


def test_indices_are_zero_or_one() -> None:
    assert set(np.frombuffer(generate_input(1, 0, 2, 1000), np.int32)) == {0, 1}


def test_fnv_gives_its_published_values() -> None:
    assert digest(b"") == 0xCBF29CE484222325
    assert digest(b"foobar") == 0x85944171F73967E8
    assert digest(b"foo", b"bar") == digest(b"foobar")


def test_a_fill_value_out_of_range_is_refused() -> None:
    assert pattern_of(2.0, 0) == b"\x00\x00\x00\x40"
    assert pattern_of(-3, 9) == b"\xfd"
    with pytest.raises(ValueError, match="outside the range"):
        pattern_of(300, 9)
