"""Which operators TFLM has a kernel for, and with which types, ranks and quantisation each kernel works.

Read from TFLM 90b983c: ``tensorflow/lite/micro/micro_mutable_op_resolver.h`` (what can be registered) and, per kernel,
the conditions of ``Prepare`` and the type switches of ``Eval`` in ``tensorflow/lite/micro/kernels/*.cc`` (for
``cmsis_nn`` the file of the same name in ``kernels/cmsis_nn``; custom operators in ``signal/micro/kernels``). Where a
kernel does not look at a type that it reads as another one, the table asks for the type that it reads. "Newer" marks
what the tflite-micro package 0.dev20261023182759 (TFLM 8f6596d) was measured to take beyond that: 90b983c refuses it
with an error of its own. tests/model/test_oracle.py holds the table against that package, type by type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from harness.model.kernel import Kernel, binary, compare, kernel, reduce, unary

REFERENCE = "reference"
CMSIS_NN = "cmsis_nn"
KERNEL_SETS = (REFERENCE, CMSIS_NN)

_CONV_ROWS = "f f f? > f | i8 i8/i4 i32? > i8 | i16 i8 i32/i64? > i16"
#: CalculateOpDataDepthwiseConv gives back a bias that it did not get when its index is -1, and crashes.
_DEPTHWISE_ROWS = "f f f~ > f | i8 i8/i4 i32~ > i8 | i16 i8 i64~ > i16"
_TRANSPOSE_CONV_ROWS = "i32 f f f? > f | i32 i8 i8 i32? > i8"

#: Builtin operators of the reference kernels.
REFERENCE_KERNELS: Mapping[str, Kernel] = {
    "ABS": unary("f/i8/i16"),
    "ADD": binary("f/i8/i16/i32", 6),
    "ADD_N": kernel("T=f/i8: T T T* > T", quantized="0 > 0"),
    "ARG_MAX": kernel("f/i8 i32 > i32"),
    "ARG_MIN": kernel("f/i8 i32 > i32"),
    "ASSIGN_VARIABLE": kernel("res/i32 . >"),
    "AVERAGE_POOL_2D": kernel("T=f/i8/i16: T > T", ranks="0:4", output_ranks="0:4", quantized="0 > 0"),
    "BATCH_MATMUL": kernel("T=f/i8/i16: T T > T", ranks="0:2-5 1:2-5", quantized="0 1 > 0"),
    "BATCH_TO_SPACE_ND": kernel("T=f/i8: T i32 i32 > T", ranks="0:3-4", output_ranks="0:3-4"),
    "BROADCAST_ARGS": kernel("T=i32/i64: T T > T", ranks="0:1 1:1", output_ranks="0:1"),
    "BROADCAST_TO": kernel("T i32/i64 > T", ranks="0:0-5 1:1", output_ranks="0:0-5", constants=(1,)),
    "CALL_ONCE": kernel(">"),
    "CAST": kernel("f/i8/i16/i32/u32/b > f/i8/i16/i32/u32/b"),  # to BOOL: newer
    "CEIL": kernel("f > f"),
    "CONCATENATION": kernel("T=f/i8/i16/i32/i64/b: T T* > T", max_inputs=10),
    "CONV_2D": kernel(_CONV_ROWS, ranks="0:4 1:4", output_ranks="0:4", quantized="0 1 > 0"),
    "COS": kernel("f > f"),
    "CUMSUM": kernel("T=f/i8: T i32 > T", ranks="0:1-6", quantized="0 > 0"),
    "DEPTHWISE_CONV_2D": kernel(_DEPTHWISE_ROWS, ranks="0:4 1:4", output_ranks="0:4", quantized="0 1 > 0"),
    "DEPTH_TO_SPACE": kernel("T=f/i8: T > T", ranks="0:4", output_ranks="0:4"),
    "DEQUANTIZE": kernel("i8/i16/u8 > f", quantized="0 > "),
    "DIV": binary("f/i8/i32", 6),
    "DYNAMIC_UPDATE_SLICE": kernel("T=f/i8/i16/i32: T T i32/i64 > T", ranks="2:1"),
    "ELU": unary("f/i8"),
    "EMBEDDING_LOOKUP": kernel("i32 f > f | i32 i8 > f/i8", ranks="0:1 1:2-6"),
    "EQUAL": compare("f/b/i8/i32/i64"),
    "EXP": kernel("f > f"),
    "EXPAND_DIMS": kernel("T=f/i8/i16: T i32 > T", ranks="1:0-1", constants=(1,)),
    "FILL": kernel("T=f/i8/i32: i8/i16/i32/i64 T > T", ranks="0:1 1:0", constants=(0,)),
    "FLOOR": kernel("f > f"),
    "FLOOR_DIV": binary("f", 4),
    "FLOOR_MOD": binary("f", 4),
    "FULLY_CONNECTED": kernel(_CONV_ROWS, ranks="1:2-6", quantized="0 1 > 0"),
    "GATHER": kernel("T=f/i8: T i32 > T", ranks="0:1-6"),
    "GATHER_ND": kernel("T=f/i8: T i32 > T", ranks="0:1-6 1:1-6"),
    # Eval has a case for int16, but Prepare does not set the scaling that it uses
    "GREATER": compare("f/i8/i32/i64"),
    "GREATER_EQUAL": compare("f/i8/i32/i64"),
    "HARD_SWISH": unary("f/i8"),
    "IF": kernel("b .* > .*"),
    "L2_NORMALIZATION": kernel("T=f/i8: T > T", ranks="0:1-4"),
    "L2_POOL_2D": kernel("f > f", ranks="0:4", output_ranks="0:4"),
    "LEAKY_RELU": unary("f/i8/i16"),
    "LESS": compare("f/i8/i32/i64"),
    "LESS_EQUAL": compare("f/i8/i32/i64"),
    "LOG": kernel("f > f"),
    "LOGICAL_AND": binary("b", 4),
    "LOGICAL_NOT": kernel("b > b"),
    "LOGICAL_OR": binary("b", 4),
    "LOGISTIC": unary("f/i8/i16"),
    "LOG_SOFTMAX": unary("f/i8"),
    "MAXIMUM": kernel("T=f/i8/i16/i32/i64: T T > T", broadcast_rank=6),
    "MAX_POOL_2D": kernel("T=f/i8/i16: T > T", ranks="0:4", output_ranks="0:4"),
    "MEAN": reduce("f/i8/i16"),
    "MINIMUM": kernel("T=f/i8/i16/i32/i64: T T > T", broadcast_rank=6),
    "MIRROR_PAD": kernel("T=f/i8: T i32/i64 > T", ranks="1:2"),
    "MUL": binary("f/i8/i16/i32", 6),
    "NEG": kernel("f > f"),
    "NOT_EQUAL": compare("f/b/i8/i32/i64"),
    "PACK": kernel("T=f/i8/i16/i32/i64: T T* > T"),
    "PAD": kernel("T=f/i8/i16/i32: T i32 T? > T", ranks="0:0-5", constants=(1,)),
    "PADV2": kernel("T=f/i8/i16/i32: T i32 T? > T", ranks="0:0-5", constants=(1,)),
    "PRELU": kernel("f f > f | i8 i8 > i8 | i16 i8 > i16", quantized="0 1 > 0", broadcast_rank=4),
    "QUANTIZE": kernel(
        "f > i8/i16 | i32 > i8/i16 | i16 > i8/i16/i32 | i8 > i8/u8/i16/i32 | u8 > i8", quantized="0 > 0"
    ),
    "READ_VARIABLE": kernel("res > ."),
    "REDUCE_ALL": kernel("b i32 > b"),
    "REDUCE_MAX": kernel("T=f/i8: T i32 > T"),
    "REDUCE_MIN": kernel("T=f/i8: T i32 > T"),
    "RELU": unary("f/i8/i16"),
    "RELU6": unary("f/i8/i16"),
    "RESHAPE": kernel("T .? > T"),
    "RESIZE_BILINEAR": kernel("T=f/i8: T i32 > T", ranks="0:4 1:1", output_ranks="0:4", constants=(1,)),
    "RESIZE_NEAREST_NEIGHBOR": kernel("T=f/i8/i16: T i32 > T", ranks="0:4 1:1", output_ranks="0:4", constants=(1,)),
    "REVERSE_V2": kernel("T=f/i8/u8/i16/i32/i64/b: T i32 > T", ranks="1:1"),
    "ROUND": kernel("f > f"),
    "RSQRT": unary("f/i8/i16"),  # INT16: newer
    "SELECT_V2": kernel("T=f/i8/i16: b T T > T", broadcast_rank=5),
    "SHAPE": kernel(". > i32"),
    "SIN": kernel("f > f"),
    "SLICE": kernel("T=f/i8/i16/i32/b: T i32/i64 i32/i64 > T", ranks="0:0-5"),
    "SOFTMAX": kernel("f > f | i8 > i8/i16 | i16 > i16", ranks="0:1-6", quantized="0 > 0"),
    "SPACE_TO_BATCH_ND": kernel("T=f/i8: T i32 i32 > T", ranks="0:3-4", output_ranks="0:3-4"),
    "SPACE_TO_DEPTH": kernel("T=f/i8: T > T", ranks="0:4", output_ranks="0:4"),
    "SPLIT": kernel("T=f/i8/i16/i32: i32 T > T T*", constants=(0,)),
    "SPLIT_V": kernel("T=f/i8/i16/i32: T i32/i64 i32 > T T*", constants=(2,)),
    "SQRT": kernel("f > f"),
    "SQUARE": kernel("f > f"),
    "SQUARED_DIFFERENCE": binary("f/i8/i16/i32", 4),
    "SQUEEZE": kernel("T > T"),
    "STRIDED_SLICE": kernel("T=f/i8/i16/i32/b: T i32 i32 i32 > T", ranks="0:0-4", constants=(1, 2, 3)),
    "SUB": binary("f/i8/i16/i32", 6),
    "SUM": reduce("f/i8/i16"),
    # Prepare and Eval follow the bias pointer whether there is a bias or not (measured: they crash)
    "SVDF": kernel(
        "f f f f f > f | i8 i8 i8 i32 i8 > i8 | i8 i8 i16 i32 i16 > i8",
        ranks="0:2 1:2 2:2 4:2",
        output_ranks="0:2",
        quantized="0 1 2 4 > 0",
    ),
    "TANH": unary("f/i8/i16"),
    "TRANSPOSE": kernel("T=f/i8/i16: T i32 > T", ranks="0:0-5 1:1", constants=(1,)),
    "TRANSPOSE_CONV": kernel(
        _TRANSPOSE_CONV_ROWS + " | i32 i8 i16 i16/i64? > i16", ranks="1:4 2:4", output_ranks="0:4", quantized="1 2 > 0"
    ),
    # the 24 inputs: input, 8 weights, 3 peephole, 4 biases, 2 projection, 2 states, 4 layer norm (lstm_shared.h)
    "UNIDIRECTIONAL_SEQUENCE_LSTM": kernel(
        "f f f f f f f f f .? .? .? f f f f .? .? f f .? .? .? .? > f"
        " | i8 i8 i8 i8 i8 i8 i8 i8 i8 .? .? .? i32 i32 i32 i32 .? .? i8 i16 .? .? .? .? > i8"
        " | i16 i8 i8 i8 i8 i8 i8 i8 i8 .? .? .? i64 i64 i64 i64 .? .? i16 i16 .? .? .? .? > i16",
        ranks="0:3",
        output_ranks="0:3",
        quantized="0 1 2 3 4 5 6 7 8 18 19 > 0",
    ),
    "UNPACK": kernel("T=f/i8/i16/i32: T > T*"),
    "VAR_HANDLE": kernel("> res"),
    "WHILE": kernel(".* > .*"),
    "ZEROS_LIKE": kernel("T=f/i8/i32/i64: T > T"),
}

#: Where the CMSIS-NN kernels differ from the reference kernels.
CMSIS_NN_DIFFERENCES: Mapping[str, Kernel] = {
    "BATCH_MATMUL": kernel("T=f/i8/i16: T T > T", ranks="0:2-4 1:2-4", quantized="0 1 > 0"),
    # EvalQuantizedInt16 reads the bias as int64
    "FULLY_CONNECTED": kernel(
        "f f f? > f | i8 i8/i4 i32? > i8 | i16 i8 i64? > i16", ranks="1:2-6", quantized="0 1 > 0"
    ),
    # the int16 kernel follows the bias pointer without asking whether there is one
    "TRANSPOSE_CONV": kernel(
        _TRANSPOSE_CONV_ROWS + " | i32 i8 i16 i16/i64 > i16", ranks="1:4 2:4", output_ranks="0:4", quantized="1 2 > 0"
    ),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": replace(
        REFERENCE_KERNELS["UNIDIRECTIONAL_SEQUENCE_LSTM"], constants=(*range(1, 9), *range(12, 16))
    ),
}
#: Operators whose int8 kernel of CMSIS-NN describes a tensor by four dimensions (cmsis_nn_dims) and leaves out more.
CMSIS_NN_FOUR_DIMENSIONS = frozenset({"MAXIMUM", "MINIMUM", "PAD", "PADV2", "TRANSPOSE"})

#: Custom operators that TFLM registers under these names.
CUSTOM_KERNELS: Mapping[str, Kernel] = {
    "CIRCULAR_BUFFER": kernel("i8 > i8", ranks="0:4", output_ranks="0:4"),
    "SignalDelay": kernel("i16 > i16"),
    "SignalEnergy": kernel("i16 > u32"),
    "SignalFftAutoScale": kernel("i16 > i16 i32"),
    "SignalFilterBank": kernel("u32 i16 i16 i16 i16 i16 > u64"),
    "SignalFilterBankLog": kernel("u32 > i16"),
    "SignalFilterBankSpectralSubtraction": kernel("u32 > u32 u32"),
    "SignalFilterBankSquareRoot": kernel("u64 i32 > u32"),
    "SignalFramer": kernel("i16 > i16 b"),
    "SignalIrfft": kernel("T=f/i16/i32: T > T"),
    "SignalOverlapAdd": kernel("T=f/i16: T > T"),
    "SignalPCAN": kernel("u32 u32 i16 > u32"),
    "SignalRfft": kernel("T=f/i16/i32: T > T"),
    "SignalStacker": kernel("i16 > i16 b"),
    "SignalWindow": kernel("i16 i16 > i16"),
    "TFLM_DECODE": kernel(".* > .*"),
    "TFLite_Detection_PostProcess": kernel("f f f > f f f f", ranks="0:3 1:3 2:2"),
}


def find_kernel(name: str, *, custom: bool, kernels: str = REFERENCE) -> Kernel | None:
    """The kernel of an operator in a kernel set; None where TFLM has none."""
    if custom:
        return CUSTOM_KERNELS.get(name)
    if kernels == CMSIS_NN and name in CMSIS_NN_DIFFERENCES:
        return CMSIS_NN_DIFFERENCES[name]
    return REFERENCE_KERNELS.get(name)
