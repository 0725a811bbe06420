"""The sizes and alignments of TFLM's structures under one ABI and build.

``structs.json`` holds sizeof and alignof as two compilers printed them for TFLM 90b983c (CMSIS-NN 4ab83cc): the columns
``ilp32`` (arm-none-eabi-g++ 12.2.1, bare metal, so enums are one byte), ``ilp32_long_enums`` (the same with
``-fno-short-enums``: what armclang and Xtensa compilers do) and ``lp64`` (g++ 12, x86-64). ``k::T`` is struct T of
kernels/k.cc, ``cmsis_nn_k::T`` of kernels/cmsis_nn/k.cc, ``signal_k::T`` of signal/micro/kernels/k.cc.
``CircularBuffer`` is counted from signal/src/circular_buffer.h; ``kiss_fft_state`` (without its first twiddle) and
``kiss_fftr_state`` from kissfft v130, which TFLM pins.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

from harness.errors import UsageError

TFLM_COMMIT = "90b983c2b3f1480642e040bbd2ddb37b998f3424"
#: The commit in the metadata of the PyPI wheel tflite-micro 0.dev20261023182759.
WHEEL_COMMIT = "8f6596d"


@dataclass(frozen=True, slots=True)
class Struct:
    size_bytes: int
    alignment: int


@dataclass(frozen=True, slots=True)
class Abi:
    """Structure sizes of one build of TFLM.

    ``compression``: built with USE_TFLM_COMPRESSION. ``resource_variables_in_arena``: MicroResourceVariables live in
    the model's own arena (the Python wheel), not in one of their own (firmware). ``doubts`` says why numbers made with
    these sizes are only an estimate; empty for the builds against which the plan was verified byte for byte.
    """

    name: str
    tflm_commit: str
    structs: Mapping[str, Struct]
    compression: bool = False
    control_flow_by_new_code_only: bool = True
    resource_variables_in_arena: bool = False
    doubts: tuple[str, ...] = ()

    def size(self, struct: str) -> int:
        """sizeof(struct), bytes."""
        return self.structs[struct].size_bytes

    def alignment(self, struct: str) -> int:
        """alignof(struct), bytes."""
        return self.structs[struct].alignment

    @property
    def pointer_bytes(self) -> int:
        return self.structs["void*"].size_bytes

    def int_array_bytes(self, count: int) -> int:
        """TfLiteIntArrayGetSizeInBytes: the length word and ``count`` ints."""
        return self.structs["TfLiteIntArray"].size_bytes + self.structs["int"].size_bytes * count


@cache
def _table() -> Mapping[str, Mapping[str, Struct]]:
    document = json.loads(files("harness.abi").joinpath("structs.json").read_text(encoding="utf-8"))
    columns: dict[str, dict[str, Struct]] = {name: {} for name in document["columns"]}
    for struct, sizes in document["structs"].items():
        for column, (size, alignment) in zip(columns.values(), sizes, strict=True):
            column[struct] = Struct(size, alignment)
    return columns


#: What USE_TFLM_COMPRESSION adds on LP64 (the #ifdef parts of the headers and kernels at 90b983c): two scratch indices
#: in conv, depthwise, transpose conv and fully connected; one per input in concatenation; a tensor list per subgraph;
#: one more category in the recording allocator.
_COMPRESSION = {
    "OpDataConv": Struct(80, 8),
    "OpDataFullyConnected": Struct(72, 8),
    "TfLiteFullyConnectedParams": Struct(32, 8),
    "transpose_conv::OpData": Struct(88, 8),
    "concatenation::OpData": Struct(80, 8),
    "SubgraphAllocations": Struct(24, 8),
    "RecordingMicroAllocator": Struct(272, 8),
}


@cache
def abi_named(name: str) -> Abi:
    """``ilp32``, ``ilp32_long_enums`` or ``lp64``. Raises UsageError for another name."""
    match name:
        case "ilp32":
            return Abi(name, TFLM_COMMIT, _table()[name])
        case "ilp32_long_enums":
            doubt = "4-byte enums: the sizes are this compiler's, but no arena was measured with them"
            return Abi(name, TFLM_COMMIT, _table()[name], doubts=(doubt,))
        case "lp64":
            return Abi(name, WHEEL_COMMIT, {**_table()[name], **_COMPRESSION}, True, False, True)
    raise UsageError(
        f"no ABI is named {name}", remedy="the ABIs are ilp32 (Cortex-M), ilp32_long_enums and lp64 (host)"
    )


ILP32 = "ilp32"
ILP32_LONG_ENUMS = "ilp32_long_enums"
LP64 = "lp64"


def abi_reported(sizes: Mapping[str, int], tflm_commit: str) -> Abi:
    """The ABI that a board reports: its own sizeof by structure name (bytes), and its TFLM commit.

    The nearest known ABI (by the size of a pointer and of an enum) fills in what was not reported. The result is free
    of doubt only when the commit and every reported size are those of that ABI.
    """
    if sizes.get("void*", 4) == 8:
        base = abi_named(LP64)
    else:
        base = abi_named(ILP32_LONG_ENUMS if sizes.get("TfLiteType", 1) == 4 else ILP32)
    doubts = []
    if not _same_commit(tflm_commit, base.tflm_commit):
        doubts.append(
            f"the board runs TFLM {tflm_commit[:12]}, the rules are those of {base.tflm_commit[:12]}: its kernels may "
            "ask for other buffers"
        )
    structs = dict(base.structs)
    for name, size in sizes.items():
        known = structs.get(name)
        if known is None or known.size_bytes != size:
            doubts.append(f"sizeof({name}) is {size} on the board" + (f", {known.size_bytes} here" if known else ""))
            structs[name] = Struct(size, known.alignment if known else base.pointer_bytes)
    doubts = [*base.doubts, *doubts]
    if doubts:
        doubts.append(_UNSEEN_OPTIONS)
    return replace(base, tflm_commit=tflm_commit, structs=structs, doubts=tuple(doubts))


#: What changes a plan without changing a size that a board reports.
_UNSEEN_OPTIONS = (
    "not visible in sizes: armclang (CMSIS-NN asks for other scratch buffers), KERNELS_OPTIMIZED_FOR_SIZE (kernel sums "
    "become scratch buffers), compression (larger op data), other kernels than those of the plan"
)


def _same_commit(one: str, other: str) -> bool:
    length = min(len(one), len(other))
    return length >= 7 and one[:length] == other[:length]
