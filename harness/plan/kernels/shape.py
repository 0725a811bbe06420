"""Operators that give elements another shape or place (kernels/reshape*.cc, pad*.cc, concatenation.cc, transpose*.cc,
space_to_depth.cc, resize_*.cc, broadcast_*.cc and the like)."""

from __future__ import annotations

import math

from harness.abi import MAX_CONCATENATION_INPUTS
from harness.model.graph import TensorType
from harness.plan.kernels.registry import add, register
from harness.plan.node import Node
from harness.plan.tensor import LiveTensor

_INT8, _INT16, _INT32, _INT64 = TensorType.INT8, TensorType.INT16, TensorType.INT32, TensorType.INT64
_FLOAT, _BOOL = TensorType.FLOAT32, TensorType.BOOL

# These kernels have no Init and no Prepare.
add("PACK", "UNPACK")


@register("RESHAPE")
def reshape(node: Node) -> None:
    node.ensure(node.input_count in (1, 2), "NumInputs(node) == 1 || NumInputs(node) == 2 was not true.")
    node.ensure_counts(outputs=1)
    source, output = node.temp_input(0), node.temp_output()
    if node.input_count == 1 and output.dims == (0,):
        output.dims = ()  # a legacy scalar
    if -1 in output.dims:
        node.ensure(output.dims.count(-1) == 1, "stretch_dim != -1")
        known = math.prod(dim for dim in output.dims if dim != -1)
        node.ensure(known != 0, "num_output_elements is 0")
        stretched = source.element_count // known
        dims = tuple(stretched if dim == -1 else dim for dim in output.dims)
        node.persist_dims(output, dims, still_read=output.quantized_channels == 0)  # its type is read afterwards
    node.ensure_same_type(source, output)
    elements = (source.element_count, output.element_count)
    node.ensure(
        elements[0] == elements[1], f"num_input_elements != num_output_elements ({elements[0]} != {elements[1]})"
    )


@register("SQUEEZE")
def squeeze(node: Node) -> None:
    node.ensure_counts(inputs=1, outputs=1)
    source = node.temp_input(0)
    node.temp_output()
    node.ensure(source.rank <= 8, "input_num_dims <= max_squeeze_dims was not true.")
    for dim in node.integers("squeeze_dims"):
        current = dim + source.rank if dim < 0 else dim
        cause = "current >= 0 && current < input_num_dims && input_dims->data[current] == 1 was not true."
        node.ensure(0 <= current < source.rank and source.dims[current] == 1, cause)


@register("EXPAND_DIMS")
def expand_dims(node: Node) -> None:
    node.ensure_counts(inputs=2, outputs=1)
    source, axis, output = node.temp_input(0), node.temp_input(1), node.temp_output()
    node.ensure_constant(axis, "axis")
    cause = "output_shape.DimensionsCount() == input_shape.DimensionsCount() + 1 was not true."
    node.ensure(output.rank == source.rank + 1, cause)
    position = node.constants(axis)
    if position:
        at = position[0] + source.rank + 1 if position[0] < 0 else position[0]
        wanted = (*source.dims[:at], 1, *source.dims[at:])
        node.ensure(0 <= at <= source.rank and output.dims == wanted, f"output_shape != {wanted} ({output.dims})")


@register("TRANSPOSE")
def transpose(node: Node) -> None:
    node.ensure_counts(inputs=2, outputs=1)
    source, perm, output = node.temp_input(0), node.temp_input(1), node.temp_output()
    node.ensure(source.rank <= 5, "Transpose op only supports 1D-5D input arrays.")
    node.ensure_same_type(source, output)
    node.ensure_constant(perm, "perm")
    node.ensure(perm.dims == (source.rank,), f"op_context.perm->dims->data[0] != dims ({perm.dims} != {source.rank})")
    order = node.constants(perm) or ()
    within = all(0 <= axis < source.rank for axis in order)
    node.ensure(within, "Transpose op permutations array is out of bounds.")


@register("PAD", "PADV2", init="pad::OpData")
def pad(node: Node) -> None:
    node.ensure(node.input_count in (2, 3), "NumInputs(node) == 2 || NumInputs(node) == 3 was not true.")
    node.ensure_counts(outputs=1)
    source, paddings = node.temp_input(0), node.temp_input(1)
    value = node.optional_temp_input(2)
    output = node.temp_output()
    node.ensure_same_type(source, output)
    node.ensure(source.rank <= 5, "NumDimensions(input) <= PadKernelMaxDimensionCount() was not true.")
    if value is not None:
        node.ensure_same_type(source, value)
        node.ensure(value.element_count == 1, f"NumElements(constant_values) != 1 ({value.element_count} != 1)")
    pairs = paddings.element_count
    node.ensure(
        pairs == output.rank * 2, f"FlatSize of paddings != output->dims->size * 2 ({pairs} != {output.rank * 2})"
    )
    node.ensure_constant(paddings, "paddings")
    widths = node.constants(paddings)
    if widths is not None:
        padded = tuple(source.dims[axis] + sum(widths[2 * axis : 2 * axis + 2]) for axis in range(output.rank))
        node.ensure(output.dims == padded, f"output_dim != expected_dim ({output.dims} != {padded})")
    if source.type == _INT8 and value is not None:
        node.ensure(output.zero_point == value.zero_point, "output->params.zero_point != constant_values' zero_point")
        node.ensure(output.scale == value.scale, "output->params.scale != constant_values->params.scale")


@register("MIRROR_PAD", init="mirror_pad::OpDataMirrorPad")
def mirror_pad(node: Node) -> None:
    source, paddings = node.temp_input(0), node.temp_input(1)
    node.temp_output()
    node.ensure(paddings.rank == 2, f"NumDimensions(padding_matrix) != 2 ({paddings.rank} != 2)")
    node.ensure(paddings.dims[0] == source.rank, "SizeOfDimension(padding_matrix, 0) != NumDimensions(input_tensor)")
    for label in ("output strides", "input strides"):
        node.scratch(node.abi.size("int") * source.rank, label)


@register("CONCATENATION", init="concatenation::OpData")
def concatenation(node: Node) -> None:
    first, output = node.temp_input(0), node.temp_output()
    node.ensure(node.option("fused_activation_function") == 0, "params->activation != kTfLiteActNone")
    names = ("Float32", "Int8", "Int16", "Int32", "Int64", "Bool")
    cause = " || ".join(f"input_type == kTfLite{name}" for name in names) + " was not true."
    node.ensure(first.type in (_FLOAT, _INT8, _INT16, _INT32, _INT64, _BOOL), cause)
    node.ensure_same_type(output, first)
    node.ensure(node.input_count <= MAX_CONCATENATION_INPUTS, "num_inputs <= kMaxInputNum was not true.")
    for index in range(node.input_count):
        source = node.temp_input(index)
        node.ensure_same_type(source, first)
        cause = f"Op Concatenation does not currently support num dimensions > 6 Tensor has {source.rank} dimensions."
        node.ensure(source.rank <= 6, cause)
        if first.type == _INT8:
            node.ensure(source.scale == output.scale, f"input->params.scale != output scale ({source.scale:g})")
            node.ensure(source.zero_point == output.zero_point, "input->params.zero_point != output zero_point")
        elif first.type == _INT16:
            node.ensure(source.zero_point == 0, f"input->params.zero_point != 0 ({source.zero_point} != 0)")
    if first.type == _INT16:
        node.ensure(output.zero_point == 0, f"output_tensor->params.zero_point != 0 ({output.zero_point} != 0)")


@register("BATCH_TO_SPACE_ND")
def batch_to_space_nd(node: Node) -> None:
    _space_batch(node)


@register("SPACE_TO_BATCH_ND", init="SpaceToBatchParams")
def space_to_batch_nd(node: Node) -> None:
    _space_batch(node)


def _space_batch(node: Node) -> None:
    node.ensure_counts(inputs=3, outputs=1)
    source, output = node.temp_input(0), node.temp_output()
    for tensor in (source, output):
        node.ensure(3 <= tensor.rank <= 4, f"NumDimensions >= 3 and <= 4 was not true ({tensor.rank}).")
    node.ensure_same_type(source, output)


@register("SPACE_TO_DEPTH")
def space_to_depth(node: Node) -> None:
    source, output = _space_depth(node)
    block = node.option("block_size")
    node.ensure(source.dims[1] == output.dims[1] * block, "input_height != output_height * block_size")
    node.ensure(source.dims[2] == output.dims[2] * block, "input_width != output_width * block_size")
    node.persist_dims(output, (source.dims[0], *output.dims[1:3], source.dims[3] * block * block))


@register("DEPTH_TO_SPACE")
def depth_to_space(node: Node) -> None:
    source, output = _space_depth(node)
    block = node.option("block_size")
    node.ensure(block > 0, "block_size > 0 was not true.")
    height, width, channels = output.dims[1], output.dims[2], output.dims[3]
    node.ensure(source.dims[1] == height // block, "input_height != output_height / block_size")
    node.ensure(source.dims[2] == width // block, "input_width != output_width / block_size")
    node.ensure(
        source.dims[3] == channels * block * block, "input_channels != output_channels * block_size * block_size"
    )
    node.persist_dims(output, (source.dims[0], height, width, channels))


def _space_depth(node: Node) -> tuple[LiveTensor, LiveTensor]:
    node.ensure_counts(inputs=1, outputs=1)
    source, output = node.temp_input(0), node.temp_output()
    node.ensure(source.rank == 4, f"NumDimensions(input) != 4 ({source.rank} != 4)")
    node.ensure(source.type in (_FLOAT, _INT8), "data_type == kTfLiteFloat32 || data_type == kTfLiteInt8 was not true.")
    node.ensure_same_type(source, output)
    return source, output


@register("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
def resize(node: Node) -> None:
    node.ensure_counts(inputs=2, outputs=1)
    source, size = node.temp_input(0), node.temp_input(1)
    node.temp_output()
    node.ensure(source.rank == 4, f"NumDimensions(input) != 4 ({source.rank} != 4)")
    node.ensure(size.rank == 1, f"NumDimensions(size) != 1 ({size.rank} != 1)")
    node.ensure_type(size, _INT32)
    node.ensure_constant(size, "size")
    if node.operator.name == "RESIZE_NEAREST_NEIGHBOR":
        node.ensure(size.dims[0] == 2, f"size->dims->data[0] != 2 ({size.dims[0]} != 2)")
    both = node.option("half_pixel_centers") and node.option("align_corners")
    if node.operator.name == "RESIZE_BILINEAR":
        node.ensure(not both, "If half_pixel_centers is True, align_corners must be False.")


@register("BROADCAST_TO")
def broadcast_to(node: Node) -> None:
    node.ensure_counts(inputs=2, outputs=1)
    source, shape, output = node.temp_input(0), node.temp_input(1), node.temp_output()
    node.ensure(source.rank <= 5, "BroadcastTo only supports 1-5D tensor.")
    node.ensure_type(shape, _INT32, _INT64)
    node.ensure_same_type(source, output)
    node.ensure_constant(shape, "shape")
    node.ensure(shape.dims == (output.rank,), "Output must match with the expected shape dimension.")
    node.ensure(source.rank <= output.rank, "Output shape must be broadcastable from input shape.")


@register("BROADCAST_ARGS")
def broadcast_args(node: Node) -> None:
    node.ensure_counts(inputs=2, outputs=1)
    one, other, output = node.temp_input(0), node.temp_input(1), node.temp_output()
    node.ensure_type(one, _INT32, _INT64)
    node.ensure_same_type(one, other)
    node.ensure_same_type(one, output)
    for tensor in (one, other, output):
        node.ensure(tensor.rank == 1, f"NumDimensions != 1 ({tensor.rank} != 1)")


@register("FILL")
def fill(node: Node) -> None:
    dims, value, output = node.temp_input(0), node.temp_input(1), node.temp_output()
    node.ensure(value.rank == 0, f"NumDimensions(value) != 0 ({value.rank} != 0)")
    node.ensure_same_type(value, output)
    node.ensure_constant(dims, "dims")
    node.ensure_type(dims, _INT32, _INT64)
    node.ensure(dims.dims == (output.rank,), f"array->size != tensor_len ({output.rank} != {dims.dims})")
    wanted = node.constants(dims)
    node.ensure(wanted is None or wanted == output.dims, f"array->data[i] != GetTensorData<T>(tensor)[i] ({wanted})")


@register("SHAPE")
def shape(node: Node) -> None:
    node.ensure_counts(inputs=1, outputs=1)
