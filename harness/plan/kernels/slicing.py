"""Operators that take or put parts (kernels/split*.cc, slice.cc, strided_slice*.cc, dynamic_update_slice.cc,
reverse.cc, gather*.cc)."""

from __future__ import annotations

from harness.model.graph import TensorType
from harness.plan.kernels.registry import register
from harness.plan.node import Node

_INT8, _INT16, _INT32, _INT64 = TensorType.INT8, TensorType.INT16, TensorType.INT32, TensorType.INT64
_FLOAT, _BOOL = TensorType.FLOAT32, TensorType.BOOL


@register("SPLIT")
def split(node: Node) -> None:
    node.ensure_constant(node.temp_input(0), "axis")


@register("SPLIT_V")
def split_v(node: Node) -> None:
    node.ensure_counts(inputs=3)
    node.ensure_constant(node.temp_input(2), "axis")


@register("SLICE")
def slice_(node: Node) -> None:
    node.ensure_counts(inputs=3, outputs=1)
    source, begin, size, output = (*(node.temp_input(index) for index in range(3)), node.temp_output())
    node.expect(source.type == output.type, "input->type == output->type was not true.")
    node.expect(begin.type == size.type, "begin->type == size->type was not true.")
    node.expect(begin.type in (_INT32, _INT64), "begin->type == kTfLiteInt32 || kTfLiteInt64 was not true.")
    node.expect(source.rank <= 5, "NumDimensions(input) <= kMaxDim was not true.")


@register("STRIDED_SLICE", init="StridedSliceParams")
def strided_slice(node: Node) -> None:
    node.ensure_counts(inputs=4, outputs=1)
    source = node.temp_input(0)
    bounds = [node.temp_input(index) for index in (1, 2, 3)]
    node.temp_output()
    node.ensure(source.rank <= 4, "input dim should not exceed 4")
    for tensor, name in zip(bounds, ("begin", "end", "strides"), strict=True):
        node.ensure_constant(tensor, name)


@register("DYNAMIC_UPDATE_SLICE")
def dynamic_update_slice(node: Node) -> None:
    node.ensure_counts(inputs=3, outputs=1)
    operand, update, start, _ = (*(node.temp_input(index) for index in range(3)), node.temp_output())
    node.ensure_same_type(operand, update)
    node.ensure_type(start, _INT32, _INT64)
    node.ensure(start.dims == (operand.rank,), "SizeOfDimension(start_indices, 0) != NumDimensions(operand)")
    node.ensure(update.rank == operand.rank, "NumDimensions(update) != NumDimensions(operand)")
    within = all(part <= whole for part, whole in zip(update.dims, operand.dims, strict=True))
    node.ensure(within, "SizeOfDimension(update, i) <= SizeOfDimension(operand, i) was not true.")


@register("REVERSE_V2")
def reverse_v2(node: Node) -> None:
    node.ensure_counts(inputs=2, outputs=1)
    source, axis, output = node.temp_input(0), node.temp_input(1), node.temp_output()
    node.ensure(axis.rank == 1, f"NumDimensions(axis) != 1 ({axis.rank} != 1)")
    node.ensure(axis.element_count <= source.rank <= 6, "NumDimensions(input) >= NumElements(axis) was not true.")
    node.ensure_type(source, _INT32, _FLOAT, TensorType.UINT8, _INT8, _INT16, _INT64, _BOOL)
    node.ensure_type(axis, _INT32)
    node.ensure_same_type(source, output)


@register("GATHER")
def gather(node: Node) -> None:
    node.ensure_counts(inputs=2, outputs=1)
    source, positions, output = node.temp_input(0), node.temp_input(1), node.temp_output()
    node.ensure_type(positions, _INT32)
    node.ensure_type(source, _FLOAT, _INT8)
    axis, batch = node.option("axis"), node.option("batch_dims")
    axis = axis + source.rank if axis < 0 else axis
    node.ensure(0 <= axis < source.rank, "0 <= axis && axis < NumDimensions(input) was not true.")
    batch = batch + positions.rank if batch < 0 else batch
    node.ensure(batch <= axis, "batch_dims <= axis was not true.")
    node.ensure(0 <= batch < source.rank, "0 <= batch_dims && batch_dims < NumDimensions(input) was not true.")
    node.ensure(batch <= positions.rank, "batch_dims <= NumDimensions(coords) was not true.")
    node.ensure(source.dims[:batch] == positions.dims[:batch], "batch dimensions of input and coords differ")
    node.persist_dims(output, (*source.dims[:axis], *positions.dims[batch:], *source.dims[axis + 1 :]))


@register("GATHER_ND")
def gather_nd(node: Node) -> None:
    node.ensure_counts(inputs=2, outputs=1)
    source, indices, output = node.temp_input(0), node.temp_input(1), node.temp_output()
    node.ensure_type(source, _FLOAT, _INT8)
    node.ensure_type(indices, _INT32)
    node.ensure(source.rank >= 1, "Params must be at least a vector.")
    node.ensure(indices.rank >= 1, "Indices must be at least a vector.")
    depth = indices.dims[-1]
    node.ensure(depth <= source.rank, "Index innermost dimension length must be <= params rank.")
    node.ensure(depth <= 5, "Index innermost dimension length must not exceed 5.")
    node.persist_dims(output, (*indices.dims[:-1], *source.dims[depth:]))
