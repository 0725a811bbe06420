"""Taking earlier runs and records into a history: what a database that was away has missed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from harness.errors import UsageError
from harness.lab.history.store import HistoryStore
from harness.lab.run_folder import read_run
from harness.record.lab_run import JobRecord, RunRecord
from harness.record.schema import SCHEMA as SWEEP_SCHEMA
from harness.record.schema import SweepRecord
from harness.record.store import read_record


def import_paths(store: HistoryStore, paths: Iterable[Path]) -> int:
    """Folders of runs, ``run.json`` files, and records of ``harness sweep``; how many results they hold. What is known
    already stays as it is. Raises UsageError for another file."""
    return sum(_import(store, path) for path in paths)


def _import(store: HistoryStore, path: Path) -> int:
    if path.is_dir():
        if not (path / "run.json").is_file():
            raise UsageError(f"{path} is no folder of a finished run", remedy="runs lie in results/lab/")
        return _import_run(store, read_run(path / "run.json"))
    if _schema(path) == SWEEP_SCHEMA:
        return _import_sweep(store, path)
    return _import_run(store, read_run(path))


def _schema(path: Path) -> str:
    try:
        header = msgspec.json.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError) as exc:
        raise UsageError(f"cannot read {path}: {exc}", remedy="name a run or a record") from exc
    return str(header.get("schema")) if isinstance(header, dict) else ""


def _import_run(store: HistoryStore, run: RunRecord) -> int:
    store.add_run(run)
    add_jobs(store, run.run_id, run.jobs)
    return len(run.jobs)


def add_jobs(store: HistoryStore, run_id: str, jobs: Iterable[JobRecord]) -> None:
    """Finished jobs, each with the record that it wrote."""
    for job in jobs:
        store.add_result(run_id, job, _sweep_of(job))


def _sweep_of(job: JobRecord) -> SweepRecord | None:
    """The job's record, where it is still there."""
    path = Path(job.attempts[-1].record_path) if job.attempts and job.attempts[-1].record_path else None
    return read_record(path) if path is not None and path.is_file() else None


def _import_sweep(store: HistoryStore, path: Path) -> int:
    record = read_record(path)
    run_id = f"sweep-{hashlib.sha256(path.read_bytes()).hexdigest()[:16]}"
    store.add_run(
        RunRecord(
            run_id=run_id,
            suite="",
            suite_path="",
            harness_version=record.harness_version,
            started=record.created,
            finished=record.created,
            seconds=record.seconds,
        )
    )
    store.add_sweep(record, run_id)
    return 1
