"""A lab run as Markdown, for a merge request or a job's summary page."""

from __future__ import annotations

import re

from harness.record.lab_run import JobRecord, JobStatus, MetricRecord, MetricStatus, RunRecord
from harness.record.upgrade import UpgradeRecord
from harness.report import upgrade_text
from harness.units import counted, safe_text

#: Worst first.
ORDER = (
    JobStatus.FAILED,
    JobStatus.ERROR,
    JobStatus.BLOCKED,
    JobStatus.FLAKY,
    JobStatus.SKIPPED,
    JobStatus.PASSED,
)
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~$&@])")


def markdown(run: RunRecord) -> str:
    """What needs a look first, then every number."""
    counts = ", ".join(f"{run.count(status)} {status.value}" for status in ORDER if run.count(status))
    lines = [f"## Lab run {_text(run.suite)}: {counts or 'no jobs'}", ""]
    lines.append(
        f"{_text(run.run_id)}, {run.seconds:.0f} s on {counted(len(run.rigs), 'rig')}, harness {run.harness_version}"
    )
    lines += [f"- rig **{_text(rig.name)}** was benched: {_text(rig.benched)}" for rig in run.rigs if rig.benched]
    lines += [f"- {_text(note)}" for note in run.notes]
    worse = [job for status in ORDER[:-1] for job in run.jobs if job.status is status]
    if worse:
        lines += ["", "| job | rig | status | reason | what to do |", "|---|---|---|---|---|"]
        lines += [
            f"| {_text(job.id)} | {_text(job.rig or '–')} | {job.status.value} | {_text(job.reason)} "
            f"| {_text(job.remedy)} |"
            for job in worse
        ]
    for record in run.upgrades:
        lines += _upgrade(record)
    rows = [_row(job, metric) for job in run.jobs for metric in job.metrics]
    if rows:
        lines += ["", "<details><summary>All numbers</summary>", ""]
        lines += ["| job | metric | value | baseline | difference | |", "|---|---|--:|--:|--:|---|", *rows]
        lines += ["", "</details>"]
    return "\n".join(lines) + "\n"


def _upgrade(record: UpgradeRecord) -> list[str]:
    """What a new TFLM changes for one model."""
    lines = ["", f"### {_cell(upgrade_text.heading(record))}"]
    if not record.problem:
        lines += ["", f"| {' | '.join(upgrade_text.COLUMNS)} |", "|---|--:|--:|--:|---|"]
        lines += [
            f"| {' | '.join(map(_cell, (row.what, row.before, row.after, row.difference, row.why)))} |"
            for row in upgrade_text.rows(record)
        ]
    return [*lines, *(line for remark in upgrade_text.remarks(record) for line in ("", _cell(remark)))]


def _row(job: JobRecord, metric: MetricRecord) -> str:
    difference = ""
    if metric.value is not None and metric.baseline is not None:
        difference = f"{metric.value - metric.baseline:+,}"
    status = "" if metric.status is MetricStatus.PASSED else metric.status.value.replace("_", " ")
    cells = (_text(job.id), metric.name, _number(metric), _value(metric.baseline), difference, status)
    return f"| {' | '.join(cells)} |"


def _number(metric: MetricRecord) -> str:
    return f"{_value(metric.value)} {metric.unit}" if metric.value is not None else "–"


def _value(value: float | int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _text(text: str) -> str:
    """Names are hostile: no markup, no line break, no mention."""
    return _cell(safe_text(text, 300).replace("\\\\", "\\"))


def _cell(text: str) -> str:
    """What is fit to print, without markup."""
    return _SPECIAL.sub(r"\\\1", text)
