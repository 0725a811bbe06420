"""FULLY_CONNECTED, BATCH_MATMUL and EMBEDDING_LOOKUP (kernels/fully_connected*.cc, batch_matmul*.cc,
embedding_lookup.cc and cmsis_nn/ of the same names)."""

from __future__ import annotations

from harness.model.graph import TensorType
from harness.plan.kernels import cmsis_nn
from harness.plan.kernels.registry import register
from harness.plan.node import Node
from harness.plan.target import Kernels
from harness.plan.tensor import LiveTensor, type_name

_INT8, _INT16, _INT4, _FLOAT = TensorType.INT8, TensorType.INT16, TensorType.INT4, TensorType.FLOAT32
_INTEGER = (_INT8, _INT16)
_HYBRID = "Hybrid models are not supported on TFLite Micro."


@register("FULLY_CONNECTED", init="OpDataFullyConnected")
def fully_connected(node: Node) -> None:
    source, weights = node.temp_input(0), node.temp_input(1)
    bias = node.optional_temp_input(2)
    output = node.temp_output()
    node.ensure_same_type(source, output)
    supported = {_FLOAT: (_FLOAT,), _INT8: (_INT8, _INT4), _INT16: (_INT8,)}
    names = f"Input type: {type_name(source.type)} with filter type: {type_name(weights.type)} not supported."
    node.ensure(source.type not in supported or weights.type in supported[TensorType(source.type)], names)
    if weights.type == _INT4:
        node.scratch(weights.element_count, "filter unpacked from int4")
    _quantize_fully_connected(node, source, weights, bias, output)


@register("FULLY_CONNECTED", init="cmsis_nn_fully_connected::OpData", kernels=Kernels.CMSIS_NN)
def fully_connected_cmsis_nn(node: Node) -> None:
    source, weights = node.temp_input(0), node.temp_input(1)
    bias = node.optional_temp_input(2)
    output = node.temp_output()
    node.ensure_same_type(source, output)
    node.ensure(source.type in (_FLOAT, *_INTEGER), "Input data type not supported")
    pairs = ((_FLOAT, _FLOAT), (_INT16, _INT8), (_INT8, _INT4), (_INT8, _INT8))
    node.ensure((source.type, weights.type) in pairs, _HYBRID)
    node.expect(2 <= output.rank <= 4, f"output_dim_count >= 2 and <= 4 was not true ({output.rank}).")
    per_channel = _quantize_fully_connected(node, source, weights, bias, output)
    plain_int8 = source.type == _INT8 and weights.type == _INT8
    node.ensure(
        not per_channel or plain_int8,
        "!data->reference_op_data.is_per_channel || input->type == kTfLiteInt8 was not true.",
    )
    if not plain_int8:
        return
    out_channels, depth = output.dims[-1], weights.dims[-1]
    if output.rank > 2 and depth % 4 == 0:
        if not per_channel:
            # cmsis_nn/fully_connected.cc checks buffer_conv_1x1_idx >= 4 in Eval: a slip for > -1
            number = len(node.preparation.scratch)
            node.scratch(8 * out_channels, "multipliers and shifts for the 1x1 convolution")
            if number < 4:
                node.warn(
                    "TFLM built with assertions halts here in Invoke: TFLITE_DCHECK_GE(data.buffer_conv_1x1_idx, 4), "
                    f"and this is scratch request {number}"
                )
        return
    kernel_sums = cmsis_nn.fully_connected_s8(out_channels, node.core)
    if kernel_sums and weights.is_constant and (bias is None or bias.is_constant):
        node.persist(kernel_sums, "kernel sums")
    elif kernel_sums:
        node.scratch(kernel_sums, "kernel sums")


def _quantize_fully_connected(
    node: Node, source: LiveTensor, weights: LiveTensor, bias: LiveTensor | None, output: LiveTensor
) -> bool:
    """CalculateOpDataFullyConnected: whether the filter is quantized per channel."""
    channels = weights.quantized_channels
    if source.type == _FLOAT:
        return False
    if channels > 1:
        cause = "per-channel filter: input type and filter type not supported"
        node.ensure(source.type in _INTEGER and weights.type != _INT4, cause)
        axis = weights.source.quantization.quantized_dimension if weights.source.quantization else 0
        length = weights.dims[axis] if 0 <= axis < weights.rank else -1
        node.ensure(channels == length, f"per_channel_quantization_size != filter channels ({channels} != {length})")
        node.persist(4 * channels, "per-channel multipliers")
        node.persist(4 * channels, "per-channel shifts")
    else:
        _ensure_multiplier(node, source.scale * weights.scale, bias, output)
    node.expect(weights.zero_point == 0, f"filter->params.zero_point == 0 was not true ({weights.zero_point}).")
    node.ensure_activation_range(output)
    return channels > 1


def _ensure_multiplier(node: Node, product_scale: float, bias: LiveTensor | None, output: LiveTensor) -> None:
    """GetQuantizedConvolutionMultipler, lite/kernels/kernel_util.cc: the bias' scale must be that of the products.
    With an output scale of 0 the C++ division gives infinity or, for equal scales, NaN: refused both."""
    if bias is not None:
        difference = abs(product_scale - bias.scale)
        close = output.scale > 0 and difference / output.scale <= 0.02
        node.ensure(close, "scale_diff / output_scale <= 0.02 was not true.")
    node.ensure(product_scale >= 0, "input_product_scale >= 0 was not true.")


@register("BATCH_MATMUL", init="OpDataBatchMatmul")
def batch_matmul(node: Node) -> None:
    node.ensure_counts(inputs=2, outputs=1)
    left, right, output = _batch_matmul_tensors(node, max_rank=5)
    if left.type in _INTEGER:
        node.persist_struct("QuantizationOpDataBatchMatmul")
    _transposed_operands(node, left, right)
    _reshape_batch_matmul_output(node, left, right, output)


@register("BATCH_MATMUL", init="cmsis_nn_batch_matmul::OpData", kernels=Kernels.CMSIS_NN)
def batch_matmul_cmsis_nn(node: Node) -> None:
    left, right, output = _batch_matmul_tensors(node, max_rank=4)
    _transposed_operands(node, left, right)
    _reshape_batch_matmul_output(node, left, right, output)
    if left.type != _FLOAT:
        node.persist_struct("QuantizationOpDataBatchMatmul")
    kernel_sums = cmsis_nn.fully_connected_s8(output.dims[-1], node.core) if left.type == _INT8 else 0
    if kernel_sums:
        node.scratch(kernel_sums, "kernel sums")


def _batch_matmul_tensors(node: Node, max_rank: int) -> tuple[LiveTensor, LiveTensor, LiveTensor]:
    left, right, output = node.temp_input(0), node.temp_input(1), node.temp_output()
    for tensor in (left, right):
        node.ensure_type(tensor, _FLOAT, *_INTEGER)
    node.ensure(left.type == right.type, "lhs_data->type == rhs_data->type was not true.")
    node.ensure(left.type == output.type, "lhs_data->type == output->type was not true.")
    for side, tensor in (("lhs", left), ("rhs", right)):
        node.ensure(2 <= tensor.rank <= max_rank, f"{side}_rank >= 2 and <= {max_rank} was not true ({tensor.rank}).")
    if left.type == _INT16:
        for tensor in (left, right, output):
            node.ensure(tensor.zero_point == 0, f"params.zero_point != 0 ({tensor.zero_point} != 0)")
    return left, right, output


def _transposed_operands(node: Node, left: LiveTensor, right: LiveTensor) -> None:
    """AllocInitTransposeTensorFromTfLiteTensor, for the operands that are not yet in the wanted order."""
    transposed = [left] if node.option("adj_x") else []
    if not node.option("adj_y"):
        transposed.append(right)
    for tensor in transposed:
        node.persist_struct("TfLiteEvalTensor")
        node.persist(node.abi.int_array_bytes(tensor.rank), "dims of the transposed operand")
        node.persist(tensor.size_bytes, "transposed operand")


def _reshape_batch_matmul_output(node: Node, left: LiveTensor, right: LiveTensor, output: LiveTensor) -> None:
    rank = max(left.rank, right.rank)
    left_dims, right_dims = ((1,) * (rank - t.rank) + t.dims for t in (left, right))
    batch = []
    for one, other in zip(left_dims[:-2], right_dims[:-2], strict=True):
        node.ensure(one == other or one == 1 or other == 1, f"batch dimensions {one} and {other} do not broadcast")
        batch.append(other if one == 1 else one)
    rows, inner = left_dims[-2:] if not node.option("adj_x") else left_dims[-1:-3:-1]
    other_inner, columns = right_dims[-2:] if not node.option("adj_y") else right_dims[-1:-3:-1]
    node.ensure(inner == other_inner, f"accum_dim_lhs != accum_dim_rhs ({inner} != {other_inner})")
    node.ensure(rank <= output.rank, "output_rank <= NumDimensions(output) was not true.")
    before = output.element_count
    node.persist_dims(output, (*batch, rows, columns))
    node.ensure(
        before == output.element_count, f"orig_size != NumElements(output) ({before} != {output.element_count})"
    )


@register("EMBEDDING_LOOKUP")
def embedding_lookup(node: Node) -> None:
    node.ensure_counts(inputs=2, outputs=1)
    lookup = node.temp_input(0)
    node.ensure(lookup.rank == 1, f"NumDimensions(lookup) != 1 ({lookup.rank} != 1)")
    node.ensure_type(lookup, TensorType.INT32)
    value = node.temp_input(1)
    node.ensure(value.rank >= 2, "NumDimensions(value) >= 2 was not true.")
    node.ensure_type(value, _FLOAT, _INT8)
    output = node.temp_output()
    node.ensure_type(output, *((_FLOAT,) if value.type == _FLOAT else (_FLOAT, _INT8)))
    node.ensure(output.rank >= value.rank, "output->dims->size >= NumDimensions(value) was not true.")
    before = output.size_bytes
    # the output's type and bytes are read after both allocations
    node.persist_dims(output, (lookup.dims[0], *value.dims[1:], *output.dims[value.rank :]), still_read=True)
    node.ensure(output.size_bytes <= before, "new_dims_size <= output->bytes was not true.")
    node.persist_struct("embedding_lookup::OpData", still_read=True)
