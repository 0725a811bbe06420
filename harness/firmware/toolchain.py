"""The cross compiler: found, its version known, its command lines as data. Owner of ``subprocess`` for compilers."""

from __future__ import annotations

import functools
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from harness.board.record import Fpu, HardwareBoard
from harness.deadline import Deadline
from harness.errors import BuildError, MissingDependencyError
from harness.firmware.library import TflmLibrary

PROGRAM = "arm-none-eabi-g++"
INSTALL = (
    "Debian, Ubuntu: apt install gcc-arm-none-eabi libnewlib-arm-none-eabi libstdc++-arm-none-eabi-newlib; "
    "Homebrew: brew install --cask gcc-arm-embedded; Windows: winget install Arm.GnuArmEmbeddedToolchain"
)

_WARNINGS = ("-Wall", "-Wextra", "-Werror", "-Wshadow", "-Wdouble-promotion", "-Wundef")
#: -mfpu for a core's FPU; GCC manual, "ARM Options".
_FPUS = {
    ("cortex-m4", Fpu.SINGLE): "fpv4-sp-d16",
    ("cortex-m7", Fpu.SINGLE): "fpv5-sp-d16",
    ("cortex-m7", Fpu.DOUBLE): "fpv5-d16",
    ("cortex-m33", Fpu.SINGLE): "fpv5-sp-d16",
}


@dataclass(frozen=True, slots=True)
class Toolchain:
    """``program`` is the C++ driver; ``version`` its first line."""

    program: Path
    version: str

    def compile_argv(
        self, source: Path, out: Path, flags: tuple[str, ...], includes: tuple[Path, ...], system: tuple[Path, ...]
    ) -> list[str]:
        """One object. Warnings are errors in our sources; TFLM's headers are system headers."""
        return [
            str(self.program),
            *flags,
            *(f"-I{path}" for path in includes),
            *(argument for path in system for argument in ("-isystem", str(path))),
            "-c",
            str(source),
            "-o",
            str(out),
        ]

    def link_argv(
        self, objects: list[Path], script: Path, archive: Path, out: Path, map_file: Path, flags: tuple[str, ...]
    ) -> list[str]:
        """The ELF. No start files, no semihosting (rdimon), no heap (our own _sbrk)."""
        return [
            str(self.program),
            *flags,
            "-nostartfiles",
            "--specs=nano.specs",
            "-Wl,--gc-sections",
            "-Wl,--fatal-warnings",
            f"-Wl,-Map={map_file}",
            f"-T{script}",
            *(str(path) for path in objects),
            str(archive),
            "-lm",
            "-o",
            str(out),
        ]

    def run(self, argv: list[str], deadline: Deadline, *, cwd: Path) -> None:
        """Run one command. Raises BuildError with its own words."""
        try:
            done = subprocess.run(
                argv,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=deadline.remaining_s,
                cwd=cwd,
                check=False,
            )
        except subprocess.TimeoutExpired as exc:
            raise BuildError(
                f"{Path(argv[0]).name} did not end in time",
                remedy="try again on a less busy machine",
                code="build.timeout",
            ) from exc
        if done.returncode != 0:
            raise BuildError(
                f"{Path(argv[0]).name} failed on {_subject(argv)}:\n{_first_lines(done.stderr)}",
                remedy="read the first error; harness -v build shows the command line",
            )


def _subject(argv: list[str]) -> str:
    source = argv[argv.index("-c") + 1] if "-c" in argv else argv[-1]
    return Path(source).name


def _first_lines(text: str, limit: int = 25) -> str:
    lines = text.strip().splitlines()
    return "\n".join(lines[:limit]) + ("\n…" if len(lines) > limit else "")


@functools.cache
def find_toolchain() -> Toolchain:
    """The compiler on PATH. Raises MissingDependencyError with the package names."""
    path = shutil.which(PROGRAM)
    if path is None:
        raise MissingDependencyError(
            f"{PROGRAM} is not installed",
            remedy=INSTALL,
            code="environment.toolchain",
        )
    done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, check=False)
    version = done.stdout.splitlines()[0] if done.stdout else "unknown"
    return Toolchain(Path(path), version)


def machine_flags(board: HardwareBoard, library: TflmLibrary) -> tuple[str, ...]:
    """-mcpu, FPU and float ABI: the chip's core and FPU, the library's calling convention."""
    flags = [f"-mcpu={board.core}", "-mthumb"]
    fpu = _FPUS.get((board.core, board.fpu))
    if library.float_abi == "soft" or fpu is None:
        return (*flags, "-mfloat-abi=soft")
    return (*flags, f"-mfpu={fpu}", f"-mfloat-abi={library.float_abi}")


def compile_flags(machine: tuple[str, ...], optimise: str, defines: tuple[str, ...]) -> tuple[str, ...]:
    """Flags of every C++ source of ours. The language options are TFLM's own (its Makefile), so that headers mean the
    same on both sides."""
    return (
        *machine,
        "-std=c++17",
        optimise,
        "-fno-rtti",
        "-fno-exceptions",
        "-fno-threadsafe-statics",
        "-fno-unwind-tables",
        "-fno-asynchronous-unwind-tables",
        "-ffunction-sections",
        "-fdata-sections",
        "-funsigned-char",
        "-fomit-frame-pointer",
        *_WARNINGS,
        *(f"-D{name}" for name in defines),
    )
