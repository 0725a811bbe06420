"""Builds the fake TFLM library (README.md): a tree with include/ and lib/ as a real one has."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.patience import PATIENCE_S

HERE = Path(__file__).resolve().parent

#: TARGET_ARCH → machine flags, as TFLM's own makefile has them (GCC chooses the core's widest FPU).
ARCHS = {
    "cortex-m4+fp": ("-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard"),
    "cortex-m7+fp": ("-mcpu=cortex-m7", "-mfpu=fpv5-d16", "-mfloat-abi=hard"),
    "cortex-m33": ("-mcpu=cortex-m33", "-mfpu=fpv5-sp-d16", "-mfloat-abi=hard"),
    "cortex-m4": ("-mcpu=cortex-m4", "-mfloat-abi=soft"),
}


def build_fake_tflm(
    root: Path, arch: str = "cortex-m4+fp", kernels: str = "cmsis_nn", extra: tuple[str, ...] = ()
) -> Path:
    """Compile the fake into ``root/ARCH-KERNELS`` and return that folder. ``extra`` flags make odd ones."""
    tree = root / "-".join([arch, kernels, *(flag.strip("-") for flag in extra)])
    if (tree / "lib" / "libtensorflow-microlite.a").is_file():
        return tree
    shutil.copytree(HERE / "include", tree / "include", dirs_exist_ok=True)
    # what the harness looks for to know a tree
    (tree / "lib").mkdir(exist_ok=True)
    compiler = shutil.which("arm-none-eabi-g++")
    assert compiler is not None, "the caller skips without a compiler"
    flags = [*ARCHS[arch], "-mthumb", "-std=c++17", "-Os", "-fno-rtti", "-fno-exceptions", "-ffunction-sections"]
    flags += ["-fno-unwind-tables", "-fno-asynchronous-unwind-tables", "-Wall", "-Wextra", "-Werror", *extra]
    flags += [f"-DFAKE_CMSIS_NN={int(kernels == 'cmsis_nn')}", f"-I{HERE / 'include'}"]
    obj = tree / "fake_tflm.o"
    subprocess.run([compiler, *flags, "-c", str(HERE / "fake_tflm.cc"), "-o", str(obj)], check=True, timeout=PATIENCE_S)
    archiver = compiler.replace("g++", "ar")
    archive = tree / "lib" / "libtensorflow-microlite.a"
    subprocess.run([archiver, "rcs", str(archive), str(obj)], check=True, timeout=PATIENCE_S)
    return tree
