"""One rig, one process: a lock file with its owner in it. A process that dies gives its lock back (the kernel does)."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from pathlib import Path
from types import TracebackType

from filelock import FileLock, Timeout

from harness.errors import ProbeError


class RigLock:
    """Held from construction to `release`. Raises ProbeError ``rig.busy`` with the owner and since when. ``place``
    tells apart what is called the same: rigs of two lab files."""

    def __init__(self, identity: str, folder: Path | None = None, *, place: str = "") -> None:
        folder = folder or _default_folder()
        folder.mkdir(parents=True, exist_ok=True)
        name = re.sub(r"[^A-Za-z0-9_.-]", "_", identity)[:120]
        if place:
            name += "-" + hashlib.sha256(os.fsencode(place)).hexdigest()[:16]
        self._note = folder / f"{name}.json"
        self._lock = FileLock(folder / f"{name}.lock")
        try:
            self._lock.acquire(timeout=0)
        except Timeout as exc:
            raise ProbeError(
                f"{identity} is in use{self._owner()}",
                remedy="wait for it, or end that process; a dead owner's lock is free by itself",
                code="rig.busy",
            ) from exc
        self._note.write_text(json.dumps({"pid": os.getpid(), "since": time.time()}), encoding="utf-8")

    def _owner(self) -> str:
        try:
            note = json.loads(self._note.read_text(encoding="utf-8"))
            minutes, seconds = divmod(max(0, int(time.time() - float(note["since"]))), 60)
            return f" by process {int(note['pid'])}, for {minutes} min {seconds} s"
        except (OSError, ValueError, KeyError, TypeError):
            return ""

    def release(self) -> None:
        self._lock.release()

    def __enter__(self) -> RigLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _default_folder() -> Path:
    from platformdirs import user_state_path

    return user_state_path("tflm-harness", appauthor=False) / "rigs"
