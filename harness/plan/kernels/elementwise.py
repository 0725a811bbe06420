"""Operators that work element by element (kernels/add*.cc, sub*.cc, mul*.cc, div.cc, elementwise.cc, activations*.cc,
comparisons.cc, quantize*.cc, dequantize*.cc and the like)."""

from __future__ import annotations

from harness.model.graph import TensorType
from harness.plan.kernels.registry import add, register
from harness.plan.node import Node
from harness.plan.target import Kernels
from harness.plan.tensor import LiveTensor, type_name

_INT8, _INT16, _INT32, _FLOAT = TensorType.INT8, TensorType.INT16, TensorType.INT32, TensorType.FLOAT32
_BOOL, _UINT8 = TensorType.BOOL, TensorType.UINT8


# These kernels have no Init and no Prepare.
add("ARG_MAX", "ARG_MIN", "FLOOR", "LOGICAL_AND", "LOGICAL_OR", "MAXIMUM", "MINIMUM", "NEG")


def _binary(node: Node) -> tuple[LiveTensor, LiveTensor, LiveTensor]:
    return node.temp_input(0), node.temp_input(1), node.temp_output()


def _ensure_unquantized(node: Node, *tensors: LiveTensor) -> None:
    for tensor in tensors:
        node.ensure(tensor.quantized_channels == 0, "quantization.type != kTfLiteNoQuantization (1 != 0)")


@register("ADD", init="OpDataAdd")
def add_(node: Node) -> None:
    one, other, output = _binary(node)
    if output.type in (_INT8, _INT16):
        cause = "output->quantization.type != kTfLiteNoQuantization was not true."
        node.ensure(output.quantized_channels > 0, cause)
    if output.type == _INT32:
        _ensure_unquantized(node, one, other)


@register("ADD", init="cmsis_nn_add::OpData", kernels=Kernels.CMSIS_NN)
def add_cmsis_nn(node: Node) -> None:
    one, other, output = _binary(node)
    node.ensure_same_type(one, output)
    node.ensure(one.type in (_FLOAT, _INT32, _INT16, _INT8), "Input data type not supported")
    node.ensure(one.type == other.type, "Hybrid models are not supported on TFLite Micro.")
    if one.type == _INT16:
        node.ensure_symmetric(one, other, output)
    if output.type == _INT32:
        _ensure_unquantized(node, one, other)


@register("SUB", init="OpDataSub")
def sub(node: Node) -> None:
    one, other, output = _binary(node)
    if output.type == _INT32:
        _ensure_unquantized(node, one, other, output)


@register("MUL", init="OpDataMul")
def mul(node: Node) -> None:
    one, other, output = _binary(node)
    node.ensure_counts(inputs=2, outputs=1)
    node.ensure_same_type(one, other)
    if output.type in (_INT8, _INT16):
        node.ensure_activation_range(output)
        if one.type == _INT16:
            node.ensure_symmetric(one, other, output)


@register("DIV", init="div::OpDataDiv")
def div(node: Node) -> None:
    one, other, output = _binary(node)
    node.ensure_same_type(one, other)
    node.ensure_same_type(one, output)
    if output.type == _INT8:
        node.ensure_activation_range(output)
    if output.type == _INT32:
        _ensure_unquantized(node, one, other)


@register("SQUARED_DIFFERENCE", init="squared_difference::OpData")
def squared_difference(node: Node) -> None:
    node.ensure_counts(inputs=2, outputs=1)
    one, other, output = _binary(node)
    node.ensure_same_type(one, other)
    if one.type == _INT16:
        node.ensure_symmetric(one, other, output)


@register("FLOOR_DIV", "FLOOR_MOD")
def floor_div_or_mod(node: Node) -> None:
    node.ensure_counts(inputs=2, outputs=1)
    one, other, output = _binary(node)
    node.ensure_same_type(one, other)
    node.ensure_same_type(one, output)


@register("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", init="comparisons::OpData")
def comparison(node: Node) -> None:
    one, other = node.temp_input(0), node.temp_input(1)
    if one.type == _INT8:
        for tensor in (one, other):
            # QuantizeMultiplierSmallerThanOneExp ends the program otherwise
            node.ensure(0 < tensor.scale < 1, f"TFLITE_CHECK: 0 < scale < 1 was not true ({tensor.scale:g})")


@register("ADD_N")
def add_n(node: Node) -> None:
    node.ensure(node.input_count >= 2, "num_inputs >= 2 was not true.")
    node.ensure_counts(outputs=1)
    first, output = node.temp_input(0), node.temp_output()
    node.ensure_same_type(output, first)
    for index in range(1, node.input_count):
        other = node.temp_input(index)
        node.ensure(other.dims == first.dims, "HaveSameShapes(input_tensor_first, input) was not true.")
        node.ensure_same_type(first, other)
        if first.type == _INT8:
            same = (first.zero_point, first.scale) == (other.zero_point, other.scale)
            node.ensure(same, "the inputs' scales and zero points differ")
    supported = f"ADD_N only supports FLOAT32 and INT8, got {type_name(output.type)}."
    node.ensure(output.type in (_FLOAT, _INT8), supported)
    if output.type == _INT8:
        node.persist_struct("add_n::OpData")
    node.scratch(node.abi.pointer_bytes * node.input_count, "input pointers")


# elementwise.cc asks its template parameter IsSupportedType for the type, but the parameter has no name: what it calls
# is the typedef, a cast to a function pointer, which is null for no type that passes. So Prepare refuses no type.


@register("ABS", init="elementwise::OpDataAbsRsqrt")
def abs_(node: Node) -> None:
    _abs_or_rsqrt(node)


@register("RSQRT", init="elementwise::OpDataAbsRsqrt")
def rsqrt(node: Node) -> None:
    _abs_or_rsqrt(node)


def _abs_or_rsqrt(node: Node) -> None:
    source, output = node.temp_input_and_output()
    node.ensure_same_type(source, output)
    if source.type == _INT8 or (source.type == _INT16 and source.quantized_channels):
        for tensor in (source, output):
            node.ensure(tensor.quantized_channels > 0, "quantization.type != kTfLiteAffineQuantization (0 != 1)")
        if source.type == _INT16:
            node.ensure_symmetric(source, output)


@register("SIN", "COS", "LOG", "SQRT", "SQUARE")
def float_function(node: Node) -> None:
    source, output = node.temp_input_and_output()
    node.ensure_same_type(source, output)


@register("LOGICAL_NOT")
def logical_not(node: Node) -> None:
    source, output = node.temp_input_and_output()
    node.ensure_same_type(source, output)


@register("CEIL", "EXP", "ROUND")
def same_shape_float(node: Node) -> None:
    source, output = node.temp_input(0), node.temp_output()
    node.ensure_counts(inputs=1, outputs=1)
    node.ensure_type(source, _FLOAT)
    node.ensure_same_type(output, source)
    node.ensure(output.dims == source.dims, f"output->dims != input->dims ({output.dims} != {source.dims})")


@register("CUMSUM")
def cumsum(node: Node) -> None:
    node.ensure_counts(inputs=2, outputs=1)
    source, axis = node.temp_input(0), node.temp_input(1)
    node.ensure_type(source, _FLOAT, _INT8)
    node.ensure_type(axis, _INT32)
    node.ensure(axis.element_count == 1, f"NumElements(axis) != 1 ({axis.element_count} != 1)")
    node.ensure(source.rank >= 1, "NumDimensions(input) >= 1 was not true.")
    output = node.temp_output()
    node.ensure_same_type(source, output)
    node.ensure(source.dims == output.dims, "HaveSameShapes(input, output) was not true.")
    if output.type == _INT8:
        node.persist_struct("cumsum::OpData")
        node.ensure_activation_range(output)


@register("QUANTIZE", init="OpDataQuantizeReference")
def quantize(node: Node) -> None:
    source, output = node.temp_input_and_output()
    node.ensure(output.quantized_channels > 0, "output->quantization.type != kTfLiteAffineQuantization (0 != 1)")
    node.ensure(output.quantized_channels == 1, "affine_quantization->scale->size == 1 was not true.")
    node.ensure_type(source, _FLOAT, _INT32, _INT16, _INT8, _UINT8)
    node.ensure_type(output, _INT8, _INT16, _INT32, _UINT8)


@register("DEQUANTIZE", init="DequantizeOpData")
def dequantize(node: Node) -> None:
    source, output = node.temp_input_and_output()
    cause = "input->type == kTfLiteInt8 || input->type == kTfLiteInt16 || input->type == kTfLiteUInt8 was not true."
    node.ensure(source.type in (_INT8, _INT16, _UINT8), cause)
    node.ensure(output.type == _FLOAT, "output->type == kTfLiteFloat32 was not true.")


@register("CAST", "ZEROS_LIKE")
def unary_of_any_type(node: Node) -> None:
    node.temp_input_and_output()


@register("SELECT_V2", init="select::OpData")
def select_v2(node: Node) -> None:
    node.ensure_counts(inputs=3, outputs=1)
    condition, one, other = node.temp_input(0), node.temp_input(1), node.temp_input(2)
    node.temp_output()
    node.ensure_type(condition, _BOOL)
    node.ensure_same_type(one, other)
