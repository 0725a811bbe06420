"""How many bytes tensors have, in Python integers that do not overflow."""

from __future__ import annotations

from harness.model.graph import Tensor, TensorType

#: Bits of one element. STRING and VARIANT have no size. Constants of the 2- and 4-bit types are packed.
_BITS: dict[int, int] = {
    TensorType.FLOAT32: 32,
    TensorType.FLOAT16: 16,
    TensorType.INT32: 32,
    TensorType.UINT8: 8,
    TensorType.INT64: 64,
    TensorType.BOOL: 8,
    TensorType.INT16: 16,
    TensorType.COMPLEX64: 64,
    TensorType.INT8: 8,
    TensorType.FLOAT64: 64,
    TensorType.COMPLEX128: 128,
    TensorType.UINT64: 64,
    TensorType.RESOURCE: 32,
    TensorType.UINT32: 32,
    TensorType.UINT16: 16,
    TensorType.INT4: 4,
    TensorType.BFLOAT16: 16,
    TensorType.INT2: 2,
    TensorType.UINT4: 4,
    TensorType.FLOAT8_E4M3FN: 8,
    TensorType.FLOAT8_E5M2: 8,
}
#: Types whose constants pack several elements into one byte.
SUB_BYTE_TYPES = frozenset({TensorType.INT4, TensorType.INT2, TensorType.UINT4})


def type_name(kind: TensorType | int) -> str:
    return kind.name if isinstance(kind, TensorType) else f"type {kind}"


def constant_size_bytes(tensor: Tensor) -> int | None:
    """Bytes of the tensor's constant data in the file; None where the type has no fixed size."""
    bits = _BITS.get(int(tensor.type))
    return None if bits is None else (tensor.element_count * bits + 7) // 8


def arena_size_bytes(tensor: Tensor) -> int | None:
    """Bytes of the tensor at run time: TFLM gives each element of a sub-byte type a byte
    (TfLiteTypeSizeOf, tensorflow/lite/micro/memory_helpers.cc)."""
    bits = _BITS.get(int(tensor.type))
    return None if bits is None else tensor.element_count * max(1, bits // 8)
