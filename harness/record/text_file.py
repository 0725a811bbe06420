"""Files that are replaced whole: a reader sees the old bytes or the new ones, whatever is killed in between."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from pathlib import Path

from harness.errors import ExitCode, HarnessError


class UnwritableError(HarnessError):
    """The file cannot be written: the disk is full, or the folder may not be written to."""

    exit_code = ExitCode.ENVIRONMENT
    default_code = "file.unwritable"


def write_whole(path: Path, data: bytes) -> None:
    """Write ``data`` as the file ``path``, on disk when this returns; what is no file (``/dev/stdout``, a pipe) is
    written to, never replaced. Raises UnwritableError."""
    try:
        if _is_no_file(path):
            path.write_bytes(data)
            return
        path = Path(os.path.realpath(path))  # a link stays one
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(name).chmod(0o644)
            Path(name).replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as exc:
        raise unwritable(f"cannot write {path}", exc) from exc


def append_text(path: Path, text: str) -> None:
    """Add to the end of a file that others write to as well. Raises UnwritableError."""
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as exc:
        raise unwritable(f"cannot write {path}", exc) from exc


def unwritable(what: str, exc: OSError, elsewhere: str = "choose another place") -> UnwritableError:
    """The error with the remedy that fits it. ``elsewhere``: how to."""
    match exc.errno:
        case errno.ENOSPC | errno.EDQUOT:
            why, remedy = exc.strerror, f"free some space, or {elsewhere}"
        case errno.EISDIR:
            why, remedy = exc.strerror, "name a file, not a folder"
        case errno.ENOTDIR | errno.EEXIST:  # the latter is what making a folder in its place says
            why, remedy = os.strerror(errno.ENOTDIR), f"a part of the path is a file: {elsewhere}"
        case errno.EROFS | errno.EACCES | errno.EPERM:
            why, remedy = exc.strerror, f"it may not be written to: {elsewhere}"
        case _:
            why, remedy = exc.strerror or str(exc), elsewhere
    return UnwritableError(f"{what}: {why}", remedy=remedy)


def _is_no_file(path: Path) -> bool:
    """The names of /dev are not files either where they lead to one: somebody else has it open."""
    return Path("/dev") in path.absolute().parents or (path.exists() and not path.is_file())
