"""A lab run on the terminal: one row per metric, and what needs a look."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from harness.record.lab_run import JobRecord, JobStatus, MetricRecord, MetricStatus, RunRecord
from harness.report.upgrade_table import upgrade_report
from harness.units import counted, safe_text

STYLES = {
    JobStatus.PASSED: "green",
    JobStatus.FAILED: "bold red",
    JobStatus.ERROR: "red",
    JobStatus.FLAKY: "yellow",
    JobStatus.SKIPPED: "dim",
    JobStatus.BLOCKED: "magenta",
}


def run_report(run: RunRecord, record_path: str) -> list[RenderableType]:
    """Table of numbers, reasons, rigs, one line of counts."""
    parts: list[RenderableType] = [_numbers(run)]
    parts += [
        Text.assemble((job.status.value, STYLES[job.status]), f" {safe_text(f'{job.id}: {job.reason}', 600)}")
        for job in run.jobs
        if job.reason and job.status is not JobStatus.PASSED
    ]
    parts += [Text(f"  {safe_text(job.id)}: {safe_text(job.remedy, 400)}") for job in run.jobs if job.remedy]
    for job in run.jobs:
        parts += [
            Text(f"{metric.status.value.replace('_', ' ')} {safe_text(job.id)}: {safe_text(metric.message, 400)}")
            for metric in job.metrics
            if metric.status in {MetricStatus.IMPROVED, MetricStatus.NO_BASELINE} and metric.message
        ]
    parts += upgrade_report(run.upgrades)
    for rig in run.rigs:
        used = f" busy {100 * rig.busy_s / run.seconds:.0f} %" if run.seconds and rig.attempts else ""
        if rig.benched:
            parts.append(Text(f"rig {rig.name}: benched: {safe_text(rig.benched, 400)}", style="red"))
        else:
            did = f"{counted(rig.jobs, 'job')}, {counted(rig.attempts, 'attempt')}"
            parts.append(Text(f"rig {rig.name} ({rig.board}): {did}{used}"))
    parts += [Text(safe_text(note, 400), style="yellow") for note in run.notes]
    parts.append(Text(f"{counts(run)} in {run.seconds:.1f} s; record: {record_path}"))
    return parts


def counts(run: RunRecord) -> str:
    """``4 passed, 1 failed``; ``no jobs``."""
    return ", ".join(f"{run.count(s)} {s.value}" for s in JobStatus if run.count(s)) or "no jobs"


def _numbers(run: RunRecord) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("job", "rig", "metric"):
        table.add_column(column, overflow="fold")
    for column in ("value", "baseline", "difference"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("status")
    for job in run.jobs:
        if not job.metrics:
            table.add_row(Text(safe_text(job.id)), job.rig or "–", "", "", "", "", _status(job))
        for at, metric in enumerate(job.metrics):
            first = at == 0
            table.add_row(
                Text(safe_text(job.id)) if first else "",
                Text(job.rig) if first else "",
                metric.name,
                *_cells(metric),
                _status(job) if first else Text(_word(metric)),
            )
    return table


def _status(job: JobRecord) -> Text:
    return Text(job.status.value, style=STYLES[job.status])


def _word(metric: MetricRecord) -> str:
    return "" if metric.status is MetricStatus.PASSED else metric.status.value.replace("_", " ")


def _cells(metric: MetricRecord) -> tuple[str, str, str]:
    value = "–" if metric.value is None else f"{metric.value:,} {metric.unit}"
    if metric.baseline is None or metric.value is None:
        return value, "–", ""
    return value, f"{metric.baseline:,}", f"{metric.value - metric.baseline:+,}"
