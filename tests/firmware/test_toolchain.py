"""Command lines are data: these are the whole ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.board.catalogue import load_hardware_board
from harness.board.record import Fpu
from harness.deadline import Deadline
from harness.errors import BuildError, ExitCode, MissingDependencyError
from harness.firmware.library import TflmLibrary
from harness.firmware.toolchain import Toolchain, compile_flags, find_toolchain, machine_flags
from tests.firmware.conftest import needs_compiler
from tests.patience import patient

TOOLS = Toolchain(Path("/opt/arm/bin/arm-none-eabi-g++"), "arm-none-eabi-g++ 12.2.1")


def library(float_abi: str = "hard", kernels: str = "cmsis_nn", fpu: Fpu = Fpu.SINGLE) -> TflmLibrary:
    return TflmLibrary(
        root=Path("/tflm"),
        archive=Path("/tflm/lib/libtensorflow-microlite.a"),
        include_dirs=(Path("/tflm/include"),),
        sha256="0" * 64,
        arch="v7E-M",
        cpu_arch=13,
        fpu=fpu,
        float_abi=float_abi,
        short_enums=True,
        kernels=kernels,
        compression=False,
        strip_error_strings=False,
        commit="",
    )


def test_the_compile_line() -> None:
    machine = machine_flags(load_hardware_board("nucleo-f746zg"), library())
    flags = compile_flags(machine, "-Os", library().defines)
    argv = TOOLS.compile_argv(Path("/b/main.cc"), Path("/c/1.o"), flags, (Path("/b"),), (Path("/tflm/include"),))
    assert argv == [
        "/opt/arm/bin/arm-none-eabi-g++",
        "-mcpu=cortex-m7",
        "-mthumb",
        "-mfpu=fpv5-sp-d16",
        "-mfloat-abi=hard",
        "-std=c++17",
        "-Os",
        "-fno-rtti",
        "-fno-exceptions",
        "-fno-threadsafe-statics",
        "-fno-unwind-tables",
        "-fno-asynchronous-unwind-tables",
        "-ffunction-sections",
        "-fdata-sections",
        "-funsigned-char",
        "-fomit-frame-pointer",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Wshadow",
        "-Wdouble-promotion",
        "-Wundef",
        "-DTF_LITE_STATIC_MEMORY",
        "-DTF_LITE_MCU_DEBUG_LOG",
        "-DTF_LITE_DISABLE_X86_NEON",
        "-DCMSIS_NN",
        "-I/b",
        "-isystem",
        "/tflm/include",
        "-c",
        "/b/main.cc",
        "-o",
        "/c/1.o",
    ]


def test_the_link_line_has_no_semihosting_and_no_start_files() -> None:
    argv = TOOLS.link_argv(
        [Path("/c/1.o"), Path("/c/2.o")],
        Path("/b/link.ld"),
        Path("/tflm/lib/libtensorflow-microlite.a"),
        Path("/o/firmware.elf"),
        Path("/o/firmware.map"),
        ("-mcpu=cortex-m4",),
    )
    assert argv == [
        "/opt/arm/bin/arm-none-eabi-g++",
        "-mcpu=cortex-m4",
        "-nostartfiles",
        "--specs=nano.specs",
        "-Wl,--gc-sections",
        "-Wl,--fatal-warnings",
        "-Wl,-Map=/o/firmware.map",
        "-T/b/link.ld",
        "/c/1.o",
        "/c/2.o",
        "/tflm/lib/libtensorflow-microlite.a",
        "-lm",
        "-o",
        "/o/firmware.elf",
    ]
    assert not any("rdimon" in argument for argument in argv)


@pytest.mark.parametrize(
    ("board", "float_abi", "flags"),
    [
        ("nucleo-f446re", "hard", ("-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard")),
        ("nucleo-f767zi", "hard", ("-mcpu=cortex-m7", "-mthumb", "-mfpu=fpv5-d16", "-mfloat-abi=hard")),
        ("nrf5340dk", "hard", ("-mcpu=cortex-m33", "-mthumb", "-mfpu=fpv5-sp-d16", "-mfloat-abi=hard")),
        ("nrf52840dk", "softfp", ("-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16", "-mfloat-abi=softfp")),
        ("nrf52840dk", "soft", ("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=soft")),
    ],
)
def test_the_machine_is_the_chips_and_the_calling_convention_the_librarys(
    board: str, float_abi: str, flags: tuple[str, ...]
) -> None:
    assert machine_flags(load_hardware_board(board), library(float_abi)) == flags


def test_a_missing_compiler_names_the_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    find_toolchain.cache_clear()
    with pytest.raises(MissingDependencyError) as caught:
        find_toolchain()
    find_toolchain.cache_clear()
    assert caught.value.exit_code == ExitCode.ENVIRONMENT == 3
    for name in ("gcc-arm-none-eabi", "gcc-arm-embedded", "Arm.GnuArmEmbeddedToolchain"):
        assert name in caught.value.remedy


def test_a_failed_compilation_is_a_build_error_with_the_compilers_words(tmp_path: Path) -> None:
    needs_compiler()
    source = tmp_path / "broken.cc"
    source.write_text("int f() { return undeclared; }\n")
    tools = find_toolchain()
    argv = tools.compile_argv(source, tmp_path / "x.o", (), (), ())
    with pytest.raises(BuildError) as caught:
        tools.run(argv, patient(), cwd=tmp_path)
    assert caught.value.exit_code == ExitCode.BUILD == 4
    assert "broken.cc" in caught.value.message
    assert "undeclared" in caught.value.message


def test_a_compilation_has_a_deadline(tmp_path: Path) -> None:
    needs_compiler()
    tools = find_toolchain()
    with pytest.raises(BuildError, match="did not end in time"):
        tools.run([str(tools.program), "--version"], Deadline.after(0), cwd=tmp_path)
