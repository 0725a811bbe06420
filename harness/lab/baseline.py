"""Baselines: the numbers that a lab has agreed on, one committed JSON file per model and board, made to be read in a
diff: sorted, one number a line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.errors import ConfigError
from harness.lab.conditions import KEY, key_of
from harness.lab.metrics import Number
from harness.lab.suite import SIGMA_IS_FOR_TIMES, Tolerance, is_idle
from harness.record.lab_run import ConditionsRecord
from harness.record.text_file import write_whole

SCHEMA = "harness.baseline"
SCHEMA_VERSION = 1


class BaselineError(ConfigError):
    """A baseline file cannot be read."""

    default_code = "baseline.invalid"


class BaselineMetric(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``direction``: which way is better. ``tolerance`` None: the metric's own (bytes are exact)."""

    value: int | float
    direction: str = "lower"
    tolerance: Tolerance | None = None


class BaselineEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The numbers of one model on one board under ``conditions``."""

    conditions: ConditionsRecord
    model_sha256: str = ""
    updated: str = ""
    metrics: dict[str, BaselineMetric]


class BaselineFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    schema: str = SCHEMA
    schema_version: int = SCHEMA_VERSION
    model: str
    board: str
    entries: tuple[BaselineEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """``entry`` None: no baseline for these conditions; ``nearest`` is one for others, if there is any."""

    entry: BaselineEntry | None
    nearest: BaselineEntry | None = None


class BaselineStore:
    """The baseline files of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: dict[Path, BaselineFile] = {}

    def path(self, model: str, board: str) -> Path:
        return self.folder / f"{model}--{re.sub(r'[^A-Za-z0-9._-]+', '_', board)}.json"

    def file(self, model: str, board: str) -> BaselineFile:
        """Empty where there is none. Raises BaselineError for one that cannot be read."""
        path = self.path(model, board)
        if path not in self._files:
            self._files[path] = self._read(path, model, board)
        return self._files[path]

    def find(self, model: str, board: str, conditions: ConditionsRecord) -> Found:
        entries = self.file(model, board).entries
        for entry in entries:
            if key_of(entry.conditions) == key_of(conditions):
                return Found(entry)
        alike = sorted(entries, key=lambda entry: _likeness(entry.conditions, conditions), reverse=True)
        return Found(None, alike[0] if alike else None)

    def put(self, model: str, board: str, entry: BaselineEntry) -> Path:
        """Write the entry in place of the one for the same key; metrics that it does not hold are kept."""
        file = self.file(model, board)
        others = [old for old in file.entries if key_of(old.conditions) != key_of(entry.conditions)]
        same = [old for old in file.entries if key_of(old.conditions) == key_of(entry.conditions)]
        metrics = {**(same[0].metrics if same else {}), **entry.metrics}
        merged = msgspec.structs.replace(entry, metrics=dict(sorted(metrics.items())))
        entries = sorted((*others, merged), key=lambda old: key_of(old.conditions))
        written = msgspec.structs.replace(file, entries=tuple(entries))
        path = self.path(model, board)
        write_whole(path, msgspec.json.format(msgspec.json.encode(written), indent=2) + b"\n")
        self._files[path] = written
        return path

    @staticmethod
    def _read(path: Path, model: str, board: str) -> BaselineFile:
        try:
            file = msgspec.json.decode(path.read_bytes(), type=BaselineFile)
        except FileNotFoundError:
            return BaselineFile(model=model, board=board)
        except OSError as exc:
            raise BaselineError(f"cannot read {path}: {exc.strerror}", remedy="check the path") from exc
        except msgspec.MsgspecError as exc:
            raise BaselineError(f"{path}: {exc}", remedy="restore it from version control, or delete it") from exc
        if file.schema != SCHEMA or file.schema_version != SCHEMA_VERSION:
            raise BaselineError(
                f"{path} is {file.schema} version {file.schema_version}, not {SCHEMA} version {SCHEMA_VERSION}",
                remedy="update tflm-harness, or delete the file",
            )
        if (file.model, file.board) != (model, board):
            raise BaselineError(
                f"{path} is for {file.model} on {file.board}, not for {model} on {board}",
                remedy="rename the file, or run harness baseline update",
            )
        for entry in file.entries:
            idle = [
                name for name, metric in entry.metrics.items() if metric.tolerance and is_idle(name, metric.tolerance)
            ]
            if idle:
                raise BaselineError(f"{path}: {idle[0]}: {SIGMA_IS_FOR_TIMES}", remedy="take sigma out of it")
        return file


@dataclass(frozen=True, slots=True)
class Change:
    """One number of an update. ``old`` None: it is new."""

    model: str
    board: str
    metric: str
    old: Number | None
    new: Number

    @property
    def is_change(self) -> bool:
        return self.old != self.new


def changes(store: BaselineStore, model: str, board: str, entry: BaselineEntry) -> Iterable[Change]:
    """What ``put`` would do."""
    found = store.find(model, board, entry.conditions).entry
    for name, metric in entry.metrics.items():
        old = found.metrics.get(name) if found else None
        yield Change(model, board, name, old.value if old else None, metric.value)


def _likeness(one: ConditionsRecord, other: ConditionsRecord) -> int:
    return sum(getattr(one, name) == getattr(other, name) for name in KEY)
