"""Scales and zero points against each other: what a kernel's arithmetic takes for granted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.model.codes import finding
from harness.model.finding import Finding
from harness.model.graph import Operator, Tensor, TensorType
from harness.model.rules.scope import Scope

_INT8, _INT16 = int(TensorType.INT8), int(TensorType.INT16)
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


def check_relations(
    scope: Scope, operator: Operator, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
) -> Iterator[Finding]:
    """All tensors of the kernel have a scale and a zero point, as ``check_quantization`` found."""
    name = operator.name
    source = inputs[0] if inputs else None
    if source is None or not outputs:
        return
    kind = int(source.type)
    if name == "FULLY_CONNECTED" and kind in {_INT8, _INT16}:
        yield from _bias_scale(scope, operator, inputs, outputs[0])
    elif name == "SOFTMAX" and kind == _INT8 and not _softmax_scales(operator, source):
        message = "beta times the input scale is too small for the fixed-point softmax"
        yield finding("quantization.scale", scope.at(operator, source.index), message)
    elif name in _FIXED_OUTPUTS and (kind, int(outputs[0].type)) in _FIXED_OUTPUTS[name]:
        yield from _fixed_output(scope, operator, outputs[0], *_FIXED_OUTPUTS[name][kind, int(outputs[0].type)])
    elif name in {"AVERAGE_POOL_2D", "MAX_POOL_2D"} and kind in {_INT8, _INT16}:
        yield from _same(scope, operator, [source], outputs[0], tolerance=1e-6)
    elif name in {"CONCATENATION", "REDUCE_MAX", "REDUCE_MIN"} and kind == _INT8:
        first = inputs if name == "CONCATENATION" else inputs[:1]
        yield from _same(scope, operator, first, outputs[0])
    elif name in {"ADD", "SUB"} and kind in {_INT8, _INT16}:
        yield from _sum_multiplier(scope, operator, inputs, outputs[0], 20 if kind == _INT8 else 15)
    elif name in _COMPARISONS and kind == _INT8:
        yield from _below_one(scope, operator, inputs)
    elif name == "SVDF" and kind == _INT8:
        yield from _state_scale(scope, operator, inputs)
    elif name == "ADD_N" and kind == _INT8:
        yield from _same(scope, operator, inputs[1:], source)
    elif name in {"PAD", "PADV2"} and kind == _INT8 and len(inputs) > 2:
        yield from _same(scope, operator, inputs[2:], outputs[0])


#: What an output must have: operator → (input type, output type) → (zero point, scale, relative tolerance).
#: softmax_common.cc and log_softmax.cc ask for it; the int8 kernels of LOGISTIC and TANH compute as if.
_FIXED_OUTPUTS: dict[str, dict[tuple[int, int], tuple[int, float, float]]] = {
    "SOFTMAX": {
        (_INT8, _INT8): (-128, 1 / 256, 0.0),
        (_INT8, _INT16): (-32768, 1 / 65536, 0.001),
        (_INT16, _INT16): (0, 1 / 32768, 0.001),
    },
    "LOGISTIC": {(_INT8, _INT8): (-128, 1 / 256, 0.001)},
    "TANH": {(_INT8, _INT8): (0, 1 / 128, 0.001)},
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
    if abs(parameters[0] - scale) > scale * tolerance:
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


_COMPARISONS = frozenset({"EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"})


def _sum_multiplier(
    scope: Scope, operator: Operator, inputs: Sequence[Tensor | None], output: Tensor, left_shift: int
) -> Iterator[Finding]:
    """QuantizeMultiplierSmallerThanOneExp aborts on a multiplier of 1 or more (add_common.cc, sub_common.cc)."""
    twice = 2 * max((affine(tensor) or (0.0, 0))[0] for tensor in inputs)
    scale = (affine(output) or (0.0, 0))[0]
    if scale <= 0 or twice / (2**left_shift * scale) >= 1:
        message = f"output scale {scale:g} is too small for inputs of scale {twice / 2:g}: TFLM aborts"
        yield finding("quantization.scale", scope.at(operator, output.index), message)


def _below_one(scope: Scope, operator: Operator, inputs: Sequence[Tensor | None]) -> Iterator[Finding]:
    for tensor in inputs:
        scale = (affine(tensor) or (0.0, 0))[0]
        if tensor is not None and scale >= 1:
            message = f"scale {scale:g}; the comparison aborts on 1 and more"
            yield finding("quantization.scale", scope.at(operator, tensor.index), message)


def _softmax_scales(operator: Operator, source: Tensor) -> bool:
    """PreprocessSoftmaxScaling with 5 integer bits wants a multiplier over 1 (internal/quantization_util.cc)."""
    beta = operator.options.get("beta", 0.0)
    return isinstance(beta, (int, float)) and beta * (affine(source) or (0.0, 0))[0] * 2**26 > 1


def _state_scale(scope: Scope, operator: Operator, inputs: Sequence[Tensor | None]) -> Iterator[Finding]:
    """|bias scale - state scale · time weights scale| < 1e-5 (svdf_common.cc)."""
    time, bias, state = (affine(inputs[place]) or (0.0, 0) for place in (2, 3, 4))
    bias_tensor = inputs[3]
    if bias_tensor is not None and not abs(bias[0] - state[0] * time[0]) < 1e-5:
        message = f"bias scale {bias[0]:g} is not state scale times time weights scale, {state[0] * time[0]:g}"
        yield finding("quantization.mismatch", scope.at(operator, bias_tensor.index), message)


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
