"""Which process has a serial port open, as far as the kernel lets this user see. Linux; elsewhere nothing."""

from __future__ import annotations

import os
from pathlib import Path

PROC = Path("/proc")
#: Opens each new modem-like port for some ten seconds to see whether it answers as a modem does.
_PROBER = "ModemManager"


def port_owner(device: str, proc: Path = PROC) -> str:
    """``"minicom (process 812)"``; "" where nobody can be named.

    The files of another user's process cannot be seen; ModemManager, which is root's, is named when it runs at all.
    """
    target = os.path.realpath(device)
    suspect = ""
    for folder in sorted(proc.glob("[0-9]*"), key=lambda folder: int(folder.name)):
        name = _name(folder)
        if int(folder.name) != os.getpid() and _has_open(folder, target):
            return f"{name or 'a program'} (process {folder.name})"
        if name == _PROBER:
            suspect = f"probably {_PROBER} (process {folder.name})"
    return suspect


def _name(folder: Path) -> str:
    try:
        return (folder / "comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _has_open(folder: Path, target: str) -> bool:
    try:
        return any(os.path.realpath(entry) == target for entry in (folder / "fd").iterdir())
    except OSError:
        return False


def group_of(device: str) -> str:
    """The group that owns the device; "" where that cannot be told."""
    try:
        import grp

        return grp.getgrgid(Path(device).stat().st_gid).gr_name
    except (ImportError, OSError, KeyError):
        return ""
