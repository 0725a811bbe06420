"""CONV_2D, DEPTHWISE_CONV_2D and TRANSPOSE_CONV (kernels/conv*.cc, depthwise_conv*.cc, transpose_conv.cc and
cmsis_nn/ of the same names)."""

from __future__ import annotations

from harness.model.graph import TensorType
from harness.plan.kernels import cmsis_nn
from harness.plan.kernels.cmsis_nn import Window
from harness.plan.kernels.registry import register
from harness.plan.node import Node
from harness.plan.target import Kernels
from harness.plan.tensor import LiveTensor

_INT8, _INT16, _INT4, _FLOAT = TensorType.INT8, TensorType.INT16, TensorType.INT4, TensorType.FLOAT32
_INTEGER = (_INT8, _INT16)
_HYBRID = "Hybrid models are not supported on TFLite Micro."
#: Padding, schema.fbs: 0 SAME, 1 VALID.
_SAME = 0


@register("CONV_2D", init="OpDataConv")
def conv_2d(node: Node) -> None:
    output, source, weights = node.temp_output(), node.temp_input(0), node.temp_input(1)
    node.ensure_same_type(source, output)
    _ensure_weights(node, source, weights)
    _per_channel_arrays(node, weights.dims[0])
    if source.type in _INTEGER:
        _ensure_scales(node, weights, weights.dims[0])
    _quantize(node, source, weights)
    _unpacked_filter(node, weights)


@register("CONV_2D", init="cmsis_nn_conv::OpData", kernels=Kernels.CMSIS_NN)
def conv_2d_cmsis_nn(node: Node) -> None:
    source, weights, output = node.temp_input(0), node.temp_input(1), node.temp_output()
    node.ensure_same_type(source, output)
    node.ensure(source.type in (_FLOAT, *_INTEGER), "Input data type not supported")
    _ensure_weights(node, source, weights)
    for tensor in (source, weights, output):
        node.ensure(tensor.rank == 4, f"dims->size != 4 ({tensor.rank} != 4)")
    node.ensure(source.dims[0] == output.dims[0], f"input->dims->data[0] != output->dims->data[0] ({source.dims[0]})")
    node.ensure(weights.dims[3] > 0, "filter->dims->data[3] > 0 was not true.")
    node.ensure(source.dims[3] % weights.dims[3] == 0, "input->dims->data[3] % filter->dims->data[3] != 0")
    if source.type in _INTEGER:
        _per_channel_arrays(node, weights.dims[0])
    _quantize(node, source, weights)
    window = _window(node, source, weights, output, weights.dims[3])
    if source.type == _INT8:
        _scratch_if_any(node, cmsis_nn.convolve_s8(window, node.core), "im2col")
    elif source.type == _INT16:
        node.ensure_symmetric(source, output)
        _scratch_if_any(node, cmsis_nn.convolve_s16(window, node.core), "im2col")


@register("DEPTHWISE_CONV_2D", init="OpDataConv")
def depthwise_conv_2d(node: Node) -> None:
    node.temp_output()
    source, weights = node.temp_input(0), node.temp_input(1)
    _per_channel_arrays(node, weights.dims[3])
    if source.type == _INT8:
        _ensure_scales(node, weights, weights.dims[3])
    same = source.type == weights.type
    node.ensure(same or (source.type, weights.type) in ((_INT8, _INT4), (_INT16, _INT8)), _HYBRID)
    _unpacked_filter(node, weights)
    _quantize(node, source, weights)


@register("DEPTHWISE_CONV_2D", init="cmsis_nn_depthwise_conv::OpData", kernels=Kernels.CMSIS_NN)
def depthwise_conv_2d_cmsis_nn(node: Node) -> None:
    source, weights, output = node.temp_input(0), node.temp_input(1), node.temp_output()
    node.ensure_same_type(source, output)
    node.ensure(source.type in (_FLOAT, *_INTEGER), "Input data type not supported")
    _ensure_weights(node, source, weights)
    if source.type in _INTEGER:
        if source.type == _INT16:
            node.ensure_symmetric(source, output)
        _ensure_scales(node, weights, weights.dims[3])
        _per_channel_arrays(node, weights.dims[3])
    _quantize(node, source, weights)
    if source.type == _INT8:
        window = _window(node, source, weights, output, 1)
        size = cmsis_nn.depthwise_s4 if weights.type == _INT4 else cmsis_nn.depthwise_s8
        if node.core.mve and weights.type == _INT8 and source.dims[1:2] == (1,) and source.dims[3] == 1:
            node.doubt("the kernel reads an uninitialised stride for a one-channel input of height 1")
        _scratch_if_any(node, size(window, node.core), "im2col")


@register("TRANSPOSE_CONV", init="transpose_conv::OpData")
def transpose_conv(node: Node) -> None:
    output, source, weights = node.temp_output(), node.temp_input(2), node.temp_input(1)
    node.ensure(source.type == weights.type or (source.type, weights.type) == (_INT16, _INT8), _HYBRID)
    _per_channel_arrays(node, weights.dims[0])
    if source.type == _INT8:
        node.scratch(4 * output.element_count, "32-bit accumulators")
    _finish_transpose_conv(node, source, weights, output)


@register("TRANSPOSE_CONV", init="cmsis_nn_transpose_conv::OpData", kernels=Kernels.CMSIS_NN)
def transpose_conv_cmsis_nn(node: Node) -> None:
    output, source, weights = node.temp_output(), node.temp_input(2), node.temp_input(1)
    node.ensure_same_type(source, output)
    node.ensure(source.type in (_FLOAT, *_INTEGER), "Input data type not supported")
    node.ensure((source.type, weights.type) in ((_FLOAT, _FLOAT), (_INT16, _INT8), (_INT8, _INT8)), _HYBRID)
    _per_channel_arrays(node, weights.dims[0])
    if source.type == _INT8:
        window = _window(node, source, weights, output, weights.dims[3])
        columns, reversed_filter = cmsis_nn.transpose_convolve_s8(window, node.core)
        node.scratch(columns, "columns")
        node.scratch(reversed_filter, "reversed filter")
    _finish_transpose_conv(node, source, weights, output)


def _finish_transpose_conv(node: Node, source: LiveTensor, weights: LiveTensor, output: LiveTensor) -> None:
    if source.type == _INT16:
        node.scratch(8 * output.element_count, "64-bit accumulators")
    if source.type in _INTEGER:
        _ensure_scales(node, weights, weights.dims[0])
    node.ensure(node.input_count in (3, 4), "has_bias || node->inputs->size == 3 was not true.")
    node.ensure_counts(outputs=1)
    if source.type == _FLOAT:
        return
    node.temp_input(2)
    node.temp_input(1)
    bias = node.optional_temp_input(3)
    _ensure_quantization(node, source, weights, node.temp_output())
    if source.type == _INT16 and bias is not None and bias.type == _INT16:
        node.scratch(8 * bias.element_count, "bias as 64-bit")


def _quantize(node: Node, source: LiveTensor, weights: LiveTensor) -> None:
    """CalculateOpDataConv and CalculateOpDataDepthwiseConv, which look all tensors up again."""
    node.ensure(node.input_count in (2, 3), "has_bias || node->inputs->size == 2 was not true.")
    node.ensure_counts(outputs=1)
    node.temp_input(0)
    node.temp_input(1)
    node.optional_temp_input(2)
    _ensure_quantization(node, source, weights, node.temp_output())


def _ensure_quantization(node: Node, source: LiveTensor, weights: LiveTensor, output: LiveTensor) -> None:
    """PopulateConvolutionQuantizationParams, lite/kernels/kernel_util.cc."""
    if source.type == _FLOAT:
        return
    channels = weights.quantized_channels
    for name, tensor in (("input", source), ("filter", weights)):
        cause = f"{name}->quantization.type != kTfLiteAffineQuantization (0 != 1)"
        node.ensure(tensor.quantized_channels > 0, cause)
    if channels > 1:
        axis = weights.source.quantization.quantized_dimension if weights.source.quantization else 0
        length = weights.dims[axis] if 0 <= axis < weights.rank else -1
        cause = f"num_channels != filter->dims->data[affine_quantization->quantized_dimension] ({channels} != {length})"
        node.ensure(channels == length, cause)
    node.ensure_activation_range(output)


def _per_channel_arrays(node: Node, channels: int) -> None:
    node.persist(4 * channels, "per-channel multipliers")
    node.persist(4 * channels, "per-channel shifts")


def _unpacked_filter(node: Node, weights: LiveTensor) -> None:
    if weights.type == _INT4:
        node.scratch(weights.element_count, "filter unpacked from int4")


def _scratch_if_any(node: Node, size_bytes: int, label: str) -> None:
    if size_bytes > 0:
        node.scratch(size_bytes, label)


def _ensure_weights(node: Node, source: LiveTensor, weights: LiveTensor) -> None:
    pairs = ((_FLOAT, _FLOAT), (_INT16, _INT8), (_INT8, _INT4), (_INT8, _INT8))
    node.ensure((source.type, weights.type) in pairs, _HYBRID)


def _ensure_scales(node: Node, weights: LiveTensor, channels: int) -> None:
    scales = weights.quantized_channels
    node.ensure(scales > 0, "filter->quantization.type != kTfLiteAffineQuantization (0 != 1)")
    node.ensure(
        scales in (1, channels),
        "affine_quantization->scale->size == 1 || affine_quantization->scale->size == filter channels was not true.",
    )


def _window(node: Node, source: LiveTensor, weights: LiveTensor, output: LiveTensor, filter_channels: int) -> Window:
    stride_height, stride_width = node.option("stride_h"), node.option("stride_w")
    dilation_height, dilation_width = node.option("dilation_h_factor", 1), node.option("dilation_w_factor", 1)
    same = node.option("padding") == _SAME
    return Window(
        source.dims[0],
        source.dims[1],
        source.dims[2],
        source.dims[3],
        weights.dims[1],
        weights.dims[2],
        filter_channels,
        output.dims[3],
        output.dims[2],
        stride_height,
        stride_width,
        dilation_height,
        dilation_width,
        _padding(same, stride_height, dilation_height, source.dims[1], weights.dims[1]),
        _padding(same, stride_width, dilation_width, source.dims[2], weights.dims[2]),
    )


def _padding(same: bool, stride: int, dilation: int, size: int, filter_size: int) -> int:
    """ComputePaddingWithOffset and ComputeOutSize, lite/kernels/padding.h: rows or columns on the near side."""
    if stride == 0:
        return 0
    effective = (filter_size - 1) * dilation + 1
    out_size = (size + stride - 1) // stride if same else (size + stride - effective) // stride
    return max(((out_size - 1) * stride + effective - size) // 2, 0)
