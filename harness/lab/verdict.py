"""The verdict on one number: against its limits, and against its baseline within the tolerance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.lab.baseline import BaselineEntry, Found
from harness.lab.conditions import differences
from harness.lab.history.trend import spread
from harness.lab.limits import Limit
from harness.lab.metrics import METRICS, Kind, Metric, Number
from harness.lab.suite import BaselineSettings, Tolerance
from harness.record.lab_run import ConditionsRecord, MetricRecord, MetricStatus

#: Bytes are exact; times vary: 2 % covers what flash caches and interrupts do on one board.
DEFAULT_TOLERANCES = {
    Kind.ARENA: Tolerance(),
    Kind.SEARCH: Tolerance(),
    Kind.MEMORY: Tolerance(),
    Kind.TIMING: Tolerance(relative_percent=2.0, sigma=4.0),
}
#: Fewer values of a rig's past than this say nothing about its noise.
MIN_HISTORY = 5


@dataclass(frozen=True, slots=True)
class Measured:
    """What a job measured of one metric. ``history``: the same rig's earlier values of the same model file under the
    same conditions, oldest first."""

    metric: Metric
    value: Number | None
    conditions: ConditionsRecord
    history: Sequence[Number] = ()
    model_sha256: str = ""


@dataclass(frozen=True, slots=True)
class Rules:
    """What is held against a number. ``settings`` None: no baseline, and no limit that is relative to one."""

    limits: tuple[Limit, ...]
    settings: BaselineSettings | None
    tolerance: Tolerance | None = None


def allowed_deviation(baseline: Number, tolerance: Tolerance, history: Sequence[Number]) -> float:
    """In the metric's unit: the largest of absolute, relative, and k·σ of the rig's own history."""
    sigma = spread(history) if len(history) >= MIN_HISTORY else 0.0
    return max(tolerance.absolute, abs(baseline) * tolerance.relative_percent / 100, tolerance.sigma * sigma)


def judge(measured: Measured, rules: Rules, found: Found) -> MetricRecord:
    """The first thing that is wrong decides; a limit comes before the baseline."""
    limits = _limits(measured, rules)
    baseline, refusal = _comparable(measured, found)
    if measured.value is None:
        wanted = [limit.text for limit in limits] or (["the baseline"] if baseline is not None else [])
        if wanted:
            return _record(
                measured, MetricStatus.FAILED, f"was not measured, but {wanted[0]} must be checked", baseline
            )
        return _record(measured, MetricStatus.NOT_MEASURED, "this board cannot tell it", None)
    for limit in limits:
        bound = limit.bound(baseline)
        if bound is not None and not limit.holds(measured.value, bound):
            bound_text = f" (= {_number(bound)})" if limit.relative else ""
            text = f"{_number(measured.value)} breaks the limit {limit.text}{bound_text}"
            return _record(measured, MetricStatus.FAILED, text, baseline)
    if refusal:
        return _record(measured, MetricStatus.FAILED, f"not comparable with its baseline: {refusal}", None)
    if rules.settings is None:
        return _record(measured, MetricStatus.PASSED, "", None)
    if baseline is None:
        return _without_baseline(measured, rules, rules.settings, found)
    return _compare(measured, rules, rules.settings, found, baseline)


def _comparable(measured: Measured, found: Found) -> tuple[Number | None, str]:
    """The baseline's value; or None and why it must not be compared."""
    entry = found.entry
    if entry is None or measured.metric.name not in entry.metrics:
        return None, ""
    unlike = differences(measured.metric.kind, measured.conditions, entry.conditions)
    if unlike:
        return None, "; ".join(map(str, unlike))
    return entry.metrics[measured.metric.name].value, ""


def _without_baseline(measured: Measured, rules: Rules, settings: BaselineSettings, found: Found) -> MetricRecord:
    why = "no baseline"
    if found.nearest:
        unlike = differences(measured.metric.kind, measured.conditions, found.nearest.conditions)
        why += f" for these conditions ({'; '.join(map(str, unlike))})" if unlike else ""
    unchecked = [limit.text for limit in _limits(measured, rules) if limit.relative]
    why += f", so the limit {unchecked[0]} cannot be checked" if unchecked else ""
    # a limit that holds does not stand in for the baseline: a misspelt folder must not keep a night green
    failed = settings.missing == "fail"
    told = unchecked or settings.missing != "ignore"
    text = f"{why}: harness baseline update" if told else ""
    return _record(measured, MetricStatus.FAILED if failed else MetricStatus.NO_BASELINE, text, None)


def _limits(measured: Measured, rules: Rules) -> list[Limit]:
    named = [limit for limit in rules.limits if limit.metric == measured.metric.name]
    return [limit for limit in named if not limit.relative] if rules.settings is None else named


def _compare(
    measured: Measured, rules: Rules, settings: BaselineSettings, found: Found, baseline: Number
) -> MetricRecord:
    assert measured.value is not None
    assert found.entry is not None
    tolerance = _tolerance(measured.metric, rules, found.entry)
    allowed = allowed_deviation(baseline, tolerance, measured.history)
    difference = measured.value - baseline
    if abs(difference) <= allowed:
        return _record(measured, MetricStatus.PASSED, "", baseline, allowed)
    text = f"{_number(measured.value)}, baseline {_number(baseline)}: {_signed(difference, baseline)}"
    if allowed:
        text += f", allowed ±{_number(allowed)}"
    if found.entry.model_sha256 and measured.model_sha256 not in {"", found.entry.model_sha256}:
        # a model that was trained anew keeps its baseline: what changed is told, not refused
        text += f" (that of another model file, sha256 {found.entry.model_sha256[:12]})"
    if difference > 0:
        return _record(measured, MetricStatus.FAILED, text, baseline, allowed)
    status = MetricStatus.FAILED if settings.improved == "fail" else MetricStatus.IMPROVED
    return _record(measured, status, f"better than the baseline: {text}: harness baseline update", baseline, allowed)


def _tolerance(metric: Metric, rules: Rules, entry: BaselineEntry) -> Tolerance:
    return rules.tolerance or entry.metrics[metric.name].tolerance or DEFAULT_TOLERANCES[metric.kind]


def is_timing_only(records: Iterable[MetricRecord]) -> bool:
    """Whether nothing failed but times, which another try may measure otherwise."""
    failed = [record for record in records if record.status is MetricStatus.FAILED]
    return bool(failed) and all(
        METRICS[record.name].kind is Kind.TIMING and record.value is not None for record in failed
    )


def _record(
    measured: Measured, status: MetricStatus, message: str, baseline: Number | None, allowed: float | None = None
) -> MetricRecord:
    return MetricRecord(
        name=measured.metric.name,
        unit=measured.metric.unit,
        value=measured.value,
        status=status,
        message=f"{measured.metric.name}: {message}" if message else "",
        baseline=baseline,
        tolerance=allowed,
    )


def _number(value: Number) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}" if value < 1e6 else f"{value:,.0f}"


def _signed(difference: Number, baseline: Number) -> str:
    percent = f" ({100 * difference / baseline:+.2f} %)" if baseline else ""
    return f"{difference:+,.6g}{percent}" if isinstance(difference, float) else f"{difference:+,}{percent}"
