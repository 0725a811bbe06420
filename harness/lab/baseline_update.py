"""From a finished run to new baselines: what would change, and what must not be taken over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from harness.errors import UsageError
from harness.lab.baseline import BaselineEntry, BaselineMetric, BaselineStore, Change, changes
from harness.lab.conditions import differences, key_of
from harness.lab.job import ModelFile
from harness.lab.metrics import METRICS, Kind, Number
from harness.lab.run_folder import read_run
from harness.record.lab_run import JobRecord, RunRecord
from harness.units import quoted, safe_text


@dataclass(frozen=True, slots=True)
class Proposal:
    """The numbers of one model on one board, from one or several jobs of a run."""

    model: str
    board: str
    entry: BaselineEntry


@dataclass(frozen=True, slots=True)
class Refusal:
    """Jobs whose numbers make no baseline, and why."""

    job_id: str
    why: str


def latest_run(runs: Path, suite: str, suite_path: Path) -> RunRecord:
    """The newest finished run of the suite in this file: another file's suite may have the same name. Raises UsageError
    where there is none."""
    others: dict[str, None] = {}
    for path in sorted(runs.glob("*/run.json"), reverse=True):
        run = read_run(path)
        if run.suite != suite:
            continue
        if _suite_file(run) == suite_path.resolve():
            return run
        others[run.suite_file or run.suite_path] = None
    told = f"; those there are of {', '.join(others)}" if others else ""
    remedy = "run it first: harness regress SUITE" + (", or name one with --run" if others else "")
    raise UsageError(f"no run of suite {suite} is finished in {runs}{told}", remedy=remedy)


def _suite_file(run: RunRecord) -> Path:
    """A run of another computer, or of a checkout that is gone, is of the file of the same relative path here."""
    file = Path(run.suite_file)
    return file if run.suite_file and file.exists() else Path(run.suite_path).resolve()


def proposals(run: RunRecord, models: Mapping[str, ModelFile]) -> tuple[list[Proposal], list[Refusal]]:
    """Jobs of one model, board and key are put together: repeats, and rigs of one type. ``models``: the suite's, as
    they are now, by name."""
    groups: dict[tuple[object, ...], list[JobRecord]] = {}
    refused = []
    for job in run.jobs:
        if job.tflm:
            refused.append(Refusal(job.id, "it belongs to a comparison of TFLM libraries"))
        elif why := _other_model(job, models.get(job.model)):
            refused.append(Refusal(job.id, why))
        elif any(metric.value is not None for metric in job.metrics):
            groups.setdefault((job.model, job.board, key_of(job.conditions)), []).append(job)
        else:
            refused.append(Refusal(job.id, f"{job.status.value}: {job.reason}"))
    found = []
    for jobs in groups.values():
        why = _disagreement(jobs)
        if why:
            refused.append(Refusal(jobs[0].id, why))
        else:
            found.append(Proposal(jobs[0].model, jobs[0].board, _entry(jobs)))
    return found, refused


def all_changes(store: BaselineStore, found: Iterable[Proposal]) -> list[Change]:
    """What an update would change, the unchanged left out."""
    return [
        change
        for proposal in found
        for change in changes(store, proposal.model, proposal.board, proposal.entry)
        if change.is_change
    ]


def _other_model(job: JobRecord, model: ModelFile | None) -> str:
    """Why the job's numbers are not those of the suite's model; "" when they are."""
    if model is None:
        return f"the suite has no model {quoted(job.model)}"
    if not model.sha256:
        return model.problem
    if job.model_sha256 == model.sha256:
        return ""
    return (
        f"it ran another model file (sha256 {job.model_sha256[:12]}) than {safe_text(str(model.path))} is now "
        f"({model.sha256[:12]}): harness regress again"
    )


def _disagreement(jobs: Sequence[JobRecord]) -> str:
    """Why these jobs cannot make one baseline; "" when they can."""
    first = jobs[0]
    for job in jobs[1:]:
        if job.model_sha256 != first.model_sha256:
            return f"{job.id} ran another model file"
        unlike = differences(Kind.TIMING, job.conditions, first.conditions)
        if unlike:
            return f"{job.id} is not comparable with it: {unlike[0].what} {unlike[0].here} and {unlike[0].there}"
    for name in METRICS:
        values = _values(jobs, name)
        if METRICS[name].kind is not Kind.TIMING and len(set(values)) > 1:
            return f"{name} differs between its runs: {', '.join(map(str, sorted(set(values))))}"
    return ""


def _entry(jobs: Sequence[JobRecord]) -> BaselineEntry:
    metrics = {}
    for name in METRICS:
        values = _values(jobs, name)
        if values:
            metrics[name] = BaselineMetric(value=median(values) if METRICS[name].kind is Kind.TIMING else values[0])
    first = jobs[0]
    return BaselineEntry(
        conditions=first.conditions, model_sha256=first.model_sha256, updated=first.finished, metrics=metrics
    )


def _values(jobs: Iterable[JobRecord], name: str) -> list[Number]:
    return [metric.value for job in jobs for metric in job.metrics if metric.name == name and metric.value is not None]
