"""A run's folder: ``run.jsonl`` grows by one line per attempt and per finished job, ``run.json`` is written at the end.

Each line is on disk before the next job begins, so a killed run loses nothing that was finished; a run of the same
suite, jobs, models and rigs goes on from it.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout

from harness import __version__
from harness.board.lab_file import RigEntry
from harness.errors import UsageError
from harness.lab.job import Job
from harness.record.lab_run import AttemptRecord, JobRecord, RunRecord
from harness.record.text_file import UnwritableError, unwritable, write_whole

#: An unfinished run that is older than this is history, not something to go on from.
RESUME_WITHIN_S = 12 * 3600.0


class Begin(msgspec.Struct, frozen=True, kw_only=True, tag="begin"):
    """The first line. ``identity`` is equal for runs that may go on from each other."""

    run_id: str
    identity: str
    suite: str
    started: str


class Attempted(msgspec.Struct, frozen=True, kw_only=True, tag="attempt"):
    job_id: str
    attempt: AttemptRecord


class Finished(msgspec.Struct, frozen=True, kw_only=True, tag="job"):
    job: JobRecord


Line = Begin | Attempted | Finished
_DECODER: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)


def now_text() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def identity_of(suite_text: bytes, jobs: Sequence[Job], rigs: Sequence[RigEntry]) -> str:
    """Equal where finished jobs of one run count in another."""
    digest = hashlib.sha256(suite_text)
    facts = [
        __version__,
        [(job.id, job.model.sha256) for job in jobs],
        [(rig.name, rig.board, rig.probe) for rig in rigs],
    ]
    digest.update(msgspec.json.encode(facts))
    return digest.hexdigest()


@dataclass(slots=True)
class Past:
    """What an earlier part of the run has left. ``damaged``: lines, from 1, that cannot be read; what they held is done
    again."""

    begin: Begin
    finished: dict[str, JobRecord] = field(default_factory=dict)
    attempts: dict[str, list[AttemptRecord]] = field(default_factory=dict)
    damaged: list[int] = field(default_factory=list)


class RunFolder:
    """One run on disk; held by one process at a time. Use as a context manager."""

    def __init__(self, path: Path, past: Past) -> None:
        self.path = path
        self.past = past
        self._lock = FileLock(path / "run.lock")
        self._writing = threading.Lock()
        self._file: int | None = None

    @classmethod
    def new(cls, runs: Path, suite: str, identity: str) -> RunFolder:
        """A fresh run; the folder's name says when and which suite."""
        started = now_text()
        stamp = re.sub(r"[-:]", "", started)
        run_id = f"{stamp}-{suite}-{secrets.token_hex(2)}"
        return cls(runs / run_id, Past(Begin(run_id=run_id, identity=identity, suite=suite, started=started)))

    @classmethod
    def unfinished(cls, runs: Path, identity: str, within_s: float) -> RunFolder | None:
        """The newest run with this identity that was not finished, not older than ``within_s``, and held by nobody."""
        now = datetime.now(timezone.utc)
        for journal in sorted(runs.glob("*/run.jsonl"), reverse=True):
            if (journal.parent / "run.json").exists():
                continue
            past = read_journal(journal)
            if past is None or past.begin.identity != identity:
                continue
            started = datetime.strptime(past.begin.started, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)
            folder = cls(journal.parent, past)
            if (now - started).total_seconds() <= within_s and folder._is_free():
                return folder
        return None

    @property
    def run_id(self) -> str:
        return self.past.begin.run_id

    def job_folder(self, job: Job) -> Path:
        return self.path / "jobs" / job.slug

    def __enter__(self) -> RunFolder:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=0)
            journal = self.path / "run.jsonl"
            # the lock is ours now: what another process wrote in between counts, a line cut short does not
            self.past = read_journal(journal) or self.past
            _cut_to_whole_lines(journal)
            self._file = os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        except Timeout as exc:
            raise UsageError(
                f"the run {self.run_id} is going on in another process",
                remedy="wait for it, or start another with --fresh",
                code="run.running",
            ) from exc
        except OSError as exc:
            raise _unwritable(self.path, exc) from exc
        if os.fstat(self._file).st_size == 0:
            self._append(self.past.begin)
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
        self._lock.release()

    def keep_attempt(self, job_id: str, attempt: AttemptRecord) -> None:
        self._append(Attempted(job_id=job_id, attempt=attempt))

    def keep_job(self, job: JobRecord) -> None:
        self._append(Finished(job=job))

    def finish(self, record: RunRecord) -> Path:
        """Write the whole run; from now on nothing is left to resume."""
        path = self.path / "run.json"
        write_whole(path, msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")
        return path

    def _append(self, line: Line) -> None:
        assert self._file is not None, "the run's folder is closed"
        with self._writing:
            try:
                os.write(self._file, msgspec.json.encode(line) + b"\n")
                os.fsync(self._file)
            except OSError as exc:
                raise _unwritable(self.path, exc) from exc

    def _is_free(self) -> bool:
        try:
            with self._lock.acquire(timeout=0):
                return True
        except (Timeout, OSError):
            return False


def read_journal(path: Path) -> Past | None:
    """None where there is no journal with a first line. A last line cut short is not there; each line stands for
    itself, so one that is damaged costs no other."""
    try:
        lines = path.read_bytes().split(b"\n")[:-1]
    except OSError:
        return None
    past: Past | None = None
    for number, text in enumerate(lines, start=1):
        line = _decoded(text)
        if line is None and past is None:
            return None
        if line is None and past is not None:
            past.damaged.append(number)
        elif isinstance(line, Begin):
            past = Past(line)
        elif past is not None and isinstance(line, Attempted):
            past.attempts.setdefault(line.job_id, []).append(line.attempt)
        elif past is not None and isinstance(line, Finished):
            past.finished[line.job.id] = line.job
    return past


def _decoded(text: bytes) -> Line | None:
    try:
        return _DECODER.decode(text)
    except msgspec.MsgspecError:
        return None


def damaged_journals(runs: Path, suite: str, within_s: float) -> list[Path]:
    """Those of unfinished runs of the suite, not older than ``within_s``, of which not even the first line can be read:
    nothing can go on from them."""
    oldest = time.time() - within_s
    return [
        journal
        for journal in sorted(runs.glob("*/run.jsonl"), reverse=True)
        if re.fullmatch(rf"[0-9TZ]+-{re.escape(suite)}-[0-9a-f]+", journal.parent.name)
        and not (journal.parent / "run.json").exists()
        and journal.stat().st_mtime >= oldest
        and b"\n" in journal.read_bytes()
        and read_journal(journal) is None
    ]


def read_run(path: Path) -> RunRecord:
    """A finished run's record. Raises UsageError."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=RunRecord)
    except OSError as exc:
        raise UsageError(f"cannot read the run {path}: {exc.strerror}", remedy="runs lie in results/lab/") from exc
    except msgspec.MsgspecError as exc:
        raise UsageError(f"{path} is no run of harness regress: {exc}", remedy="runs lie in results/lab/") from exc


def _cut_to_whole_lines(path: Path) -> None:
    """A line that a kill cut short must not run into the next one."""
    if not path.exists():
        return
    data = path.read_bytes()
    whole = data.rfind(b"\n") + 1
    if whole != len(data):
        os.truncate(path, whole)


def _unwritable(path: Path, exc: OSError) -> UnwritableError:
    return unwritable(f"cannot write in {path}", exc, "choose another --results")
