"""The builtin parameter struct that each operator's parser allocates (flatbuffer_conversions.cc, ParseXxx)."""

from __future__ import annotations

from collections.abc import Mapping

_POOL = "TfLitePoolParams"
_REDUCER = "TfLiteReducerParams"

#: Operators not listed allocate nothing.
PARAMETER_STRUCTS: Mapping[str, str] = {
    "ADD": "TfLiteAddParams",
    "ARG_MAX": "TfLiteArgMaxParams",
    "ARG_MIN": "TfLiteArgMinParams",
    "AVERAGE_POOL_2D": _POOL,
    "BATCH_MATMUL": "TfLiteBatchMatMulParams",
    "CALL_ONCE": "TfLiteCallOnceParams",
    "CAST": "TfLiteCastParams",
    "CONCATENATION": "TfLiteConcatenationParams",
    "CONV_2D": "TfLiteConvParams",
    "CUMSUM": "TfLiteCumsumParams",
    "DEPTH_TO_SPACE": "TfLiteDepthToSpaceParams",
    "DEPTHWISE_CONV_2D": "TfLiteDepthwiseConvParams",
    "DIV": "TfLiteDivParams",
    "FULLY_CONNECTED": "TfLiteFullyConnectedParams",
    "GATHER": "TfLiteGatherParams",
    "IF": "TfLiteIfParams",
    "L2_NORMALIZATION": "TfLiteL2NormParams",
    "L2_POOL_2D": _POOL,
    "LEAKY_RELU": "TfLiteLeakyReluParams",
    "MAX_POOL_2D": _POOL,
    "MEAN": _REDUCER,
    "MIRROR_PAD": "TfLiteMirrorPaddingParams",
    "MUL": "TfLiteMulParams",
    "PACK": "TfLitePackParams",
    "REDUCE_ALL": _REDUCER,
    "REDUCE_MAX": _REDUCER,
    "REDUCE_MIN": _REDUCER,
    "RESHAPE": "TfLiteReshapeParams",
    "RESIZE_BILINEAR": "TfLiteResizeBilinearParams",
    "RESIZE_NEAREST_NEIGHBOR": "TfLiteResizeNearestNeighborParams",
    "SHAPE": "TfLiteShapeParams",
    "SOFTMAX": "TfLiteSoftmaxParams",
    "SPACE_TO_DEPTH": "TfLiteSpaceToDepthParams",
    "SPLIT": "TfLiteSplitParams",
    "SPLIT_V": "TfLiteSplitVParams",
    "SQUEEZE": "TfLiteSqueezeParams",
    "STRIDED_SLICE": "TfLiteStridedSliceParams",
    "SUB": "TfLiteSubParams",
    "SUM": _REDUCER,
    "SVDF": "TfLiteSVDFParams",
    "TRANSPOSE_CONV": "TfLiteTransposeConvParams",
    "UNIDIRECTIONAL_SEQUENCE_LSTM": "TfLiteUnidirectionalSequenceLSTMParams",
    "UNPACK": "TfLiteUnpackParams",
    "VAR_HANDLE": "TfLiteVarHandleParams",
    "WHILE": "TfLiteWhileParams",
}
