"""Files that are replaced whole: a reader sees the old bytes or the new ones, whatever is killed in between."""

from __future__ import annotations

import contextlib
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
        raise UnwritableError(
            f"cannot write {path}: {exc.strerror or exc}", remedy="free some space, or choose another place"
        ) from exc


def _is_no_file(path: Path) -> bool:
    """The names of /dev are not files either where they lead to one: somebody else has it open."""
    return Path("/dev") in path.absolute().parents or (path.exists() and not path.is_file())
