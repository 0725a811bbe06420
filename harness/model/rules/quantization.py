"""Scales and zero points, as the kernels ask for them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from harness.model.codes import finding
from harness.model.finding import Finding, Severity
from harness.model.graph import Operator, Tensor, TensorType
from harness.model.kernel import Kernel
from harness.model.rules.scale_relations import affine, check_relations
from harness.model.rules.scope import Scope
from harness.model.sizes import type_name

_INT8, _INT16, _INT32 = int(TensorType.INT8), int(TensorType.INT16), int(TensorType.INT32)
_RANGES = {
    _INT8: (-128, 127),
    _INT16: (-32768, 32767),
    int(TensorType.UINT8): (0, 255),
    int(TensorType.INT4): (-8, 7),
    _INT32: (-(2**31), 2**31 - 1),
}
#: Operators whose int16 kernels take zero points for 0: most ask for it in Prepare, the convolutions and
#: FULLY_CONNECTED compute as if (reference/integer_ops/conv.h and its neighbours have no offsets for int16).
_SYMMETRIC_INT16 = frozenset(
    name
    for line in """
        RELU MUL BATCH_MATMUL CONCATENATION LOGISTIC TANH SOFTMAX SQUARED_DIFFERENCE ABS PAD
        CONV_2D DEPTHWISE_CONV_2D TRANSPOSE_CONV FULLY_CONNECTED
    """.splitlines()
    for name in line.split()
)
#: The least normal float: fixed-point multipliers of smaller scales come out as anything.
_LEAST_SCALE = 2.0**-126
#: Operators whose int32 kernels ask for tensors without quantisation, and the places that they look at.
_PLAIN_INT32 = {"ADD": 2, "SUB": 3, "DIV": 2}
#: Where the channels of the weights are: operator → (input, dimension).
_CHANNELS = {"CONV_2D": (1, 0), "DEPTHWISE_CONV_2D": (1, 3), "TRANSPOSE_CONV": (1, 0)}


def check_quantization(
    scope: Scope, operator: Operator, kernel: Kernel, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
) -> Iterator[Finding]:
    """``inputs`` and ``outputs`` have types that the kernel takes."""
    complete = True
    for places, tensors in zip(kernel.quantized, (inputs, outputs), strict=True):
        for place in places:
            tensor = tensors[place] if place < len(tensors) else None
            if tensor is None or int(tensor.type) not in _RANGES or not _is_needed(operator, tensor):
                continue
            for result in _parameters(scope, operator, tensor, is_weights=bool(scope.data_sizes[tensor.index])):
                complete = complete and result.severity is not Severity.REFUSED
                yield result
    if operator.name in _PLAIN_INT32:
        yield from _plain_int32(scope, operator, [*inputs, *outputs][: _PLAIN_INT32[operator.name]])
    if operator.name in _CHANNELS or operator.name == "FULLY_CONNECTED":
        yield from _channels(scope, operator, inputs)
    if not complete:
        return
    symmetric = operator.name in _SYMMETRIC_INT16 or (operator.name == "ADD" and scope.kernels == "cmsis_nn")
    source = inputs[2 if operator.name == "TRANSPOSE_CONV" else 0] if inputs else None
    if symmetric and source is not None and int(source.type) == _INT16:
        for tensor in (*inputs, *outputs):
            parameters = affine(tensor)
            if tensor is not None and parameters and int(tensor.type) == _INT16 and parameters[1]:
                message = f"zero point {parameters[1]}; the int16 kernel wants 0"
                yield finding("quantization.zero_point", scope.at(operator, tensor.index), message)
    yield from check_relations(scope, operator, inputs, outputs)


def _is_needed(operator: Operator, tensor: Tensor) -> bool:
    """Whether the kernel computes with the scale: not where integers are plain numbers."""
    kind = int(tensor.type)
    if operator.name == "ABS" and kind == _INT16:
        return tensor.quantization is not None and bool(tensor.quantization.scales)
    return kind != _INT32 or operator.name == "QUANTIZE"


def _parameters(scope: Scope, operator: Operator, tensor: Tensor, *, is_weights: bool) -> Iterator[Finding]:
    quantization = tensor.quantization
    if quantization is None or not quantization.scales or not quantization.zero_points:
        what = "no quantisation" if quantization is None or not quantization.scales else "a scale but no zero point"
        message = f"a tensor of {type_name(tensor.type)} has {what}"
        if quantization is not None and quantization.details_type:
            message += " that TFLM knows (it is blockwise, multi-axis or custom)"
        yield finding("quantization.missing", scope.at(operator, tensor.index), message)
        return
    scales, zero_points = quantization.scales, quantization.zero_points
    if len(scales) > 1 and not is_weights:
        message = f"{len(scales):,} scales on a tensor that is no constant; the kernel reads the first"
        yield finding("quantization.channels", scope.at(operator, tensor.index), message)
    if len(zero_points) not in {1, len(scales)}:
        message = f"{len(zero_points):,} zero points for {len(scales):,} scales; TFLM reads the first"
        yield finding("quantization.count", scope.at(operator, tensor.index), message)
    worst = min(scales)
    least = 0.0 if is_weights else _LEAST_SCALE
    if not all(map(math.isfinite, scales)) or worst < least:
        bad = next(scale for scale in scales if not math.isfinite(scale) or scale < least)
        yield finding("quantization.scale", scope.at(operator, tensor.index), f"scale {bad:g}")
    low, high = _RANGES[int(tensor.type)]
    if min(zero_points) < low or max(zero_points) > high:
        bad_point = next(point for point in zero_points if not low <= point <= high)
        message = f"zero point {bad_point} is outside {low} to {high} of {type_name(tensor.type)}"
        yield finding("quantization.zero_point", scope.at(operator, tensor.index), message)


def _plain_int32(scope: Scope, operator: Operator, tensors: Sequence[Tensor | None]) -> Iterator[Finding]:
    for tensor in tensors:
        if tensor is not None and int(tensor.type) == _INT32 and affine(tensor):
            message = f"INT32 with scale {(affine(tensor) or (0.0, 0))[0]:g}"
            yield finding("quantization.unexpected", scope.at(operator, tensor.index), message)


def _channels(scope: Scope, operator: Operator, inputs: Sequence[Tensor | None]) -> Iterator[Finding]:
    place, dimension = _CHANNELS.get(operator.name, (1, 0))
    weights = inputs[place]
    quantization = weights.quantization if weights is not None else None
    if weights is None or quantization is None or not quantization.scales or weights.type == TensorType.FLOAT32:
        return
    if operator.name in _CHANNELS and any(quantization.zero_points or ()):
        message = "weights with a zero point other than 0, which the kernel does not look at"
        yield finding("quantization.zero_point", scope.at(operator, weights.index), message)
    count = len(quantization.scales)
    if count == 1:
        return
    if operator.name == "FULLY_CONNECTED":
        dimension = quantization.quantized_dimension
        limited = scope.kernels == "cmsis_nn" and int(inputs[0].type) == _INT16 if inputs[0] is not None else False
        if weights.type == TensorType.INT4 or limited:
            message = f"{count:,} scales; the kernel takes one for these types"
            yield finding("quantization.channels", scope.at(operator, weights.index), message)
            return
    dims = weights.dims
    channels = dims[dimension] if 0 <= dimension < len(dims) else 0
    if count != channels:
        message = f"{count:,} scales for {channels:,} channels (dimension {dimension} of {list(dims)})"
        yield finding("quantization.channels", scope.at(operator, weights.index), message)
