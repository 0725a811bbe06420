"""The journal of a run that is not finished: one line per trial or chunk, on disk before the next one begins.

A killed run loses nothing that was finished; the next run of the same model, board, build, inputs and step goes on from
it. It is removed after the record is written, never before.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, TypeVar

import msgspec
from filelock import FileLock, Timeout

from harness.errors import UsageError
from harness.record.schema import MeasuredRecord, ReferenceRecord, TrialRecord
from harness.record.store import results_error

FORMAT_VERSION = 1
#: The worker of a run that was killed a moment ago sees it and ends; the run that goes on may be faster.
PATIENCE_S = 5.0


def remove_journal(path: Path) -> None:
    """The record is written: nothing is left to resume."""
    with contextlib.suppress(OSError):
        path.unlink()


class JournalEntry(msgspec.Struct, frozen=True):
    """One trial; the ample run carries what was measured in it."""

    trial: TrialRecord
    measured: MeasuredRecord | None = None
    reference: ReferenceRecord | None = None


E = TypeVar("E", bound=msgspec.Struct)


class Journal(Generic[E]):
    """Append-only file of entries of one type, locked while open: two runs of the same thing do not mix."""

    def __init__(
        self, folder: Path, identity: dict[str, Any], entry_type: type[E], *, patience_s: float = PATIENCE_S
    ) -> None:
        """``identity`` says what must be equal for entries to count in another run. ``patience_s``: how long another
        run may hold it."""
        key = hashlib.sha256(json.dumps({"version": FORMAT_VERSION, **identity}, sort_keys=True).encode()).hexdigest()
        self.path = folder / f"{key[:24]}.jsonl"
        self._entry_type = entry_type
        self._patience_s = patience_s
        self._lock = FileLock(self.path.with_suffix(".lock"))
        self._file: int | None = None

    def __enter__(self) -> Journal[E]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=self._patience_s)
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except Timeout as exc:
            raise UsageError(
                f"another run of this model on this board is running ({self.path} is locked)",
                remedy="wait for it, or name another folder with --results",
                code="sweep.running",
            ) from exc
        except OSError as exc:
            raise results_error(self.path, exc) from exc
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
        self._lock.release()

    def entries(self) -> list[E]:
        """What earlier runs finished. A last line cut short by a kill is dropped; so is everything behind damage."""
        lines = self.path.read_bytes().split(b"\n")
        entries: list[E] = []
        for line in lines[:-1]:
            entry = self._read(line)
            if entry is None:
                break
            entries.append(entry)
        self._cut_to(sum(len(line) + 1 for line in lines[: len(entries)]))
        return entries

    def clear(self) -> None:
        """Forget what earlier runs left: this one starts anew."""
        self._cut_to(0)

    def append(self, entry: E) -> None:
        """On disk when this returns."""
        assert self._file is not None, "the journal is closed"
        try:
            os.write(self._file, msgspec.json.encode(entry) + b"\n")
            os.fsync(self._file)
        except OSError as exc:
            raise results_error(self.path, exc) from exc

    def _cut_to(self, size: int) -> None:
        assert self._file is not None
        os.ftruncate(self._file, size)

    def _read(self, line: bytes) -> E | None:
        try:
            return msgspec.json.decode(line, type=self._entry_type)
        except (msgspec.DecodeError, msgspec.ValidationError):
            return None
