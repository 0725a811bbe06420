"""Processes of a command under test, from /proc; and a command that gets a signal at a known point of its work."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

#: Run in place of ``python -m harness``. The signal comes from inside, from the call that has just put the bytes on
#: disk: who watches the file from outside comes too late on some machine, when the command has ended already.
_SIGNALLED = """
import os, runpy, sys
from pathlib import Path

number, name, needle, count, note = sys.argv[1:6]
sys.argv[1:] = sys.argv[6:]
really_sync = os.fsync

def descendants(pid):
    found = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, children.read_text().split()):
            found += [child, *descendants(child)]
    return found

def sync(descriptor):
    really_sync(descriptor)
    path = os.readlink(f"/proc/self/fd/{descriptor}")
    if name in path and Path(path).read_text().count(needle) >= int(count):
        os.fsync = really_sync
        Path(note).write_text(" ".join(map(str, descendants(os.getpid()))))
        os.kill(os.getpid(), int(number))

os.fsync = sync
runpy.run_module("harness", run_name="__main__", alter_sys=True)
"""


class Signalled:
    """``harness ARGUMENTS``, which gets ``number`` as soon as a file with ``name`` in its path holds ``needle``
    ``count`` times and is on disk. ``children`` are the processes that it had then, and theirs."""

    def __init__(
        self, number: signal.Signals, name: str, needle: str, count: int, note: Path, *arguments: str, **options: Any
    ) -> None:
        self._note = note
        argv = [sys.executable, "-c", _SIGNALLED, str(int(number)), name, needle, str(count), str(note), *arguments]
        self.done = subprocess.run(argv, capture_output=True, text=True, check=False, **options)

    @property
    def children(self) -> list[int]:
        return [int(pid) for pid in self._note.read_text().split()]


def session_of(leader: int) -> list[int]:
    """The living processes of a session."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        state, _parent, _group, session = _stat(stat)
        if session == str(leader) and state != "Z":
            found.append(int(stat.parent.name))
    return sorted(found)


def is_alive(pid: int) -> bool:
    return _stat(Path(f"/proc/{pid}/stat"))[0] not in {"", "Z"}


def _stat(path: Path) -> tuple[str, str, str, str]:
    """State, parent, group, session; empty of a process that has just gone."""
    try:
        state, parent, group, session = path.read_text().rpartition(")")[2].split()[:4]
    except (OSError, ValueError):
        return "", "", "", ""
    return state, parent, group, session
