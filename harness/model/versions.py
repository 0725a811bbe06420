"""Operator and runtime versions. TFLM looks at neither: they tell of the converter, not of what TFLM can run."""

from __future__ import annotations

#: Newest version → the builtin operators that LiteRT knows up to it; 1 for those not named.
#: Source: tensorflow/tensorflow 0314b97, tensorflow/lite/core/kernels/register.cc, max_version.
_BY_VERSION = {
    10: "FULLY_CONNECTED",
    8: "STRIDED_SLICE",
    7: "CONV_2D DEPTHWISE_CONV_2D MUL",
    6: "GATHER TRANSPOSE SLICE",
    5: "ABS ADD SUB CAST DEQUANTIZE",
    4: "SVDF CONCATENATION SPACE_TO_BATCH_ND BATCH_TO_SPACE_ND UNIDIRECTIONAL_SEQUENCE_LSTM PAD PADV2 RESIZE_BILINEAR "
    "RESIZE_NEAREST_NEIGHBOR SPLIT MAXIMUM MINIMUM TRANSPOSE_CONV EQUAL PACK UNPACK FILL GATHER_ND BATCH_MATMUL",
    3: "RELU RELU6 TANH LOGISTIC AVERAGE_POOL_2D MAX_POOL_2D EMBEDDING_LOOKUP SOFTMAX MEAN ARG_MAX ARG_MIN "
    "GREATER_EQUAL LESS REDUCE_MAX REDUCE_MIN NOT_EQUAL FLOOR_DIV MIRROR_PAD REVERSE_V2 QUANTIZE BROADCAST_TO",
    2: "L2_NORMALIZATION SPACE_TO_DEPTH DEPTH_TO_SPACE DIV SPLIT_V SQUEEZE EXP LOG LOG_SOFTMAX GREATER LESS_EQUAL "
    "SELECT_V2 SUM RSQRT FLOOR_MOD LEAKY_RELU SQUARED_DIFFERENCE",
}
_NEWEST = {name: version for version, names in _BY_VERSION.items() for name in names.split()}

#: The TensorFlow release that the pinned TFLM is built and tested with.
#: Source: TFLM 90b983c, python/python_requirements_3_11.txt.
TFLM_TENSORFLOW_VERSION = (2, 20, 0)


def newest_version(operator: str) -> int:
    """The newest version of a builtin operator that LiteRT registers."""
    return _NEWEST.get(operator, 1)


def parse_version(data: bytes) -> tuple[int, ...] | None:
    """``b"1.14.0\\0\\0"`` → (1, 14, 0); None for what is no version. Versions compare as tuples: 1.9 is before 1.14."""
    try:
        text = data.split(b"\0", 1)[0].decode("ascii").strip()
    except UnicodeDecodeError:
        return None
    parts = text.split(".")
    if not 1 <= len(parts) <= 4 or not all(part.isdigit() and len(part) <= 6 for part in parts):
        return None
    return tuple(int(part) for part in parts)
