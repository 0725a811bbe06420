"""Tensors one by one: types, shapes and constant data."""

from __future__ import annotations

from collections.abc import Iterator

from harness.model.codes import finding
from harness.model.finding import Finding
from harness.model.graph import Tensor, TensorType
from harness.model.rules.scope import Scope
from harness.model.sizes import SUB_BYTE_TYPES, arena_size_bytes, constant_size_bytes, type_name
from harness.units import format_size

#: TfLiteTypeSizeOf (tensorflow/lite/micro/memory_helpers.cc) gives these a size. One tensor of another type anywhere
#: in the model, used or not, makes AllocateTensors fail.
_SIZED = frozenset(range(23)) - {
    TensorType.STRING,
    TensorType.VARIANT,
    TensorType.INT2,
    TensorType.UINT4,
    TensorType.FLOAT8_E4M3FN,
    TensorType.FLOAT8_E5M2,
}
_SIZE_LIMIT_BYTES = 2**31


def check_tensors(scope: Scope) -> Iterator[Finding]:
    for tensor in scope.tensors:
        yield from _type(scope, tensor)
        yield from _shape(scope, tensor)
        if tensor.is_sparse:
            yield finding("tensor.sparse", scope.at(tensor=tensor.index), "the tensor is stored sparse")
        if tensor.buffer or scope.data_sizes[tensor.index]:
            yield from _data(scope, tensor)
        elif tensor.external_buffer:
            yield from _external(scope, tensor)
    yield from _signature(scope)


def _signature(scope: Scope) -> Iterator[Finding]:
    open_shapes = [t for t in scope.tensors if t.shape_signature and min(t.shape_signature) < 0]
    if not open_shapes:
        return
    first = open_shapes[0]
    message = (
        f"{len(open_shapes)} tensors have unknown dimensions in shape_signature, the first "
        f"{_short(first.shape_signature or ())}; TFLM uses {_short(first.dims)}"
    )
    yield finding("shape.signature", scope.at(tensor=first.index), message)


def _type(scope: Scope, tensor: Tensor) -> Iterator[Finding]:
    kind = tensor.type
    if kind in _SIZED:
        if kind == TensorType.INT4 and not scope.data_sizes[tensor.index]:
            message = f"a tensor of type INT4 without constant data: {list(tensor.dims)}"
            yield finding("type.int4_activation", scope.at(tensor=tensor.index), message)
    elif kind == TensorType.STRING:
        yield finding("type.string", scope.at(tensor=tensor.index), "a tensor of type STRING")
    else:
        message = f"TFLM cannot size a tensor of type {type_name(kind)}"
        yield finding("type.unsized", scope.at(tensor=tensor.index), message)


def _shape(scope: Scope, tensor: Tensor) -> Iterator[Finding]:
    dims = tensor.dims
    if dims and min(dims) < 0:
        yield finding("shape.dynamic", scope.at(tensor=tensor.index), f"the shape is {_short(dims)}")
        return
    size = arena_size_bytes(tensor)
    if size is not None and size >= _SIZE_LIMIT_BYTES:
        amount = format_size(size) if size < 2**63 else "more than 2^63 B"
        message = f"shape {_short(dims)} of {type_name(tensor.type)} is {amount}"
        yield finding("shape.overflow", scope.at(tensor=tensor.index), message)


def _data(scope: Scope, tensor: Tensor) -> Iterator[Finding]:
    buffer = scope.model.buffers[tensor.buffer]
    if (buffer.external and not buffer.size_bytes) or tensor.external_buffer:
        yield from _external(scope, tensor)
        return
    has = buffer.size_bytes
    if not has:
        return
    if tensor.is_variable:
        message = f"a variable tensor with {has:,} bytes of data"
        yield finding("tensor.variable_with_data", scope.at(tensor=tensor.index), message)
        return
    needs = constant_size_bytes(tensor)
    if needs is None or needs == has or needs < 0:
        return
    packed = " (packed)" if tensor.type in SUB_BYTE_TYPES else ""
    message = (
        f"the data has {has:,} bytes, shape {_short(tensor.dims)} of {type_name(tensor.type)} needs {needs:,}{packed}"
    )
    yield finding("constant.short" if has < needs else "constant.long", scope.at(tensor=tensor.index), message)


def _external(scope: Scope, tensor: Tensor) -> Iterator[Finding]:
    external = scope.model.buffers[tensor.buffer].external
    place = (
        f"at byte {external[0]:,}, {external[1]:,} bytes"
        if external
        else f"in external buffer {tensor.external_buffer}"
    )
    yield finding("buffer.external", scope.at(tensor=tensor.index), f"the data lies outside the flatbuffer: {place}")


def _short(dims: tuple[int, ...]) -> str:
    return str(list(dims)) if len(dims) <= 10 else f"[{', '.join(map(str, dims[:8]))}, … {len(dims)} dimensions]"
