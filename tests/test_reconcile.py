"""Plan against measurement: every byte of difference is explained or counted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ExitCode, UsageError
from harness.estimates import MeasuredMinimum, compare_estimates, read_estimates
from harness.reconcile import (
    REST_OF_TAIL,
    Agreement,
    CategoryBytes,
    MeasuredArena,
    PlannedArena,
    reconcile,
)

#: hello_world-like numbers of the recording interpreter.
CATEGORIES = {
    "TfLiteEvalTensor data": CategoryBytes(120, 120, 10),
    "Persistent TfLiteTensor data": CategoryBytes(64, 64, 2),
    "Persistent buffer data": CategoryBytes(224, 265, 5),
    "NodeAndRegistration struct": CategoryBytes(96, 96, 3),
}
PLANNED = PlannedArena(
    used_bytes=868,
    head_bytes=32,
    tail_bytes=836,
    min_exact_bytes=1260,
    exact=True,
    categories=CATEGORIES,
    struct_sizes={"TfLiteEvalTensor": 12, "TfLiteTensor": 32},
    tflm_commit="90b983c2b3f1480642e040bbd2ddb37b998f3424",
)
MEASURED = MeasuredArena(
    used_bytes=868,
    head_bytes=32,
    tail_bytes=836,
    min_bytes=1264,
    largest_failing_bytes=1248,
    step_bytes=16,
    categories=CATEGORIES,
    struct_sizes={"TfLiteEvalTensor": 12, "TfLiteTensor": 32},
    tflm_commit="90b983c",
)


def test_an_exact_plan_leaves_nothing_unexplained() -> None:
    result = reconcile(PLANNED, MEASURED)
    assert result.unexplained_bytes == 0
    assert result.agrees
    assert result.advice == ()
    assert {term.agreement for term in result.terms} == {Agreement.EQUAL}
    assert [term.name for term in result.terms] == [
        "used",
        "tail",
        "head",
        "TfLiteEvalTensor data",
        "Persistent TfLiteTensor data",
        "Persistent buffer data",
        "NodeAndRegistration struct",
        REST_OF_TAIL,
        "min",
    ]


def test_the_minimum_is_compared_at_the_step_of_the_search() -> None:
    minimum = reconcile(PLANNED, replace(MEASURED, min_bytes=1260, largest_failing_bytes=1259, step_bytes=1)).terms[-1]
    assert (minimum.planned_bytes, minimum.measured_bytes, minimum.agreement) == (1260, 1260, Agreement.EQUAL)
    assert reconcile(PLANNED, MEASURED).terms[-1].planned_bytes == 1264


def test_a_difference_in_the_head_is_counted_once() -> None:
    result = reconcile(PLANNED, replace(MEASURED, used_bytes=884, head_bytes=48))
    by_name = {term.name: term for term in result.terms}
    assert result.unexplained_bytes == 16
    assert by_name["head"].agreement is Agreement.UNEXPLAINED
    assert (by_name["used"].agreement, by_name["used"].explanation) == (
        Agreement.EXPLAINED,
        "the sum of the terms below",
    )


def test_another_struct_size_is_named_with_its_count() -> None:
    bigger = dict(CATEGORIES) | {"TfLiteEvalTensor data": CategoryBytes(160, 160, 10)}
    sizes = {"TfLiteEvalTensor": 16, "TfLiteTensor": 32}
    result = reconcile(
        PLANNED, replace(MEASURED, used_bytes=908, tail_bytes=876, categories=bigger, struct_sizes=sizes)
    )
    term = next(term for term in result.terms if term.name == "TfLiteEvalTensor data")
    assert term.explanation == "sizeof(TfLiteEvalTensor) is 16 in the firmware, 12 in the plan, × 10"
    assert term.difference_bytes == 40
    assert result.unexplained_bytes == 0


def test_bytes_that_the_categories_do_not_show_are_a_term_of_their_own() -> None:
    result = reconcile(PLANNED, replace(MEASURED, used_bytes=876, tail_bytes=844))
    term = next(term for term in result.terms if term.name == REST_OF_TAIL)
    assert (term.planned_bytes, term.measured_bytes, term.unexplained_bytes) == (291, 299, 8)
    assert result.unexplained_bytes == 8


def test_a_device_that_only_tells_used_is_compared_by_used() -> None:
    plain = MeasuredArena(used_bytes=900, min_bytes=1264, largest_failing_bytes=1248)
    result = reconcile(PLANNED, plain)
    assert [(t.name, t.unexplained_bytes) for t in result.terms] == [("used", 32), ("min", 0)]


def test_what_was_not_measured_is_not_claimed() -> None:
    result = reconcile(PLANNED, MeasuredArena(used_bytes=None))
    assert [(t.name, t.agreement) for t in result.terms] == [
        ("used", Agreement.NOT_MEASURED),
        ("min", Agreement.NOT_MEASURED),
    ]
    assert result.unexplained_bytes == 0


def test_a_minimum_that_moves_with_used_follows_from_it() -> None:
    result = reconcile(PLANNED, MeasuredArena(used_bytes=884, min_bytes=1280, largest_failing_bytes=1264))
    assert result.terms[-1].explanation == "follows from the difference in used"
    assert result.unexplained_bytes == 16


def test_a_search_that_only_bounded_the_minimum_cannot_contradict_within_its_bounds() -> None:
    bounded = MeasuredArena(used_bytes=868, min_bytes=2048, largest_failing_bytes=1024)
    assert reconcile(PLANNED, bounded).terms[-1].agreement is Agreement.NOT_MEASURED
    low = reconcile(PLANNED, replace(bounded, min_bytes=1200)).terms[-1]
    assert (low.agreement, low.unexplained_bytes) == (Agreement.UNEXPLAINED, 64)
    high = reconcile(PLANNED, replace(bounded, largest_failing_bytes=1500)).terms[-1]
    assert (high.agreement, high.unexplained_bytes) == (Agreement.UNEXPLAINED, 1500 - 1264 + 1)


def test_advice_names_what_differs() -> None:
    planned = replace(PLANNED, reasons=("no rule for MY_OP",))
    other = replace(MEASURED, used_bytes=1000, head_bytes=164, tflm_commit="8f6596d", struct_sizes={"TfLiteTensor": 36})
    assert reconcile(planned, other).advice == (
        "the plan is an estimate: no rule for MY_OP",
        "the plan is for TFLM 90b983c2b3f1, the device runs 8f6596d",
        "sizeof(TfLiteTensor): 32 in the plan, 36 in the firmware: plan with --abi-from RECORD",
    )


@given(st.integers(0, 4000), st.integers(0, 4000), st.integers(0, 4000), st.integers(0, 4000))
def test_unexplained_bytes_are_the_differences_of_head_and_tail(h1: int, t1: int, h2: int, t2: int) -> None:
    planned = replace(PLANNED, head_bytes=h1, tail_bytes=t1, used_bytes=h1 + t1, categories={})
    measured = MeasuredArena(used_bytes=h2 + t2, head_bytes=h2, tail_bytes=t2)
    result = reconcile(planned, measured)
    assert result.unexplained_bytes == abs(h1 - h2) + abs(t1 - t2)
    assert result.to_document()["unexplained_bytes"] == result.unexplained_bytes


# --- outside estimates ------------------------------------------------------------------------------------------------

MINIMA = [
    MeasuredMinimum("a.tflite", "aa", "host", "reference", 1000),
    MeasuredMinimum("b.tflite", "bb", "host", "reference", 2000),
    MeasuredMinimum("b.tflite", "bb", "nucleo-f746zg", "cmsis_nn", 2500),
]


def test_errors_per_tool_with_under_estimates_apart(tmp_path: Path) -> None:
    path = tmp_path / "estimates.csv"
    path.write_text(
        "tool,model,bytes,board\nscope,a.tflite,1000,\nscope,models/b.tflite,1500,host\nrule,a,1100,\nrule,c.tflite,5,\n",
        encoding="utf-8",
    )
    report = compare_estimates(read_estimates(path), MINIMA)
    scope, rule = report.tools
    assert (scope.tool, scope.count, scope.exact, scope.under_estimates) == ("scope", 2, 1, 1)
    assert (scope.mean_abs_percent, scope.median_abs_percent) == (12.5, 12.5)
    assert scope.worst.error_percent == -25.0
    assert scope.worst_under is not None and scope.worst_under.error_bytes == -500
    assert (rule.count, rule.mean_abs_percent, rule.under_estimates, rule.worst_under) == (1, 10.0, 0, None)
    assert [estimate.model for estimate in report.unmatched] == ["c.tflite"]


def test_an_estimate_without_board_is_held_against_each_board() -> None:
    from harness.estimates import Estimate

    report = compare_estimates([Estimate("t", "bb", 2500)], MINIMA)
    assert [comparison.error_bytes for comparison in report.comparisons] == [500, 0]
    assert [
        c.error_bytes for c in compare_estimates([Estimate("t", "b", 2500, "", "cmsis_nn")], MINIMA).comparisons
    ] == [0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tool,model\nx,y\n", 'no column bytes; found: "tool", "model"'),
        ("tool,model,bytes\nx,y,12k\n", 'line 2: "12k" is not a number of bytes'),
        ("tool,model,bytes\nx,y,-4\n", "is not a number of bytes"),
        ("tool,model,bytes\n,y,4\n", "line 2: tool or model is empty"),
        ("tool,model,bytes\nx,y,12,936\n", "line 2: more cells than columns"),
        ("", "no column tool and no column model and no column bytes; found: none"),
    ],
)
def test_a_bad_estimates_file_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "estimates.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        read_estimates(path)
    assert message in caught.value.message
    assert caught.value.exit_code is ExitCode.USAGE


def test_an_estimates_file_that_is_missing_or_binary_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_estimates(tmp_path / "none.csv")
    (tmp_path / "x.csv").write_bytes(b"tool,model,bytes\n\xff\xfe,a,1\n")
    with pytest.raises(UsageError, match="not a CSV text file"):
        read_estimates(tmp_path / "x.csv")
