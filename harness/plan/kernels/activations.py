"""Activation functions, normalizations and SOFTMAX (kernels/activations*.cc, logistic*.cc, tanh.cc, prelu*.cc, elu.cc,
hard_swish*.cc, l2norm.cc, log_softmax.cc, softmax*.cc, cmsis_nn/softmax.cc)."""

from __future__ import annotations

import math

from harness.model.graph import TensorType
from harness.plan.kernels.registry import register
from harness.plan.node import Node
from harness.plan.target import Kernels
from harness.plan.tensor import LiveTensor

_INT8, _INT16, _FLOAT = TensorType.INT8, TensorType.INT16, TensorType.FLOAT32
#: softmax_common.cc, kInt16LUTArraySize: int16 entries of each lookup table.
_SOFTMAX_LUT_ENTRIES = 513


@register("RELU", init="ReluOpData")
def relu(node: Node) -> None:
    source, output = node.temp_input(0), node.temp_output()
    if source.type == _INT16:
        node.ensure_symmetric(source, output)


@register("RELU6", init="Relu6OpData")
def relu6(node: Node) -> None:
    node.temp_input(0)


@register("LEAKY_RELU", init="LeakyReluOpData")
def leaky_relu(node: Node) -> None:
    source, output = node.temp_input_and_output()
    node.ensure_same_type(source, output)


@register("PRELU", init="PreluParams")
def prelu(node: Node) -> None:
    node.temp_input(0)
    alpha, output = node.temp_input(1), node.temp_output()
    if output.type == _INT16:
        node.ensure_type(alpha, _INT8)


@register("ELU", init="elu::OpData")
def elu(node: Node) -> None:
    source, output = node.temp_input_and_output()
    node.ensure_same_type(source, output)


@register("HARD_SWISH", init="HardSwishParams")
def hard_swish(node: Node) -> None:
    node.temp_input_and_output()


@register("LOGISTIC", init="OpDataLogistic")
def logistic(node: Node) -> None:
    source, output = node.temp_input(0), node.temp_output()
    node.ensure_same_type(source, output)
    if source.type == _INT8:
        node.ensure(output.zero_point == -128, f"output->params.zero_point != -128 ({output.zero_point} != -128)")
    if source.type == _INT16:
        _ensure_q15(node, source, output)


@register("TANH", init="tanh::OpData")
def tanh(node: Node) -> None:
    node.temp_input(0)
    source, output = node.temp_input_and_output()
    node.ensure_same_type(source, output)
    if source.type == _INT16:
        _ensure_q15(node, source, output)


def _ensure_q15(node: Node, source: LiveTensor, output: LiveTensor) -> None:
    """LOGISTIC and TANH of 16 bits: no zero points, and an output scale of 2 ** -15 (CheckedLog2 allows 0.1 %)."""
    node.ensure_symmetric(source, output)
    exponent = math.log2(output.scale) if output.scale > 0 else math.inf
    cause = "CheckedLog2(output->params.scale, &output_scale_log2_rounded) was not true."
    node.ensure(abs(exponent - round(exponent)) < 1e-3 if math.isfinite(exponent) else False, cause)
    node.ensure(
        round(exponent) == -15, f"output_scale_log2_rounded != -kOutputFractionalBits ({round(exponent)} != -15)"
    )


@register("L2_NORMALIZATION", init="L2NormalizationParams")
def l2_normalization(node: Node) -> None:
    source, output = node.temp_input_and_output()
    node.ensure(source.rank <= 4, "NumDimensions(input) <= 4 was not true.")
    node.ensure_type(output, _FLOAT, _INT8)
    node.ensure_same_type(source, output)
    node.ensure(node.option("fused_activation_function") == 0, "params->activation != kTfLiteActNone")


@register("LOG_SOFTMAX")
def log_softmax(node: Node) -> None:
    source, output = node.temp_input_and_output()
    node.ensure_same_type(source, output)
    node.ensure(source.dims == output.dims, "HaveSameShapes(input, output) was not true.")
    if source.type == _INT8:
        node.persist_struct("log_softmax::LogSoftmaxOpData")
        node.ensure(output.scale == 16.0 / 256, "output->params.scale == kOutputScale was not true.")
        node.ensure(output.zero_point == 127, "output->params.zero_point == kOutputZeroPoint was not true.")


@register("SOFTMAX", init="SoftmaxParams")
def softmax(node: Node) -> None:
    _softmax(node)


@register("SOFTMAX", init="cmsis_nn_softmax::CMSISNNSoftmaxParams", kernels=Kernels.CMSIS_NN)
def softmax_cmsis_nn(node: Node) -> None:
    _softmax(node)


def _softmax(node: Node) -> None:
    node.ensure_counts(inputs=1, outputs=1)
    source = node.temp_input(0)
    node.ensure(source.rank >= 1, "NumDimensions(input) >= 1 was not true.")
    output = node.temp_output()
    if source.type == _INT16:
        for table in ("exponential", "reciprocal"):
            node.persist(2 * _SOFTMAX_LUT_ENTRIES, f"{table} lookup table")
    mixed = (source.type, output.type) == (_INT8, _INT16)
    node.ensure(source.type == output.type or mixed, "Input and output data types are not supported together.")
    node.ensure_type(source, _FLOAT, _INT8, _INT16)
    _ensure_softmax_output(node, source, output)


def _ensure_softmax_output(node: Node, source: LiveTensor, output: LiveTensor) -> None:
    if source.type == _FLOAT:
        return
    wanted = {(_INT16, _INT16): (0, 32768), (_INT8, _INT16): (-32768, 65536), (_INT8, _INT8): (-128, 256)}
    zero_point, inverse = wanted[TensorType(source.type), TensorType(output.type)]
    text = f"output->params.zero_point != {zero_point} ({output.zero_point} != {zero_point})"
    node.ensure(output.zero_point == zero_point, text)
    exact = (source.type, output.type) == (_INT8, _INT8)
    near = abs(output.scale - 1 / inverse) <= (0.0 if exact else 0.001 / inverse)
    node.ensure(near, f"output->params.scale == 1.f / {inverse} was not true.")
    if source.type == _INT16:
        node.ensure(source.zero_point == 0, f"input->params.zero_point != 0 ({source.zero_point} != 0)")
