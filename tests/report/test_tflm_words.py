"""TFLM's misleading lines, explained (cases A05 to A07)."""

from __future__ import annotations

import pytest

from harness.report.tflm_words import meaning_of


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("Too many buffers (max is 0)", "the planner's own table does not fit in what is left of the arena"),
        ("Needed 4294960256 but only 1000 was available", "4294960256 is -7,040, printed without its sign"),
        ("Failed to resize buffer. Requested: 55296, available 10256, missing: 45040", "live in the head do not fit"),
        ("Failed to allocate tail memory. Requested: 24, available 16, missing: 8", "a persistent allocation"),
    ],
)
def test_a_misleading_line_is_explained(text: str, meaning: str) -> None:
    assert meaning in meaning_of(text)


def test_to_a_clear_line_nothing_is_added() -> None:
    assert meaning_of("Hybrid models are not supported on TFLite Micro.") == ""
