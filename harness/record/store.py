"""Record files: written atomically, never overwritten, read strictly."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from harness.bounded_file import read_bounded
from harness.errors import ExitCode, HarnessError, UsageError, is_disk_full
from harness.record.schema import SCHEMA, SCHEMA_VERSION, SweepRecord

#: Records of one name in one second: more than a tool that ran them could make.
_MAX_SAME_NAME = 1000


class ResultsError(HarnessError):
    """The results cannot be kept: the disk is full, or the folder cannot be written."""

    exit_code = ExitCode.ENVIRONMENT
    default_code = "results.unwritable"


def results_error(path: Path, exc: OSError, option: str = "--results") -> ResultsError:
    remedy = f"name a folder with {option}"
    if is_disk_full(exc):
        remedy = f"free some space, or name another folder with {option}"
    return ResultsError(f"cannot write {path}: {exc.strerror or exc}", remedy=remedy)


@contextlib.contextmanager
def kept_in(folder: Path, option: str = "--results") -> Iterator[None]:
    """A file in ``folder``, or the folder itself, that cannot be written is a ResultsError that names the option."""
    try:
        yield
    except OSError as exc:
        if not isinstance(exc.filename, str) or not _is_about(Path(exc.filename).absolute(), folder.resolve()):
            raise
        raise results_error(folder, exc, option) from exc


def _is_about(path: Path, folder: Path) -> bool:
    """Within it, or one of the folders that it is to be made in."""
    path = Path(os.path.realpath(path))
    return path == folder or folder in path.parents or path in folder.parents


def record_name(record: SweepRecord) -> str:
    """``20260102T030405Z-model-board-kernels`` (no kernels where none were chosen yet): sorted by time, safe on every
    file system."""
    stamp = re.sub(r"[-:]", "", record.created)
    stem = re.sub(r"[^A-Za-z0-9._-]+", "_", record.model_name.replace(".tflite", ""))[:60].strip("._") or "model"
    board = re.sub(r"[^A-Za-z0-9._-]+", "_", record.board)[:60].strip("._") or "board"
    return "-".join(part for part in (stamp, stem, board, record.kernels) if part)


def write_record(record: SweepRecord, folder: Path) -> Path:
    """Write a record whole or not at all, under a name that was free. Returns its path."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return _publish(record, folder)
    except OSError as exc:
        raise results_error(folder, exc) from exc


def _publish(record: SweepRecord, folder: Path) -> Path:
    """Finish a file under a temporary name, then give it its own name unless somebody has it already."""
    base = record_name(record)
    for number in range(1, _MAX_SAME_NAME):
        path = folder / (f"{base}.json" if number == 1 else f"{base}-{number}.json")
        if path.exists():
            continue
        named = msgspec.structs.replace(record, record_path=os.fsencode(path).decode("utf-8", "replace"))
        data = msgspec.json.format(msgspec.json.encode(named), indent=1) + b"\n"
        temporary = _write_temporary(folder, data)
        try:
            _claim(temporary, path)
            return path
        except FileExistsError:
            continue
        finally:
            temporary.unlink(missing_ok=True)
    raise ResultsError(f"{folder} holds {_MAX_SAME_NAME} records called {base}", remedy="name another folder")


def _claim(temporary: Path, path: Path) -> None:
    """Give the file its name in one step; FileExistsError when it is taken."""
    try:
        os.link(temporary, path)
    except OSError as exc:
        if exc.errno not in {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}:
            raise
        # a file system without hard links (FAT, some network shares): take the name first, then fill it
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
        temporary.replace(path)


def _write_temporary(folder: Path, data: bytes) -> Path:
    handle, name = tempfile.mkstemp(prefix=".record-", suffix=".tmp", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
    return Path(name)


def read_record(path: Path) -> SweepRecord:
    """Raises UsageError for a file that is no record, or one of a later version."""
    try:
        data = read_bounded(path)
        header = msgspec.json.decode(data)
    except OSError as exc:
        raise UsageError(f"cannot read the record {path}: {exc.strerror}", remedy="check the path") from exc
    except msgspec.DecodeError as exc:
        raise UsageError(f"{path} is no record: {exc}", remedy="records lie in results/") from exc
    if not isinstance(header, dict) or header.get("schema") != SCHEMA:
        raise UsageError(f"{path} is no sweep record", remedy="records lie in results/")
    version = header.get("schema_version")
    if version != SCHEMA_VERSION:
        raise UsageError(
            f"{path} is a record of version {version}; this harness reads version {SCHEMA_VERSION}",
            remedy="update tflm-harness",
        )
    try:
        return msgspec.json.decode(data, type=SweepRecord)
    except msgspec.ValidationError as exc:
        raise UsageError(f"{path} is a damaged record: {exc}", remedy="take another record") from exc


def read_records(path: Path) -> list[SweepRecord]:
    """The records in a file: one, or all of a document that ``harness sweep --json`` printed. Raises UsageError."""
    try:
        document = msgspec.json.decode(read_bounded(path))
    except (OSError, msgspec.DecodeError):
        return [read_record(path)]  # says what is wrong
    results = document.get("results") if isinstance(document, dict) else None
    if not isinstance(results, list) or document.get("schema") != "harness.sweep":
        return [read_record(path)]
    try:
        return [msgspec.convert(result, SweepRecord) for result in results]
    except msgspec.ValidationError as exc:
        raise UsageError(f"{path} is a damaged document: {exc}", remedy="take another one") from exc
