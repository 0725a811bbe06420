"""The cross compiler and its libraries, with scripts in its place."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from harness.environment.part import Status
from harness.environment.toolchain import toolchain_parts
from harness.firmware.toolchain import PROGRAM as COMPILER

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the compiler's stand-in is a shell script")


def stand_in(folder: Path, body: str) -> str:
    program = folder / COMPILER
    program.write_text("#!/bin/sh\n" + body)
    program.chmod(0o755)
    return str(folder)


def test_no_compiler_names_the_packages(tmp_path: Path) -> None:
    (part,) = toolchain_parts(str(tmp_path))
    assert (part.name, part.status) == ("arm-none-eabi-g++", Status.MISSING)
    assert "apt install gcc-arm-none-eabi libnewlib-arm-none-eabi libstdc++-arm-none-eabi-newlib" in part.remedy


def test_a_compiler_without_its_libraries_is_told_library_by_library(tmp_path: Path) -> None:
    """Debian packages newlib apart; the compiler then answers the bare file name."""
    path = stand_in(
        tmp_path,
        """case "$1" in
-dumpfullversion) echo 12.2.1 ;;
-print-file-name=libc_nano.a) echo /lib/libc_nano.a ;;
-print-file-name=*) echo "${1#-print-file-name=}" ;;
esac
""",
    )
    parts = {part.name: (part.status, part.version) for part in toolchain_parts(path)}
    assert parts == {
        "arm-none-eabi-g++": (Status.OK, "12.2.1"),
        "newlib": (Status.OK, ""),
        "libstdc++ for newlib": (Status.MISSING, ""),
    }


def test_a_compiler_that_does_not_run_is_wrong(tmp_path: Path) -> None:
    (part,) = toolchain_parts(stand_in(tmp_path, "exit 1\n"))
    assert part.status is Status.WRONG


@pytest.mark.skipif(shutil.which(COMPILER) is None, reason="needs the cross compiler: apt install gcc-arm-none-eabi")
def test_the_real_compiler_answers_its_version() -> None:
    parts = toolchain_parts()
    assert parts[0].status is Status.OK
    assert parts[0].version.split(".")[0].isdigit()
