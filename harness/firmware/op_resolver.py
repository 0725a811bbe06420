"""Which ``Add…`` methods of TFLM's MicroMutableOpResolver a model needs."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import chain

from harness.errors import UnfitModelError
from harness.model.graph import Model
from harness.units import quoted

#: Builtin operator → method. TFLM 90b983c, tensorflow/lite/micro/micro_mutable_op_resolver.h.
_IRREGULAR = {
    "ADD_N": "AddAddN",
    "AVERAGE_POOL_2D": "AddAveragePool2D",
    "BATCH_MATMUL": "AddBatchMatMul",
    "CONV_2D": "AddConv2D",
    "CUMSUM": "AddCumSum",
    "DEPTHWISE_CONV_2D": "AddDepthwiseConv2D",
    "L2_NORMALIZATION": "AddL2Normalization",
    "L2_POOL_2D": "AddL2Pool2D",
    "LOG_SOFTMAX": "AddLogSoftmax",
    "MAX_POOL_2D": "AddMaxPool2D",
    "PADV2": "AddPadV2",
    "UNIDIRECTIONAL_SEQUENCE_LSTM": "AddUnidirectionalSequenceLSTM",
}
_REGULAR = """
ABS ADD ARG_MAX ARG_MIN ASSIGN_VARIABLE BATCH_TO_SPACE_ND BROADCAST_ARGS BROADCAST_TO CALL_ONCE CAST CEIL
CONCATENATION COS DEPTH_TO_SPACE DEQUANTIZE DIV DYNAMIC_UPDATE_SLICE ELU EMBEDDING_LOOKUP EQUAL EXP EXPAND_DIMS FILL
FLOOR FLOOR_DIV FLOOR_MOD FULLY_CONNECTED GATHER GATHER_ND GREATER GREATER_EQUAL HARD_SWISH IF LEAKY_RELU LESS
LESS_EQUAL LOG LOGICAL_AND LOGICAL_NOT LOGICAL_OR LOGISTIC MAXIMUM MEAN MINIMUM MIRROR_PAD MUL NEG NOT_EQUAL PACK PAD
PRELU QUANTIZE READ_VARIABLE REDUCE_ALL REDUCE_MAX REDUCE_MIN RELU RELU6 RESHAPE RESIZE_BILINEAR
RESIZE_NEAREST_NEIGHBOR REVERSE_V2 ROUND RSQRT SELECT_V2 SHAPE SIN SLICE SOFTMAX SPACE_TO_BATCH_ND SPACE_TO_DEPTH
SPLIT SPLIT_V SQRT SQUARE SQUARED_DIFFERENCE SQUEEZE STRIDED_SLICE SUB SUM SVDF TANH TRANSPOSE TRANSPOSE_CONV UNPACK
VAR_HANDLE WHILE ZEROS_LIKE
"""


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


BUILTIN_METHODS: dict[str, str] = {name: "Add" + _camel(name) for name in _REGULAR.split()} | _IRREGULAR

#: Custom name → method of the custom operators that TFLM itself brings. Same source.
CUSTOM_METHODS: dict[str, str] = {
    "CIRCULAR_BUFFER": "AddCircularBuffer",
    "TFLM_DECODE": "AddDecode",
    "TFLite_Detection_PostProcess": "AddDetectionPostprocess",
    "SignalDelay": "AddDelay",
    "SignalEnergy": "AddEnergy",
    "SignalFftAutoScale": "AddFftAutoScale",
    "SignalFilterBank": "AddFilterBank",
    "SignalFilterBankLog": "AddFilterBankLog",
    "SignalFilterBankSpectralSubtraction": "AddFilterBankSpectralSubtraction",
    "SignalFilterBankSquareRoot": "AddFilterBankSquareRoot",
    "SignalFramer": "AddFramer",
    "SignalIrfft": "AddIrfft",
    "SignalOverlapAdd": "AddOverlapAdd",
    "SignalPCAN": "AddPCAN",
    "SignalRfft": "AddRfft",
    "SignalStacker": "AddStacker",
    "SignalWindow": "AddWindow",
}


class UnsupportedOperatorError(UnfitModelError):
    """TFLM has no kernel for operators of the model."""

    default_code = "op.unsupported"


def resolver_methods(*models: Model) -> tuple[str, ...]:
    """The methods for the operators of all subgraphs of the models, each once, in order of first use.

    Operators are told apart by builtin code, custom ones by name: several operator codes (versions) of one operator
    need one method. Raises UnsupportedOperatorError that names every operator without one.
    """
    methods: dict[str, None] = {}
    missing: dict[str, None] = {}
    for _, operator in chain.from_iterable(model.operators() for model in models):
        name = operator.opcode.name
        table = CUSTOM_METHODS if name == "CUSTOM" else BUILTIN_METHODS
        key = (operator.opcode.custom_name or "") if name == "CUSTOM" else name
        if key in table:
            methods[table[key]] = None
        else:
            missing[f"custom operator {quoted(key)}" if name == "CUSTOM" else key] = None
    if missing:
        raise UnsupportedOperatorError(
            f"TFLM has no kernel for {', '.join(missing)}",
            remedy="change the model so that it does not use them, or convert it with other options",
        )
    return tuple(methods)


def methods_in_header(header: str) -> frozenset[str]:
    """The ``Add…`` methods that a micro_mutable_op_resolver.h declares."""
    return frozenset(re.findall(r"\bTfLiteStatus\s+(Add[A-Za-z0-9_]+)\s*\(", header))


def check_methods(methods: Collection[str], header: str) -> None:
    """Raises UnsupportedOperatorError when this TFLM is too old (or new) for the model."""
    absent = [method for method in methods if method not in methods_in_header(header)]
    if absent:
        raise UnsupportedOperatorError(
            f"this TFLM library has no {', '.join(absent)}", remedy="take a library built from another TFLM commit"
        )
