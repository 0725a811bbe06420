"""sizeof and alignof of TFLM's structs, by compiling them with the library's own headers and flags."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from harness.board.record import Fpu
from harness.deadline import Deadline
from harness.firmware.elf import read_object_data
from harness.firmware.library import TflmLibrary
from harness.firmware.toolchain import Toolchain, find_toolchain
from harness.paths import firmware_templates_dir

#: Flags that name the instruction set and FPU that the library was made for.
_ARCHS = {11: "armv6s-m", 12: "armv6s-m", 10: "armv7-m", 13: "armv7e-m", 16: "armv8-m.base", 17: "armv8-m.main"}
_TIMEOUT_S = 120.0


def compile_struct_sizes(library: TflmLibrary, toolchain: Toolchain | None = None) -> dict[str, tuple[int, int]]:
    """Struct → (size, alignment) in bytes, for the list in firmware_templates/src/sizes.inc. Nothing is run: they
    are read from the object's data."""
    tools = toolchain or find_toolchain()
    rows = (firmware_templates_dir() / "src" / "sizes.inc").read_text(encoding="utf-8")
    names = re.findall(r'^SIZE\("([^"]+)"', rows, re.MULTILINE)
    source = (
        '#include "tensorflow/lite/c/builtin_op_data.h"\n'
        '#include "tensorflow/lite/micro/micro_allocator.h"\n'
        '#include "tensorflow/lite/micro/micro_interpreter.h"\n'
        "extern const unsigned short kSizes[][2];\n"
        "#define SIZE(name, type) {sizeof(type), alignof(type)},\n"
        "const unsigned short kSizes[][2] = {\n" + rows + "};\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "sizes.cc", Path(folder) / "sizes.o"
        path.write_text(source, encoding="utf-8")
        flags = ("-std=c++17", "-Os", "-mthumb", *_arch_flags(library), *(f"-D{name}" for name in library.defines))
        argv = tools.compile_argv(path, out, flags, (), library.include_dirs)
        tools.run(argv, Deadline.after(_TIMEOUT_S), cwd=Path(folder))
        data = read_object_data(out, "kSizes")
    numbers = [int.from_bytes(data[at : at + 2], "little") for at in range(0, len(data), 2)]
    return {name: (numbers[2 * i], numbers[2 * i + 1]) for i, name in enumerate(names)}


def _arch_flags(library: TflmLibrary) -> tuple[str, ...]:
    arch = _ARCHS.get(library.cpu_arch, "armv7e-m")
    if library.float_abi == "soft":
        return (f"-march={arch}", "-mfloat-abi=soft")
    fpu = "fpv5-d16" if library.fpu is Fpu.DOUBLE else "fpv5-sp-d16" if library.cpu_arch > 13 else "fpv4-sp-d16"
    return (f"-march={arch}", f"-mfpu={fpu}", f"-mfloat-abi={library.float_abi}")
