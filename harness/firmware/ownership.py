"""Who brings which bytes of a program: read from the linker's map file."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from harness.firmware.image import OwnerSizes

_KINDS = {".vectors": "text", ".text": "text", ".rodata": "rodata", ".ARM.exidx": "rodata", ".data": "data"}
_KINDS |= {".bss": "bss", ".noinit": "bss", ".arena": "bss"}
_OUTPUT = re.compile(r"^(\.[A-Za-z][\w.]*)(?:\s+0x[0-9a-f]+\s+0x[0-9a-f]+.*)?$")
_INPUT = re.compile(r"^ +(?:(\.\S+|COMMON)\s+)?0x([0-9a-f]+)\s+0x([0-9a-f]+)\s+(\S.*)$")
_NAME_ALONE = re.compile(r"^ (\.\S+|COMMON)$")
_FILL = re.compile(r"^ \*fill\*\s+0x[0-9a-f]+\s+0x([0-9a-f]+)")


def owner_of(input_section: str, file: str) -> str:
    """``model``, ``arena``, ``runtime``, ``kernels``, ``libc`` or ``harness``."""
    if input_section in {".rodata.model"} or input_section.startswith(".rodata.baked_input"):
        return "model"
    if input_section == ".arena":
        return "arena"
    match = re.search(r"libtensorflow-microlite\.a\(([^)]*)\)", file)
    if match:
        return "kernels" if _is_kernel(match.group(1)) else "runtime"
    return "libc" if re.search(r"\.a\(|crt\w*\.o$", file) else "harness"


#: Members of the library that are TFLM's core; all others are kernels (or the libraries behind them).
_CORE = re.compile(
    r"^(micro_|recording_|.*_arena_buffer|memory_|greedy_memory|linear_memory|non_persistent|persistent_|single_arena"
    r"|fake_micro|flatbuffer|debug_log|system_setup|error_reporter|common|tensor_utils|schema_utils|op_resolver"
    r"|hexdump|array|mock_micro|test_helper|.*memory_planner|.*_conversions|compatibility|reference_)"
)


def _is_kernel(member: str) -> bool:
    return not _CORE.match(member)


def parse_map(text: str) -> Mapping[str, OwnerSizes]:
    """Bytes per owner; alignment gaps are the owner's before them. Sections that the linker dropped do not count."""
    _, _, body = text.partition("Linker script and memory map")
    sizes: dict[str, OwnerSizes] = defaultdict(OwnerSizes)
    kind, pending, owner = "", "", "harness"
    for line in body.splitlines():
        if line and not line.startswith(" "):
            match = _OUTPUT.match(line)
            kind, pending = _KINDS.get(match.group(1), "") if match else "", ""
            continue
        if not kind:
            continue
        if alone := _NAME_ALONE.match(line):
            pending = alone.group(1)
        elif fill := _FILL.match(line):
            sizes[owner] = _grown(sizes[owner], kind, int(fill.group(1), 16))
        elif entry := _INPUT.match(line):
            owner = owner_of(entry.group(1) or pending, entry.group(4))
            sizes[owner] = _grown(sizes[owner], kind, int(entry.group(3), 16))
            pending = ""
    return {name: sizes[name] for name in sorted(sizes)}


def _grown(sizes: OwnerSizes, kind: str, count: int) -> OwnerSizes:
    return replace(sizes, **{kind: getattr(sizes, kind) + count})
