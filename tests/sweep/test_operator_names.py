"""Names of operators that were cut on the wire."""

from __future__ import annotations

import pytest

from harness.sweep.measuring import whole_name

OPERATORS = ["ADD", "ADD_N", "SignalFilterBankSpectralSubtraction", "SignalFilterBankSquareRoot"]


@pytest.mark.parametrize(
    ("tag", "whole"),
    [
        ("ADD", "ADD"),
        ("SignalFilterBankSquareRo", "SignalFilterBankSquareRoot"),
        ("SignalFilterBankS", "SignalFilterBankS"),  # two begin so
        ("MUL", "MUL"),
    ],
)
def test_a_cut_name_is_that_of_the_only_operator_that_begins_so(tag: str, whole: str) -> None:
    assert whole_name(tag, OPERATORS) == whole
