from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from harness.lab.baseline import BaselineEntry, BaselineError, BaselineMetric, BaselineStore, Found
from harness.lab.limits import parse_limit
from harness.lab.metrics import METRICS
from harness.lab.suite import BaselineSettings, Tolerance
from harness.lab.verdict import Measured, Rules, allowed_deviation, judge
from harness.record.lab_run import ConditionsRecord, MetricRecord, MetricStatus

HERE = ConditionsRecord(
    kernels="cmsis_nn", tflm_commit="aaa", toolchain="gcc 12", optimise="Os", timing="cycles", clock_hz=216_000_000
)


def _judge(
    metric: str,
    value: int | None,
    baseline: int | None,
    *,
    limits: tuple[str, ...] = (),
    there: ConditionsRecord = HERE,
    missing: str = "warn",
    improved: str = "pass",
    history: tuple[int, ...] = (),
) -> MetricRecord:
    metrics = {} if baseline is None else {metric: BaselineMetric(value=baseline)}
    entry = BaselineEntry(conditions=there, metrics=metrics)
    settings = BaselineSettings(missing=missing, improved=improved)  # type: ignore[arg-type]
    rules = Rules(tuple(map(parse_limit, limits)), settings)
    return judge(Measured(METRICS[metric], value, HERE, history), rules, Found(entry))


@pytest.mark.parametrize(
    ("value", "status"),
    [(1000, MetricStatus.PASSED), (1001, MetricStatus.FAILED), (999, MetricStatus.IMPROVED)],
)
def test_bytes_are_exact(value: int, status: MetricStatus) -> None:
    assert _judge("arena_min_bytes", value, 1000).status is status


def test_a_few_bytes_more_are_told_with_both_numbers() -> None:
    message = _judge("arena_min_bytes", 12944, 12936).message
    assert message == "arena_min_bytes: 12,944, baseline 12,936: +8 (+0.06 %)"


def test_an_improvement_may_be_made_to_fail() -> None:
    assert _judge("arena_min_bytes", 999, 1000, improved="fail").status is MetricStatus.FAILED


NOISY = (100_000, 101_500, 98_700, 100_900, 99_100, 100_400)


@pytest.mark.parametrize(
    ("value", "history", "status"),
    [
        (101_900, (), MetricStatus.PASSED),  # within 2 %
        (102_100, (), MetricStatus.FAILED),
        (103_500, NOISY, MetricStatus.PASSED),  # within 4 σ of a rig that varies by 1 %
        (105_000, NOISY, MetricStatus.FAILED),
        (103_500, (*[800_000] * 24, *NOISY), MetricStatus.FAILED),  # a former level is no noise
        (800_000, (*[800_000] * 28, 100_000, 100_100), MetricStatus.FAILED),  # nor is one that two values have left
        (102_900, (100_000, 100_000, 101_500, 100_000, 100_000, 101_500) * 2, MetricStatus.PASSED),  # two states
        (103_500, NOISY[:4], MetricStatus.FAILED),  # four values say nothing about noise
        (97_000, (), MetricStatus.IMPROVED),
    ],
)
def test_times_may_differ_by_the_larger_of_percent_and_sigma(
    value: int, history: tuple[int, ...], status: MetricStatus
) -> None:
    assert _judge("invoke_cycles", value, 100_000, history=history).status is status


def test_the_largest_of_the_three_tolerances_counts() -> None:
    tolerance = Tolerance(relative_percent=1, absolute=50, sigma=2)
    assert allowed_deviation(1000, tolerance, ()) == 50
    assert allowed_deviation(100_000, tolerance, ()) == 1000
    assert allowed_deviation(1000, tolerance, (0, 200, 0, 200, 0, 200)) == pytest.approx(219.0890, abs=1e-3)


@pytest.mark.parametrize(
    ("metric", "there", "refusal"),
    [
        ("invoke_cycles", {"clock_hz": 180_000_000}, "clock: 216000000 here, 180000000 in the baseline"),
        ("invoke_cycles", {"optimise": "O3"}, "optimisation: Os here, O3 in the baseline"),
        ("invoke_cycles", {"timing": "instructions"}, "unit of the counter"),
        ("arena_min_bytes", {"step_bytes": 1}, "step of the search"),
        ("arena_used_bytes", {"interpreter": "preserve_all"}, "interpreter"),
    ],
)
def test_what_is_not_comparable_is_refused(metric: str, there: dict[str, object], refusal: str) -> None:
    record = _judge(metric, 1000, 1000, there=msgspec.structs.replace(HERE, **there))
    assert record.status is MetricStatus.FAILED
    assert "not comparable with its baseline" in record.message
    assert refusal in record.message
    assert record.baseline is None


def test_bytes_of_another_clock_are_comparable() -> None:
    other = msgspec.structs.replace(HERE, clock_hz=180_000_000, optimise="O3")
    assert _judge("arena_used_bytes", 1000, 1000, there=other).status is MetricStatus.PASSED


@pytest.mark.parametrize(
    ("missing", "status", "told"),
    [
        ("fail", MetricStatus.FAILED, True),
        ("warn", MetricStatus.NO_BASELINE, True),
        ("ignore", MetricStatus.NO_BASELINE, False),
    ],
)
def test_a_missing_baseline(missing: str, status: MetricStatus, told: bool) -> None:
    record = _judge("arena_min_bytes", 1000, None, missing=missing)
    assert record.status is status
    assert ("no baseline" in record.message) is told


@pytest.mark.parametrize(
    ("missing", "status", "told"),
    [
        ("fail", MetricStatus.FAILED, True),
        ("warn", MetricStatus.NO_BASELINE, True),
        ("ignore", MetricStatus.NO_BASELINE, False),
    ],
)
def test_a_limit_that_holds_does_not_stand_in_for_the_baseline(missing: str, status: MetricStatus, told: bool) -> None:
    record = _judge("arena_min_bytes", 1000, None, missing=missing, limits=("arena_min_bytes <= 1000",))
    assert record.status is status
    assert ("no baseline" in record.message) is told


@pytest.mark.parametrize(
    ("missing", "status"),
    [("fail", MetricStatus.FAILED), ("warn", MetricStatus.NO_BASELINE), ("ignore", MetricStatus.NO_BASELINE)],
)
def test_a_limit_against_a_baseline_that_is_not_there_is_told(missing: str, status: MetricStatus) -> None:
    """Under ``ignore`` it passed without a word: nothing had been checked."""
    limits = ("arena_min_bytes <= 4KiB", "arena_min_bytes <= baseline + 2%")
    record = _judge("arena_min_bytes", 1000, None, missing=missing, limits=limits)
    assert (record.status, record.message) == (
        status,
        "arena_min_bytes: no baseline, so the limit arena_min_bytes <= baseline + 2% cannot be checked: "
        "harness baseline update",
    )


def test_without_baselines_only_limits_of_their_own_count() -> None:
    """As in a comparison of two TFLM libraries."""
    limits = tuple(map(parse_limit, ("arena_min_bytes <= 4KiB", "arena_min_bytes <= baseline")))
    for value, status in ((4096, MetricStatus.PASSED), (4097, MetricStatus.FAILED)):
        record = judge(Measured(METRICS["arena_min_bytes"], value, HERE), Rules(limits, None), Found(None))
        assert record.status is status
    relative = Rules(tuple(map(parse_limit, ("stack_used_bytes <= baseline",))), None)
    record = judge(Measured(METRICS["stack_used_bytes"], None, HERE), relative, Found(None))
    assert record.status is MetricStatus.NOT_MEASURED


def test_the_noise_of_bytes_is_refused_in_a_baseline_too(tmp_path: Path) -> None:
    store = BaselineStore(tmp_path)
    metric = BaselineMetric(value=1000, tolerance=Tolerance(sigma=4))
    store.put("kws", "host", BaselineEntry(conditions=HERE, metrics={"invoke_cycles": metric}))
    assert BaselineStore(tmp_path).find("kws", "host", HERE).entry is not None
    store.put("kws", "host", BaselineEntry(conditions=HERE, metrics={"arena_min_bytes": metric}))
    with pytest.raises(BaselineError, match=r"kws--host\.json: arena_min_bytes: sigma is for times"):
        BaselineStore(tmp_path).find("kws", "host", HERE)


def test_a_limit_comes_before_the_baseline() -> None:
    record = _judge("arena_min_bytes", 1000, 1000, limits=("arena_min_bytes <= 999",))
    assert record.status is MetricStatus.FAILED
    assert record.message == "arena_min_bytes: 1,000 breaks the limit arena_min_bytes <= 999"


def test_what_was_not_measured_fails_only_where_it_must_be_checked() -> None:
    assert _judge("stack_used_bytes", None, None).status is MetricStatus.NOT_MEASURED
    assert _judge("stack_used_bytes", None, 512).status is MetricStatus.FAILED
    assert _judge("stack_used_bytes", None, None, limits=("stack_used_bytes <= 4096",)).status is MetricStatus.FAILED
