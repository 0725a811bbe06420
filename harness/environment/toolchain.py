"""The cross compiler: the compiler itself, and the two libraries that distributions package apart from it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from harness.environment.part import Kind, Part, Status
from harness.firmware.toolchain import INSTALL
from harness.firmware.toolchain import PROGRAM as COMPILER

NEEDED_FOR = "building firmware"
#: Library file that the compiler must find → the package that is missing when it does not.
LIBRARIES = {"libc_nano.a": "newlib", "libstdc++_nano.a": "libstdc++ for newlib"}
_TIMEOUT_S = 20


def toolchain_parts(path: str | None = None) -> list[Part]:
    """``path`` is searched instead of PATH when given."""
    compiler = shutil.which(COMPILER, path=path)
    if compiler is None:
        return [Part(Kind.PROGRAM, COMPILER, Status.MISSING, NEEDED_FOR, remedy=INSTALL)]
    version = _ask(compiler, "-dumpfullversion")
    if version is None:
        return [Part(Kind.PROGRAM, COMPILER, Status.WRONG, NEEDED_FOR, "", f"{compiler} does not run", INSTALL)]
    parts = [Part(Kind.PROGRAM, COMPILER, Status.OK, NEEDED_FOR, version, compiler)]
    for library, package in LIBRARIES.items():
        # The compiler answers the bare name when it does not have the file.
        found = _ask(compiler, f"-print-file-name={library}")
        is_here = found is not None and Path(found).is_absolute()
        status = Status.OK if is_here else Status.MISSING
        parts.append(Part(Kind.LIBRARY, package, status, NEEDED_FOR, detail=library, remedy="" if is_here else INSTALL))
    return parts


def _ask(compiler: str, option: str) -> str | None:
    try:
        done = subprocess.run([compiler, option], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
