"""What a ``.tflite`` file says, as records. Built by the reader; everything else only reads them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

OptionValue = int | float | bool | str | bytes | tuple[int | float, ...] | None


class TensorType(IntEnum):
    """schema.fbs, enum TensorType (TFLM 90b983c, tensorflow/lite/schema/schema.fbs)."""

    FLOAT32 = 0
    FLOAT16 = 1
    INT32 = 2
    UINT8 = 3
    INT64 = 4
    STRING = 5
    BOOL = 6
    INT16 = 7
    COMPLEX64 = 8
    INT8 = 9
    FLOAT64 = 10
    COMPLEX128 = 11
    UINT64 = 12
    RESOURCE = 13
    VARIANT = 14
    UINT32 = 15
    UINT16 = 16
    INT4 = 17
    BFLOAT16 = 18
    INT2 = 19
    UINT4 = 20
    FLOAT8_E4M3FN = 21
    FLOAT8_E5M2 = 22


@dataclass(frozen=True, slots=True)
class Quantization:
    """QuantizationParameters. ``None`` means that the vector is absent from the file, ``()`` that it is empty.
    ``details_type`` is the type of the QuantizationDetails union: 0 none, 1 custom, 2 blockwise, 3 multi-axis."""

    scales: tuple[float, ...] | None
    zero_points: tuple[int, ...] | None
    quantized_dimension: int = 0
    details_type: int = 0


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor. ``shape`` is None where the file has no shape vector: one element, as ``()``. ``type`` is a plain
    int when the file holds a value that the schema does not know."""

    index: int
    name: str
    type: TensorType | int
    shape: tuple[int, ...] | None
    buffer: int
    shape_signature: tuple[int, ...] | None = None
    has_rank: bool = False
    is_variable: bool = False
    quantization: Quantization | None = None
    is_sparse: bool = False
    external_buffer: int = 0  # id in the model's external_buffers; 0: none

    @property
    def dims(self) -> tuple[int, ...]:
        return self.shape or ()

    @property
    def element_count(self) -> int:
        """Product of the dimensions; 1 for a scalar. Negative dimensions are the checks' business."""
        return math.prod(self.dims)


@dataclass(frozen=True, slots=True)
class OperatorCode:
    """``code`` is max(deprecated_builtin_code, builtin_code) on the raw fields, as TFLM and LiteRT read it
    (GetBuiltinCode, tensorflow/compiler/mlir/lite/schema/schema_utils.cc)."""

    index: int
    code: int
    name: str  # "CONV_2D", or "CUSTOM"; "BUILTIN_250" for a value that the schema does not know
    builtin_code: int
    deprecated_builtin_code: int
    version: int
    custom_name: str | None = None


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator. ``options`` holds the builtin options by schema field name (``stride_w``, ``padding``, …), with
    the schema's defaults for absent fields; empty where the file has no options table. ``options_table`` names that
    table (``Conv2DOptions``), ``""`` where there is none or the schema does not know it."""

    index: int
    opcode: OperatorCode
    inputs: tuple[int, ...]  # -1: an absent optional input
    outputs: tuple[int, ...]
    intermediates: tuple[int, ...] = ()
    options_type: int = 0
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    custom_options: bytes = b""
    options_table: str = ""
    has_external_options: bool = False  # custom options stored outside the flatbuffer
    has_custom_options: bool = False  # the vector is in the file, even if it is empty

    @property
    def name(self) -> str:
        """``CONV_2D``; the custom name for a custom operator."""
        return self.opcode.custom_name or "CUSTOM" if self.opcode.name == "CUSTOM" else self.opcode.name


@dataclass(frozen=True, slots=True)
class SubGraph:
    index: int
    name: str
    tensors: tuple[Tensor, ...]
    operators: tuple[Operator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Buffer:
    """A Buffer table. ``offset`` is where its data starts in the file; ``size_bytes`` 0 means no data.
    ``external`` is (offset, size) when the data lies outside the flatbuffer."""

    index: int
    offset: int
    size_bytes: int
    external: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Metadata:
    name: str
    buffer: int


@dataclass(frozen=True, slots=True)
class Signature:
    """A SignatureDef; ``inputs`` and ``outputs`` are (name, tensor index) in file order."""

    key: str
    subgraph: int
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Model:
    """One model file. ``data`` is the whole file."""

    path: str
    sha256: str
    data: bytes = field(repr=False)
    schema_version: int
    description: str
    operator_codes: tuple[OperatorCode, ...]
    subgraphs: tuple[SubGraph, ...]
    buffers: tuple[Buffer, ...]
    metadata: tuple[Metadata, ...] = ()
    signatures: tuple[Signature, ...] = ()

    @property
    def size_bytes(self) -> int:
        return len(self.data)

    def buffer_data(self, index: int) -> memoryview:
        """The bytes of a buffer inside the file; empty for a buffer without data."""
        buffer = self.buffers[index]
        return memoryview(self.data)[buffer.offset : buffer.offset + buffer.size_bytes]

    def operators(self) -> Iterator[tuple[SubGraph, Operator]]:
        for subgraph in self.subgraphs:
            for operator in subgraph.operators:
                yield subgraph, operator


def joint_sha256(models: Sequence[Model]) -> str:
    """What names several models in one firmware: the SHA-256 of their digests (32 bytes each), in the order of their
    setup. Of one model its own."""
    if len(models) == 1:
        return models[0].sha256
    return hashlib.sha256(b"".join(bytes.fromhex(model.sha256) for model in models)).hexdigest()
