"""Which operators TFLM has a kernel for, and with which types, ranks and quantisation each kernel works.

Read from TFLM 90b983c: ``tensorflow/lite/micro/micro_mutable_op_resolver.h`` (what can be registered) and, per kernel,
the conditions of ``Prepare`` and the type switches of ``Eval`` in ``tensorflow/lite/micro/kernels/*.cc`` (for
``cmsis_nn`` the file of the same name in ``kernels/cmsis_nn``; custom operators in ``signal/micro/kernels``). Where a
kernel does not look at a type that it reads as another one, the table asks for the type that it reads. "Newer" marks
what the tflite-micro package 0.dev20261023182759 (TFLM 8f6596d) was measured to take beyond that: 90b983c refuses it
with an error of its own.

The types of a kernel are rows ``inputs > outputs`` separated by ``|``; a word is a type or several (``i8/i4``), with
``?`` where the tensor may be absent and ``*`` for any number more of the same; ``.`` is any type; ``T`` is one type
for the whole row, out of the row's ``T=…`` where it says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from harness.model.graph import TensorType

REFERENCE = "reference"
CMSIS_NN = "cmsis_nn"
KERNEL_SETS = (REFERENCE, CMSIS_NN)

_TYPES = {
    "f": TensorType.FLOAT32,
    "i4": TensorType.INT4,
    "i8": TensorType.INT8,
    "i16": TensorType.INT16,
    "i32": TensorType.INT32,
    "i64": TensorType.INT64,
    "u8": TensorType.UINT8,
    "u32": TensorType.UINT32,
    "u64": TensorType.UINT64,
    "b": TensorType.BOOL,
    "res": TensorType.RESOURCE,
}
#: RuntimeShape::kMaxSmallSize, tensorflow/lite/kernels/internal/runtime_shape.h.
MAX_RANK = 6


class Match(Enum):
    YES = "yes"
    COUNT = "count"  # too few, too many, or an absent one that the kernel needs
    TYPES = "types"


@dataclass(frozen=True, slots=True)
class Word:
    """One place of a row. ``types`` empty: any type. ``bound``: the row's one type."""

    types: frozenset[int]
    optional: bool = False
    repeated: bool = False
    bound: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    inputs: tuple[Word, ...]
    outputs: tuple[Word, ...]
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """``input_ranks`` and ``output_ranks``: (place, least, most). ``quantized``: the places, inputs then outputs, whose
    scale an integer kernel divides by or multiplies with. ``constants``: inputs whose value Prepare needs.
    ``broadcast_rank``: the largest rank at which inputs of different shapes work, 0 where that is not looked at."""

    rows: tuple[Row, ...]
    input_ranks: tuple[tuple[int, int, int], ...] = ()
    output_ranks: tuple[tuple[int, int, int], ...] = ()
    quantized: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    constants: tuple[int, ...] = ()
    max_inputs: int = 0
    broadcast_rank: int = 0

    @property
    def text(self) -> str:
        return "; ".join(row.text for row in self.rows)


def _word(text: str) -> Word:
    optional, repeated = text.endswith("?"), text.endswith("*")
    text = text.rstrip("?*")
    types = frozenset() if text in {".", "T"} else frozenset(int(_TYPES[name]) for name in text.split("/"))
    return Word(types, optional, repeated, text == "T")


def _rows(spec: str) -> tuple[Row, ...]:
    rows: list[Row] = []
    for line in spec.split("|"):
        head, _, body = line.rpartition(":")
        for choice in head.strip().removeprefix("T=").split("/") if head else [""]:
            text = " ".join(choice + word[1:] if choice and word.startswith("T") else word for word in body.split())
            inputs, outputs = (side.split() for side in (text + " ").split(">"))
            rows.append(Row(tuple(map(_word, inputs)), tuple(map(_word, outputs)), _readable(text)))
    return tuple(rows)


def _readable(text: str) -> str:
    """``f f? > f`` → ``FLOAT32, FLOAT32? → FLOAT32``."""

    def name(word: str) -> str:
        tail = word[len(word.rstrip("?*")) :]
        core = word.rstrip("?*")
        names = {".": "any", "T": "the same"}
        return "/".join(names.get(part) or _TYPES[part].name for part in core.split("/")) + tail

    inputs, outputs = (", ".join(map(name, side.split())) or "nothing" for side in (text + " ").split(">"))
    return f"{inputs} → {outputs}"


def _ranks(spec: str) -> tuple[tuple[int, int, int], ...]:
    """``"0:4 1:2-5"`` → ((0, 4, 4), (1, 2, 5))."""
    ranks = []
    for word in spec.split():
        place, _, limits = word.partition(":")
        least, _, most = limits.partition("-")
        ranks.append((int(place), int(least), int(most or least)))
    return tuple(ranks)


def _kernel(
    spec: str,
    ranks: str = "",
    output_ranks: str = "",
    quantized: str = "",
    constants: tuple[int, ...] = (),
    max_inputs: int = 0,
    broadcast_rank: int = 0,
) -> Kernel:
    places = [tuple(map(int, side.split())) for side in quantized.split(">")] if quantized else [(), ()]
    return Kernel(
        _rows(spec),
        _ranks(ranks),
        _ranks(output_ranks),
        (places[0], places[1]),
        constants,
        max_inputs,
        broadcast_rank,
    )


def _unary(types: str) -> Kernel:
    return _kernel(f"T={types}: T > T", quantized="0 > 0")


def _binary(types: str, broadcast_rank: int) -> Kernel:
    return _kernel(f"T={types}: T T > T", quantized="0 1 > 0", broadcast_rank=broadcast_rank)


def _compare(types: str) -> Kernel:
    return _kernel(f"T={types}: T T > b", quantized="0 1 > ", broadcast_rank=4)


def _reduce(types: str) -> Kernel:
    return _kernel(f"T={types}: T i32 > T", quantized="0 > 0")


_CONV_ROWS = "f f f? > f | i8 i8/i4 i32? > i8 | i16 i8 i32/i64? > i16"
_DEPTHWISE_ROWS = "f f f? > f | i8 i8/i4 i32? > i8 | i16 i8 i64? > i16"
_TRANSPOSE_CONV_ROWS = "i32 f f f? > f | i32 i8 i8 i32? > i8"

#: Builtin operators of the reference kernels.
REFERENCE_KERNELS: Mapping[str, Kernel] = {
    "ABS": _unary("f/i8/i16"),
    "ADD": _binary("f/i8/i16/i32", 6),
    "ADD_N": _kernel("T=f/i8: T T T* > T", quantized="0 > 0"),
    "ARG_MAX": _kernel("f/i8 i32 > i32"),
    "ARG_MIN": _kernel("f/i8 i32 > i32"),
    "ASSIGN_VARIABLE": _kernel("res/i32 . >"),
    "AVERAGE_POOL_2D": _kernel("T=f/i8/i16: T > T", ranks="0:4", output_ranks="0:4", quantized="0 > 0"),
    "BATCH_MATMUL": _kernel("T=f/i8/i16: T T > T", ranks="0:2-5 1:2-5", quantized="0 1 > 0"),
    "BATCH_TO_SPACE_ND": _kernel("T=f/i8: T i32 i32 > T", ranks="0:3-4", output_ranks="0:3-4"),
    "BROADCAST_ARGS": _kernel("T=i32/i64: T T > T", ranks="0:1 1:1", output_ranks="0:1"),
    "BROADCAST_TO": _kernel("T i32/i64 > T", ranks="0:0-5 1:1", output_ranks="0:0-5", constants=(1,)),
    "CALL_ONCE": _kernel(">"),
    "CAST": _kernel("f/i8/i16/i32/u32/b > f/i8/i16/i32/u32/b"),  # to BOOL: newer
    "CEIL": _kernel("f > f"),
    "CONCATENATION": _kernel("T=f/i8/i16/i32/i64/b: T T* > T", max_inputs=10),
    "CONV_2D": _kernel(_CONV_ROWS, ranks="0:4 1:4", output_ranks="0:4", quantized="0 1 > 0"),
    "COS": _kernel("f > f"),
    "CUMSUM": _kernel("T=f/i8: T i32 > T", ranks="0:1-6", quantized="0 > 0"),
    "DEPTHWISE_CONV_2D": _kernel(_DEPTHWISE_ROWS, ranks="0:4 1:4", output_ranks="0:4", quantized="0 1 > 0"),
    "DEPTH_TO_SPACE": _kernel("T=f/i8: T > T", ranks="0:4", output_ranks="0:4"),
    "DEQUANTIZE": _kernel("i8/i16/u8 > f", quantized="0 > "),
    "DIV": _binary("f/i8/i32", 6),
    "DYNAMIC_UPDATE_SLICE": _kernel("T=f/i8/i16/i32: T T i32/i64 > T", ranks="2:1"),
    "ELU": _unary("f/i8"),
    "EMBEDDING_LOOKUP": _kernel("i32 f > f | i32 i8 > f/i8", ranks="0:1 1:2-6"),
    "EQUAL": _compare("f/b/i8/i32/i64"),
    "EXP": _kernel("f > f"),
    "EXPAND_DIMS": _kernel("T=f/i8/i16: T i32 > T", ranks="1:0-1", constants=(1,)),
    "FILL": _kernel("T=f/i8/i32: i8/i16/i32/i64 T > T", ranks="0:1 1:0", constants=(0,)),
    "FLOOR": _kernel("f > f"),
    "FLOOR_DIV": _binary("f", 4),
    "FLOOR_MOD": _binary("f", 4),
    "FULLY_CONNECTED": _kernel(_CONV_ROWS, ranks="1:2-6", quantized="0 1 > 0"),
    "GATHER": _kernel("T=f/i8: T i32 > T", ranks="0:1-6"),
    "GATHER_ND": _kernel("T=f/i8: T i32 > T", ranks="0:1-6 1:1-6"),
    # Eval has a case for int16, but Prepare does not set the scaling that it uses
    "GREATER": _compare("f/i8/i32/i64"),
    "GREATER_EQUAL": _compare("f/i8/i32/i64"),
    "HARD_SWISH": _unary("f/i8"),
    "IF": _kernel("b .* > .*"),
    "L2_NORMALIZATION": _kernel("T=f/i8: T > T", ranks="0:1-4"),
    "L2_POOL_2D": _kernel("f > f", ranks="0:4", output_ranks="0:4"),
    "LEAKY_RELU": _unary("f/i8/i16"),
    "LESS": _compare("f/i8/i32/i64"),
    "LESS_EQUAL": _compare("f/i8/i32/i64"),
    "LOG": _kernel("f > f"),
    "LOGICAL_AND": _binary("b", 4),
    "LOGICAL_NOT": _kernel("b > b"),
    "LOGICAL_OR": _binary("b", 4),
    "LOGISTIC": _unary("f/i8/i16"),
    "LOG_SOFTMAX": _unary("f/i8"),
    "MAXIMUM": _kernel("T=f/i8/i16/i32/i64: T T > T", broadcast_rank=6),
    "MAX_POOL_2D": _kernel("T=f/i8/i16: T > T", ranks="0:4", output_ranks="0:4"),
    "MEAN": _reduce("f/i8/i16"),
    "MINIMUM": _kernel("T=f/i8/i16/i32/i64: T T > T", broadcast_rank=6),
    "MIRROR_PAD": _kernel("T=f/i8: T i32/i64 > T", ranks="1:2"),
    "MUL": _binary("f/i8/i16/i32", 6),
    "NEG": _kernel("f > f"),
    "NOT_EQUAL": _compare("f/b/i8/i32/i64"),
    "PACK": _kernel("T=f/i8/i16/i32/i64: T T* > T"),
    "PAD": _kernel("T=f/i8/i16/i32: T i32 T? > T", ranks="0:0-5", constants=(1,)),
    "PADV2": _kernel("T=f/i8/i16/i32: T i32 T? > T", ranks="0:0-5", constants=(1,)),
    "PRELU": _kernel("f f > f | i8 i8 > i8 | i16 i8 > i16", quantized="0 1 > 0", broadcast_rank=4),
    "QUANTIZE": _kernel(
        "f > i8/i16 | i32 > i8/i16 | i16 > i8/i16/i32 | i8 > i8/u8/i16/i32 | u8 > i8", quantized="0 > 0"
    ),
    "READ_VARIABLE": _kernel("res > ."),
    "REDUCE_ALL": _kernel("b i32 > b"),
    "REDUCE_MAX": _kernel("T=f/i8: T i32 > T"),
    "REDUCE_MIN": _kernel("T=f/i8: T i32 > T"),
    "RELU": _unary("f/i8/i16"),
    "RELU6": _unary("f/i8/i16"),
    "RESHAPE": _kernel("T .? > T"),
    "RESIZE_BILINEAR": _kernel("T=f/i8: T i32 > T", ranks="0:4 1:1", output_ranks="0:4", constants=(1,)),
    "RESIZE_NEAREST_NEIGHBOR": _kernel("T=f/i8/i16: T i32 > T", ranks="0:4 1:1", output_ranks="0:4", constants=(1,)),
    "REVERSE_V2": _kernel("T=f/i8/u8/i16/i32/i64/b: T i32 > T", ranks="1:1"),
    "ROUND": _kernel("f > f"),
    "RSQRT": _unary("f/i8/i16"),  # INT16: newer
    "SELECT_V2": _kernel("T=f/i8/i16: b T T > T", broadcast_rank=5),
    "SHAPE": _kernel(". > i32"),
    "SIN": _kernel("f > f"),
    "SLICE": _kernel("T=f/i8/i16/i32/b: T i32/i64 i32/i64 > T", ranks="0:0-5"),
    "SOFTMAX": _kernel("f > f | i8 > i8/i16 | i16 > i16", ranks="0:1-6", quantized="0 > 0"),
    "SPACE_TO_BATCH_ND": _kernel("T=f/i8: T i32 i32 > T", ranks="0:3-4", output_ranks="0:3-4"),
    "SPACE_TO_DEPTH": _kernel("T=f/i8: T > T", ranks="0:4", output_ranks="0:4"),
    "SPLIT": _kernel("T=f/i8/i16/i32: i32 T > T T*", constants=(0,)),
    "SPLIT_V": _kernel("T=f/i8/i16/i32: T i32/i64 i32 > T T*", constants=(2,)),
    "SQRT": _kernel("f > f"),
    "SQUARE": _kernel("f > f"),
    "SQUARED_DIFFERENCE": _binary("f/i8/i16/i32", 4),
    "SQUEEZE": _kernel("T > T"),
    "STRIDED_SLICE": _kernel("T=f/i8/i16/i32/b: T i32 i32 i32 > T", ranks="0:0-4", constants=(1, 2, 3)),
    "SUB": _binary("f/i8/i16/i32", 6),
    "SUM": _reduce("f/i8/i16"),
    "SVDF": _kernel(
        "f f f f? f > f | i8 i8 i8 i32? i8 > i8 | i8 i8 i16 i32? i16 > i8",
        ranks="0:2 1:2 2:2 4:2",
        output_ranks="0:2",
        quantized="0 1 2 4 > 0",
    ),
    "TANH": _unary("f/i8/i16"),
    "TRANSPOSE": _kernel("T=f/i8/i16: T i32 > T", ranks="0:0-5 1:1", constants=(1,)),
    "TRANSPOSE_CONV": _kernel(
        _TRANSPOSE_CONV_ROWS + " | i32 i8 i16 i16/i64? > i16", ranks="1:4 2:4", output_ranks="0:4", quantized="1 2 > 0"
    ),
    # the 24 inputs: input, 8 weights, 3 peephole, 4 biases, 2 projection, 2 states, 4 layer norm (lstm_shared.h)
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _kernel(
        "f f f f f f f f f .? .? .? f f f f .? .? f f .? .? .? .? > f"
        " | i8 i8 i8 i8 i8 i8 i8 i8 i8 .? .? .? i32 i32 i32 i32 .? .? i8 i16 .? .? .? .? > i8"
        " | i16 i8 i8 i8 i8 i8 i8 i8 i8 .? .? .? i64 i64 i64 i64 .? .? i16 i16 .? .? .? .? > i16",
        ranks="0:3",
        output_ranks="0:3",
        quantized="0 1 2 3 4 5 6 7 8 18 19 > 0",
    ),
    "UNPACK": _kernel("T=f/i8/i16/i32: T > T*"),
    "VAR_HANDLE": _kernel("> res"),
    "WHILE": _kernel(".* > .*"),
    "ZEROS_LIKE": _kernel("T=f/i8/i32/i64: T > T"),
}

#: Where the CMSIS-NN kernels differ from the reference kernels.
CMSIS_NN_DIFFERENCES: Mapping[str, Kernel] = {
    "BATCH_MATMUL": _kernel("T=f/i8/i16: T T > T", ranks="0:2-4 1:2-4", quantized="0 1 > 0"),
    # EvalQuantizedInt16 reads the bias as int64
    "FULLY_CONNECTED": _kernel(_DEPTHWISE_ROWS, ranks="1:2-6", quantized="0 1 > 0"),
    # the int16 kernel follows the bias pointer without asking whether there is one
    "TRANSPOSE_CONV": _kernel(
        _TRANSPOSE_CONV_ROWS + " | i32 i8 i16 i16/i64 > i16", ranks="1:4 2:4", output_ranks="0:4", quantized="1 2 > 0"
    ),
    "TRANSPOSE": _kernel("T=f/i8/i16: T i32 > T", ranks="0:0-5 1:1", constants=(1,)),
}

#: Custom operators that TFLM registers under these names.
CUSTOM_KERNELS: Mapping[str, Kernel] = {
    "CIRCULAR_BUFFER": _kernel("i8 > i8", ranks="0:4", output_ranks="0:4"),
    "SignalDelay": _kernel("i16 > i16"),
    "SignalEnergy": _kernel("i16 > u32"),
    "SignalFftAutoScale": _kernel("i16 > i16 i32"),
    "SignalFilterBank": _kernel("u32 i16 i16 i16 i16 i16 > u64"),
    "SignalFilterBankLog": _kernel("u32 > i16"),
    "SignalFilterBankSpectralSubtraction": _kernel("u32 > u32 u32"),
    "SignalFilterBankSquareRoot": _kernel("u64 i32 > u32"),
    "SignalFramer": _kernel("i16 > i16 b"),
    "SignalIrfft": _kernel("T=f/i16/i32: T > T"),
    "SignalOverlapAdd": _kernel("T=f/i16: T > T"),
    "SignalPCAN": _kernel("u32 u32 i16 > u32"),
    "SignalRfft": _kernel("T=f/i16/i32: T > T"),
    "SignalStacker": _kernel("i16 > i16 b"),
    "SignalWindow": _kernel("i16 i16 > i16"),
    "TFLM_DECODE": _kernel(".* > .*"),
    "TFLite_Detection_PostProcess": _kernel("f f f > f f f f", ranks="0:3 1:3 2:2"),
}


def find_kernel(name: str, *, custom: bool, kernels: str = REFERENCE) -> Kernel | None:
    """The kernel of an operator in a kernel set; None where TFLM has none."""
    if custom:
        return CUSTOM_KERNELS.get(name)
    if kernels == CMSIS_NN and name in CMSIS_NN_DIFFERENCES:
        return CMSIS_NN_DIFFERENCES[name]
    return REFERENCE_KERNELS.get(name)


@lru_cache(maxsize=4096)
def match_types(kernel: Kernel, inputs: tuple[int | None, ...], outputs: tuple[int | None, ...]) -> Match:
    """Whether a kernel takes these types; None stands for an absent tensor (index -1)."""
    best = Match.COUNT
    for row in kernel.rows:
        bound: list[int] = []
        found = _match_side(row.inputs, inputs, bound)
        if found is Match.YES:
            found = _match_side(row.outputs, outputs, bound)
        if found is Match.YES:
            return found
        if found is Match.TYPES:
            best = found
    return best


def _match_side(words: Sequence[Word], types: Sequence[int | None], bound: list[int]) -> Match:
    last = words[-1] if words else None
    if len(types) > len(words) and not (last is not None and last.repeated):
        return Match.COUNT
    result = Match.YES
    for place, word in enumerate(words):
        given: Sequence[int | None] = types[place:] if word.repeated else types[place : place + 1]
        if not given and not (word.optional or word.repeated):
            return Match.COUNT
        for kind in given:
            if kind is None:
                if not word.optional:
                    return Match.COUNT
            elif not _takes(word, kind, bound):
                result = Match.TYPES
    return result


def _takes(word: Word, kind: int, bound: list[int]) -> bool:
    if word.bound:
        if not bound:
            bound.append(kind)
        return kind == bound[0]
    return not word.types or kind in word.types
