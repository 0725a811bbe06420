"""Two arenas, a shared arena and an offline plan on real TFLM for a Cortex-M4, in QEMU: the planned size works, and one
byte less does not."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.abi import abi_named
from harness.board.record import Fpu
from harness.firmware.library import TflmLibrary
from harness.firmware.registry import VARIABLE, Registry
from harness.model.reader import parse_model, read_model
from harness.plan.arena import ArenaPlan, plan_arena
from harness.plan.arenas import shared_arena, two_arenas
from harness.plan.better import plan_offline
from harness.plan.target import target_for
from tests.patience import PATIENCE_S

HERE = Path(__file__).resolve().parent / "on_target"
EXAMPLES = HERE.parents[2] / "examples"
AMPLE = 500_000
COMPILER, EMULATOR = "arm-none-eabi-g++", "qemu-system-arm"
FLAGS = [
    *("-mcpu=cortex-m4", "-mthumb", "-mfpu=auto", "-mfloat-abi=hard", "-funsigned-char", "-std=c++17", "-Os", "-w"),
    *("-fno-rtti", "-fno-exceptions", "-fno-threadsafe-statics", "-ffunction-sections", "-fdata-sections"),
    *("-nostartfiles", "--specs=nano.specs", "--specs=nosys.specs", "-Wl,--gc-sections"),
]

pytestmark = pytest.mark.tflm


@dataclass(frozen=True, slots=True)
class Ran:
    used_bytes: int
    outputs: str


@pytest.fixture(scope="module")
def library() -> TflmLibrary:
    if not os.environ.get(VARIABLE):
        pytest.skip(f"{VARIABLE} names no TFLM library")
    for program in (COMPILER, EMULATOR):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    found = [library for library in Registry().libraries() if _is_for_m4(library)]
    if not found:
        pytest.skip(f"{VARIABLE} names no library for Cortex-M4 with FPU and CMSIS-NN")
    return found[0]


def _is_for_m4(library: TflmLibrary) -> bool:
    hard = library.float_abi == "hard" and library.fpu is Fpu.SINGLE
    return library.kernels == "cmsis_nn" and library.arch == "v7E-M" and hard and not library.compression


@pytest.fixture(scope="module")
def build(library: TflmLibrary, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path, Path], Path]:
    """(model A, model B) → an image."""
    folder = tmp_path_factory.mktemp("images")

    def compile_image(a: Path, b: Path) -> Path:
        image = folder / f"{a.stem}-{b.stem}.elf"
        argv = [COMPILER, *FLAGS, *(f"-D{name}" for name in library.defines), "-DARM_NN_ENABLE_F16=0"]
        argv += ["-DARM_NN_ENABLE_F32=0", "-DKERNELS_OPTIMIZED_FOR_SPEED", f'-DMODEL_A="{a}"', f'-DMODEL_B="{b}"']
        argv += [f"-I{path}" for path in library.include_dirs]
        argv += ["-T", str(HERE / "arenas.ld"), "-o", str(image), str(HERE / "arenas.cc"), str(library.archive), "-lm"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        return image

    return compile_image


def run(image: Path, layout: str) -> Ran | None:
    """One trial; None where it failed (or TFLM said that an allocation did)."""
    argv = [EMULATOR, "-M", "mps2-an386", "-nographic", "-monitor", "none", "-serial", "none", "-kernel", str(image)]
    argv += ["-semihosting-config", f"enable=on,target=native,arg=trial,arg={layout}"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    except subprocess.TimeoutExpired:
        return None
    text = done.stdout + done.stderr
    found = re.search(r"used=(\d+) outputs=(\w+)", text)
    if done.returncode or found is None or "Failed to" in text:
        return None
    return Ran(int(found[1]), found[2])


def planned(name: str) -> ArenaPlan:
    return plan_arena(read_model(EXAMPLES / f"{name}.tflite"), target_for("cortex-m4"))


@pytest.mark.parametrize("name", ["kws", "hello", "residual", "svdf"])
def test_two_arenas(build: Callable[[Path, Path], Path], name: str) -> None:
    path = EXAMPLES / f"{name}.tflite"
    image = build(path, path)
    two = two_arenas(planned(name), abi_named("ilp32"))
    ample = run(image, f"two:{AMPLE}:{AMPLE}")
    assert ample is not None and ample.used_bytes == two.used_bytes
    persistent, other = two.persistent_bytes, two.nonpersistent_bytes
    assert run(image, f"two:{persistent}:{other}") == ample
    assert run(image, f"two:{persistent - 1}:{AMPLE}") is None
    assert run(image, f"two:{AMPLE}:{other - 1}") is None


@pytest.mark.parametrize(("first", "second"), [("kws", "hello"), ("hello", "kws"), ("svdf", "residual")])
def test_a_shared_arena(build: Callable[[Path, Path], Path], first: str, second: str) -> None:
    image = build(EXAMPLES / f"{first}.tflite", EXAMPLES / f"{second}.tflite")
    shared = shared_arena([planned(first), planned(second)])
    ample = run(image, f"shared:{align(AMPLE)}")
    at_minimum = run(image, f"shared:{shared.min_exact_bytes}")
    assert ample is not None and at_minimum is not None
    assert (ample.used_bytes, at_minimum.outputs) == (shared.used_bytes, ample.outputs)
    assert run(image, f"shared:{shared.min_exact_bytes - 1}") is None


def test_an_offline_plan(build: Callable[[Path, Path], Path], tmp_path: Path) -> None:
    source = EXAMPLES / "residual.tflite"
    model = read_model(source)
    better = plan_offline(model, planned("residual"))
    copy = tmp_path / "better.tflite"
    copy.write_bytes(better.data)
    before, after = build(source, source), build(copy, source)
    reference = run(before, f"one:{align(AMPLE)}")
    ample = run(after, f"one:{align(AMPLE)}")
    assert reference is not None and ample is not None
    assert ample.outputs == reference.outputs
    assert ample.used_bytes == better.plan.used_bytes < reference.used_bytes
    smallest = run(after, f"one:{better.plan.min_exact_bytes}")
    assert smallest is not None and smallest.outputs == reference.outputs
    assert run(after, f"one:{better.plan.min_exact_bytes - 1}") is None
    assert parse_model(better.data).subgraphs == model.subgraphs


def align(size: int) -> int:
    return size // 16 * 16
