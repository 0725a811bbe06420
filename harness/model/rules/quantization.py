"""Scales and zero points, as the kernels ask for them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from harness.model.codes import finding
from harness.model.finding import Finding
from harness.model.graph import Operator, Tensor, TensorType
from harness.model.rules.scope import Scope
from harness.model.sizes import type_name
from harness.model.support import Kernel

_INT8, _INT16, _INT32 = int(TensorType.INT8), int(TensorType.INT16), int(TensorType.INT32)
_RANGES = {
    _INT8: (-128, 127),
    _INT16: (-32768, 32767),
    int(TensorType.UINT8): (0, 255),
    int(TensorType.INT4): (-8, 7),
    _INT32: (-(2**31), 2**31 - 1),
}
#: Operators whose int16 kernels ask for zero points of 0 (TF_LITE_ENSURE_EQ … zero_point, 0 in their Prepare).
_SYMMETRIC_INT16 = frozenset("RELU MUL BATCH_MATMUL CONCATENATION LOGISTIC TANH SOFTMAX SQUARED_DIFFERENCE ABS".split())  # noqa: SIM905
#: Operators whose int32 kernels ask for tensors without quantisation, and the places that they look at.
_PLAIN_INT32 = {"ADD": 2, "SUB": 3, "DIV": 2}
#: Where the channels of the weights are: operator → (input, dimension).
_CHANNELS = {"CONV_2D": (1, 0), "DEPTHWISE_CONV_2D": (1, 3), "TRANSPOSE_CONV": (1, 0)}
#: FULLY_CONNECTED: |input scale · filter scale - bias scale| / output scale (GetQuantizedConvolutionMultipler,
#: tensorflow/lite/kernels/kernel_util.cc).
_BIAS_SCALE_TOLERANCE = 0.02

Affine = tuple[float, int]


def affine(tensor: Tensor | None) -> Affine | None:
    """Scale and zero point as TFLM sees them: nothing unless both vectors have an entry
    (InitializeTfLiteTensorFromFlatbuffer, tensorflow/lite/micro/micro_allocator.cc)."""
    quantization = tensor.quantization if tensor is not None else None
    if quantization is None or not quantization.scales or not quantization.zero_points:
        return None
    return quantization.scales[0], quantization.zero_points[0]


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
                complete = False
                yield result
    if operator.name in _PLAIN_INT32:
        yield from _plain_int32(scope, operator, [*inputs, *outputs][: _PLAIN_INT32[operator.name]])
    if operator.name in _CHANNELS or operator.name == "FULLY_CONNECTED":
        yield from _channels(scope, operator, inputs)
    if not complete:
        return
    if operator.name in _SYMMETRIC_INT16 and inputs[0] is not None and int(inputs[0].type) == _INT16:
        for tensor in (*inputs, *outputs):
            parameters = affine(tensor)
            if tensor is not None and parameters and int(tensor.type) == _INT16 and parameters[1]:
                message = f"zero point {parameters[1]}; the int16 kernel wants 0"
                yield finding("quantization.zero_point", scope.at(operator, tensor.index), message)
    yield from _special(scope, operator, inputs, outputs)


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
    worst = min(scales)
    if not all(map(math.isfinite, scales)) or worst < 0 or (worst == 0 and not is_weights):
        bad = next(scale for scale in scales if not math.isfinite(scale) or scale <= 0)
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


def _special(
    scope: Scope, operator: Operator, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
) -> Iterator[Finding]:
    name = operator.name
    source = inputs[0] if inputs else None
    if source is None or not outputs:
        return
    kind = int(source.type)
    if name == "FULLY_CONNECTED" and kind in {_INT8, _INT16}:
        yield from _bias_scale(scope, operator, inputs, outputs[0])
    elif name in _FIXED_OUTPUTS and (kind, int(outputs[0].type)) in _FIXED_OUTPUTS[name]:
        yield from _fixed_output(scope, operator, outputs[0], *_FIXED_OUTPUTS[name][kind, int(outputs[0].type)])
    elif name in {"AVERAGE_POOL_2D", "MAX_POOL_2D"} and kind in {_INT8, _INT16}:
        yield from _same(scope, operator, [source], outputs[0], tolerance=1e-6)
    elif name in {"CONCATENATION", "REDUCE_MAX", "REDUCE_MIN"} and kind == _INT8:
        first = inputs if name == "CONCATENATION" else inputs[:1]
        yield from _same(scope, operator, first, outputs[0])
    elif name == "ADD_N" and kind == _INT8:
        yield from _same(scope, operator, inputs[1:], source)
    elif name in {"PAD", "PADV2"} and kind == _INT8 and len(inputs) > 2:
        yield from _same(scope, operator, inputs[2:], outputs[0])


#: What an output must have: operator → (input type, output type) → (zero point, scale, relative tolerance); a scale of
#: 0 stands for any. softmax_common.cc, logistic_common.cc, log_softmax.cc.
_FIXED_OUTPUTS: dict[str, dict[tuple[int, int], tuple[int, float, float]]] = {
    "SOFTMAX": {
        (_INT8, _INT8): (-128, 1 / 256, 0.0),
        (_INT8, _INT16): (-32768, 1 / 65536, 0.001),
        (_INT16, _INT16): (0, 1 / 32768, 0.001),
    },
    "LOGISTIC": {(_INT8, _INT8): (-128, 0.0, 0.0)},
    "LOG_SOFTMAX": {(_INT8, _INT8): (127, 16 / 256, 0.0)},
}


def _fixed_output(
    scope: Scope, operator: Operator, output: Tensor, zero_point: int, scale: float, tolerance: float
) -> Iterator[Finding]:
    parameters = affine(output)
    if parameters is None:
        yield finding("quantization.missing", scope.at(operator, output.index), "the output has no quantisation")
        return
    if parameters[1] != zero_point:
        message = f"output zero point {parameters[1]}; the kernel wants {zero_point}"
        yield finding("quantization.zero_point", scope.at(operator, output.index), message)
    if scale and abs(parameters[0] - scale) > scale * tolerance:
        message = f"output scale {parameters[0]:g}; the kernel wants {scale:g}"
        yield finding("quantization.scale", scope.at(operator, output.index), message)


def _same(
    scope: Scope, operator: Operator, tensors: Sequence[Tensor | None], other: Tensor, tolerance: float = 0.0
) -> Iterator[Finding]:
    wanted = affine(other) or (0.0, 0)
    for tensor in tensors:
        if tensor is None:
            continue
        have = affine(tensor) or (0.0, 0)
        if abs(have[0] - wanted[0]) > tolerance or have[1] != wanted[1]:
            message = (
                f"scale {have[0]:g}, zero point {have[1]}; the kernel wants {wanted[0]:g}, {wanted[1]} as tensor "
                f"{other.index} has"
            )
            yield finding("quantization.mismatch", scope.at(operator, tensor.index), message)


def _bias_scale(scope: Scope, operator: Operator, inputs: Sequence[Tensor | None], output: Tensor) -> Iterator[Finding]:
    weights, bias = inputs[1], inputs[2] if len(inputs) > 2 else None
    parameters = affine(weights)
    if bias is None or weights is None or parameters is None or weights.quantization is None:
        return
    if len(weights.quantization.scales or ()) > 1:
        return
    product = (affine(inputs[0]) or (0.0, 0))[0] * parameters[0]
    bias_scale = (affine(bias) or (0.0, 0))[0]
    output_scale = (affine(output) or (0.0, 0))[0]
    if output_scale > 0 and not abs(product - bias_scale) / output_scale <= _BIAS_SCALE_TOLERANCE:
        message = f"bias scale {bias_scale:g} is not input scale times filter scale, {product:g}"
        yield finding("quantization.mismatch", scope.at(operator, bias.index), message)
