"""A tensor while TFLM sets a model up."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from harness.errors import UnfitModelError
from harness.model.graph import Tensor, TensorType
from harness.units import quoted

#: TfLiteTypeSizeOf, micro/memory_helpers.cc: bytes per element. INT4 has a byte per element; STRING has no size.
TYPE_BYTES: Mapping[int, int] = {
    TensorType.FLOAT32: 4,
    TensorType.FLOAT16: 2,
    TensorType.BFLOAT16: 2,
    TensorType.FLOAT64: 8,
    TensorType.INT16: 2,
    TensorType.UINT16: 2,
    TensorType.INT32: 4,
    TensorType.UINT32: 4,
    TensorType.INT8: 1,
    TensorType.UINT8: 1,
    TensorType.INT64: 8,
    TensorType.UINT64: 8,
    TensorType.BOOL: 1,
    TensorType.RESOURCE: 4,
    TensorType.COMPLEX64: 8,
    TensorType.COMPLEX128: 16,
    TensorType.INT4: 1,
}


@dataclass(slots=True)
class LiveTensor:
    """A tensor during setup: a TfLiteEvalTensor. Kernels may move ``dims`` into the arena and change them, and give a
    tensor its data."""

    source: Tensor
    dims: tuple[int, ...]
    has_data: bool
    is_constant: bool

    @property
    def type(self) -> TensorType | int:
        return self.source.type

    @property
    def rank(self) -> int:
        return len(self.dims)

    @property
    def element_count(self) -> int:
        return math.prod(self.dims)

    @property
    def size_bytes(self) -> int:
        """TfLiteEvalTensorByteLength. Raises KeyError for a type without a size."""
        return self.element_count * TYPE_BYTES[self.source.type]

    @property
    def quantized_channels(self) -> int:
        """Length of the scale array of the TfLiteAffineQuantization that TFLM builds; 0 when it builds none, which is
        so unless scales and zero points are both present and not empty."""
        quantization = self.source.quantization
        if quantization is None or not quantization.scales or not quantization.zero_points:
            return 0
        return len(quantization.scales)

    @property
    def zero_point(self) -> int:
        """params.zero_point: the first one, 0 without quantization."""
        quantization = self.source.quantization
        return (
            quantization.zero_points[0] if self.quantized_channels and quantization and quantization.zero_points else 0
        )

    @property
    def scale(self) -> float:
        quantization = self.source.quantization
        return quantization.scales[0] if self.quantized_channels and quantization and quantization.scales else 0.0


def type_name(value: TensorType | int) -> str:
    return value.name if isinstance(value, TensorType) else f"type {value}"


def described(tensor: Tensor) -> str:
    return f"tensor {tensor.index} {quoted(tensor.name, 60)}"


def tensor_bytes(tensor: LiveTensor) -> int:
    """TfLiteEvalTensorByteLength, which TFLM computes in 32 bits. Raises UnfitModelError beyond them, for negative
    dimensions and for a type without a size."""
    source = tensor.source
    if source.type not in TYPE_BYTES:
        raise unfit(
            f"{described(source)} has type {type_name(source.type)}, which has no fixed size", "model.tensor_type"
        )
    if any(dim < 0 for dim in tensor.dims):
        raise unfit(f"{described(source)} has a negative dimension: {list(tensor.dims)}", "model.dynamic_tensor")
    if tensor.size_bytes >= 2**31:
        raise unfit(f"{described(source)} has {tensor.size_bytes:,} bytes: more than 32 bits hold", "model.tensor_size")
    return tensor.size_bytes


def unfit(cause: str, code: str) -> UnfitModelError:
    return UnfitModelError(f"TFLM refuses the model: {cause}", code=code, remedy="harness check names what to change")
