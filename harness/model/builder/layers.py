"""Layers over a ``Graph``: each adds its constants, its output tensor and one operator, and returns the output.

Scales are chosen so that pseudo-random weights and inputs use the range of each tensor. Operator versions are those
the converter writes for the types at hand (tensorflow/compiler/mlir/lite/tools/versioning/op_version.cc).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from tflite import ActivationFunctionType, Padding

from harness.model.builder.graph import Graph, Value, per_tensor
from harness.model.builder.noise import Weights, bias, weights
from harness.model.graph import Quantization, TensorType

FLOAT32, INT8, INT16 = TensorType.FLOAT32, TensorType.INT8, TensorType.INT16
_BIAS_TYPE = {FLOAT32: FLOAT32, INT8: TensorType.INT32, INT16: TensorType.INT64}
#: Fixed output quantization of the operators whose range is known (LiteRT, kernels/activations.cc, softmax).
_UNIT_RANGE = {INT8: per_tensor(1 / 256, -128), INT16: per_tensor(1 / 32768)}
_TANH_RANGE = {INT8: per_tensor(1 / 128), INT16: per_tensor(1 / 32768)}


def activations(kind: TensorType, activation: str = "NONE") -> Quantization | None:
    """A quantization for a layer's output: -8..8, or 0..8 and 0..6 behind a RELU."""
    if kind is FLOAT32:
        return None
    if kind is INT16:
        return per_tensor(8 / 32767)
    return {"RELU": per_tensor(8 / 255, -128), "RELU6": per_tensor(6 / 255, -128)}.get(
        activation, per_tensor(16 / 255, 3)
    )


def conv_2d(
    g: Graph,
    x: Value,
    filters: int,
    kernel: tuple[int, int] = (3, 3),
    stride: tuple[int, int] = (1, 1),
    *,
    padding: str = "SAME",
    activation: str = "NONE",
    dilation: tuple[int, int] = (1, 1),
    weight_type: TensorType | None = None,
    per_channel: bool = True,
) -> Value:
    """CONV_2D over NHWC; pairs are (height, width). ``weight_type`` INT4 or the default for the input's type."""
    name = g.next_name("CONV_2D")
    depth = x.shape[3]
    kind = weight_type or _weight_type(x)
    axis = 0 if per_channel else None
    w = weights(g.model.seed, f"{name}/w", (filters, *kernel, depth), math.prod(kernel) * depth, kind, axis)
    shape = (x.shape[0], *_spatial(x, kernel, stride, dilation, padding), filters)
    options = _window(stride, dilation, padding, activation)
    version = 7 if kind is TensorType.INT4 else {FLOAT32: 1, INT8: 3, INT16: 4}[x.type]
    return _weighted(g, "CONV_2D", "Conv2DOptions", options, version, x, w, shape, activation)


def depthwise_conv_2d(
    g: Graph,
    x: Value,
    multiplier: int = 1,
    kernel: tuple[int, int] = (3, 3),
    stride: tuple[int, int] = (1, 1),
    *,
    padding: str = "SAME",
    activation: str = "NONE",
    dilation: tuple[int, int] = (1, 1),
    weight_type: TensorType | None = None,
) -> Value:
    name = g.next_name("DEPTHWISE_CONV_2D")
    channels = x.shape[3] * multiplier
    kind = weight_type or _weight_type(x)
    w = weights(g.model.seed, f"{name}/w", (1, *kernel, channels), math.prod(kernel), kind, 3)
    shape = (x.shape[0], *_spatial(x, kernel, stride, dilation, padding), channels)
    options = _window(stride, dilation, padding, activation) | {"depth_multiplier": multiplier}
    version = 7 if kind is TensorType.INT4 else {FLOAT32: 1 if dilation == (1, 1) else 2, INT8: 3, INT16: 5}[x.type]
    return _weighted(g, "DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions", options, version, x, w, shape, activation)


def fully_connected(
    g: Graph, x: Value, units: int, *, activation: str = "NONE", weight_type: TensorType | None = None
) -> Value:
    """FULLY_CONNECTED over the flattened input: (batch, units)."""
    name = g.next_name("FULLY_CONNECTED")
    batch = x.shape[0]
    depth = x.element_count // batch
    kind = weight_type or _weight_type(x)
    w = weights(g.model.seed, f"{name}/w", (units, depth), depth, kind, None)
    version = 10 if kind is TensorType.INT4 else {FLOAT32: 1, INT8: 4, INT16: 7}[x.type]
    options = {"fused_activation_function": getattr(ActivationFunctionType, activation)}
    return _weighted(g, "FULLY_CONNECTED", "FullyConnectedOptions", options, version, x, w, (batch, units), activation)


def add(g: Graph, a: Value, b: Value, *, activation: str = "NONE", operator: str = "ADD") -> Value:
    """ADD, SUB or MUL of two tensors of one shape."""
    options = {"fused_activation_function": getattr(ActivationFunctionType, activation)}
    if operator != "MUL":
        options["pot_scale_int16"] = False
    y = g.tensor(g.next_name(operator), a.shape, a.type, activations(a.type, activation))
    version = {FLOAT32: 1, INT8: 2, INT16: 4 if operator == "MUL" else 3}[a.type]
    g.operator(operator, [a, b], [y], f"{operator.title()}Options", options, version=version)
    return y


def concatenation(g: Graph, values: Sequence[Value], axis: int) -> Value:
    """CONCATENATION; the quantized kernels want one scale, so the inputs must share theirs."""
    first = values[0]
    if any(value.quantization != first.quantization for value in values):
        raise ValueError("the inputs of a concatenation must be quantized alike")
    shape = list(first.shape)
    shape[axis] = sum(value.shape[axis] for value in values)
    y = g.tensor(g.next_name("CONCATENATION"), shape, first.type, first.quantization)
    g.operator("CONCATENATION", values, [y], "ConcatenationOptions", {"axis": axis}, version=_small_version(first))
    return y


def pool_2d(
    g: Graph,
    x: Value,
    kernel: tuple[int, int],
    stride: tuple[int, int] | None = None,
    *,
    padding: str = "VALID",
    operator: str = "AVERAGE_POOL_2D",
) -> Value:
    """AVERAGE_POOL_2D or MAX_POOL_2D; the output keeps the input's quantization."""
    stride = stride or kernel
    shape = (x.shape[0], *_spatial(x, kernel, stride, (1, 1), padding), x.shape[3])
    options = {"padding": getattr(Padding, padding), "stride_h": stride[0], "stride_w": stride[1]}
    options |= {"filter_height": kernel[0], "filter_width": kernel[1]}
    y = g.tensor(g.next_name(operator), shape, x.type, x.quantization)
    g.operator(operator, [x], [y], "Pool2DOptions", options, version=_small_version(x))
    return y


def softmax(g: Graph, x: Value) -> Value:
    y = g.tensor(g.next_name("SOFTMAX"), x.shape, x.type, _UNIT_RANGE.get(x.type))
    g.operator("SOFTMAX", [x], [y], "SoftmaxOptions", {"beta": 1.0}, version=_small_version(x))
    return y


def reshape(g: Graph, x: Value, shape: Sequence[int]) -> Value:
    new_shape = tuple(shape)
    y = g.tensor(g.next_name("RESHAPE"), new_shape, x.type, x.quantization)
    g.operator("RESHAPE", [x, g.int32s("shape", new_shape)], [y], "ReshapeOptions", {"new_shape": new_shape})
    return y


def transpose(g: Graph, x: Value, permutation: Sequence[int]) -> Value:
    y = g.tensor(g.next_name("TRANSPOSE"), [x.shape[axis] for axis in permutation], x.type, x.quantization)
    g.operator(
        "TRANSPOSE", [x, g.int32s("permutation", permutation)], [y], "TransposeOptions", version=_small_version(x)
    )
    return y


def mean(g: Graph, x: Value, axes: Sequence[int], *, keep_dims: bool = False) -> Value:
    kept = [(1, True) if axis in axes else (size, False) for axis, size in enumerate(x.shape)]
    shape = [size for size, reduced in kept if keep_dims or not reduced]
    y = g.tensor(g.next_name("MEAN"), shape, x.type, x.quantization)
    options = {"keep_dims": keep_dims}
    g.operator("MEAN", [x, g.int32s("axes", axes)], [y], "ReducerOptions", options, version=_small_version(x))
    return y


def pad(g: Graph, x: Value, paddings: Sequence[tuple[int, int]]) -> Value:
    shape = [before + size + after for size, (before, after) in zip(x.shape, paddings, strict=True)]
    y = g.tensor(g.next_name("PAD"), shape, x.type, x.quantization)
    g.operator(
        "PAD", [x, g.int32s("paddings", np.asarray(paddings))], [y], "PadOptions", version=min(2, _small_version(x))
    )
    return y


def quantize(g: Graph, x: Value, kind: TensorType, quantization: Quantization | None = None) -> Value:
    """QUANTIZE: float to a quantized type, or one quantization to another."""
    y = g.tensor(g.next_name("QUANTIZE"), x.shape, kind, quantization or activations(kind))
    g.operator("QUANTIZE", [x], [y], "QuantizeOptions", version=1 if x.type is FLOAT32 and kind is INT8 else 2)
    return y


def dequantize(g: Graph, x: Value) -> Value:
    y = g.tensor(g.next_name("DEQUANTIZE"), x.shape, FLOAT32)
    g.operator("DEQUANTIZE", [x], [y], "DequantizeOptions", version={INT8: 2, INT16: 3}[x.type])
    return y


def unary(g: Graph, operator: str, x: Value) -> Value:
    """An operator of one input and no options: NEG, ABS, RELU, RELU6, LOGISTIC, TANH, …"""
    fixed = {"LOGISTIC": _UNIT_RANGE, "TANH": _TANH_RANGE}.get(operator)
    quantization = fixed.get(x.type) if fixed else x.quantization
    y = g.tensor(g.next_name(operator), x.shape, x.type, quantization)
    g.operator(operator, [x], [y], version=_small_version(x))
    return y


def _weighted(
    g: Graph,
    operator: str,
    options_name: str,
    options: dict[str, int],
    version: int,
    x: Value,
    w: Weights,
    shape: Sequence[int],
    activation: str,
) -> Value:
    """The common end of the layers with weights: bias, output, operator."""
    name = g.next_name(operator)
    b = bias(g.model.seed, f"{name}/b", shape[-1], _BIAS_TYPE[x.type], x.scale, w.quantization)
    inputs = [x, g.constant(f"{name}/w", w), g.constant(f"{name}/b", b)]
    y = g.tensor(name, shape, x.type, activations(x.type, activation))
    g.operator(operator, inputs, [y], options_name, options, version=version)
    return y


def _weight_type(x: Value) -> TensorType:
    return FLOAT32 if x.type is FLOAT32 else INT8


def _small_version(x: Value) -> int:
    """The version of the operators that only count types: float 1, int8 2, int16 3."""
    return {INT8: 2, INT16: 3}.get(x.type, 1)


def _window(stride: tuple[int, int], dilation: tuple[int, int], padding: str, activation: str) -> dict[str, int]:
    return {
        "padding": getattr(Padding, padding),
        "stride_h": stride[0],
        "stride_w": stride[1],
        "dilation_h_factor": dilation[0],
        "dilation_w_factor": dilation[1],
        "fused_activation_function": getattr(ActivationFunctionType, activation),
    }


def _spatial(
    x: Value, kernel: tuple[int, int], stride: tuple[int, int], dilation: tuple[int, int], padding: str
) -> tuple[int, int]:
    """Output height and width (LiteRT kernels/padding.h, ComputeOutSize)."""

    def size(axis: int) -> int:
        reach = 0 if padding == "SAME" else (kernel[axis] - 1) * dilation[axis]
        return -(-(x.shape[axis + 1] - reach) // stride[axis])

    return size(0), size(1)
