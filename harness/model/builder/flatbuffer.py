"""Records in, the bytes of a ``.tflite`` file out: the only module that writes flatbuffers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import flatbuffers
import numpy as np
import tflite

#: schema.fbs, ``Buffer.data (force_align: 16)``: kernels read constants in place. The generated Python code forgets it.
BUFFER_ALIGNMENT = 16
SCHEMA_VERSION = 3
IDENTIFIER = b"TFL3"

OptionValue = int | float | bool | str | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TensorRecord:
    """One row of the Tensor table. ``buffer`` 0 is the empty buffer: the tensor has no data in the file."""

    name: str
    shape: tuple[int, ...]
    type: int
    buffer: int
    scales: tuple[float, ...] = ()
    zero_points: tuple[int, ...] = ()
    quantized_dimension: int = 0
    is_variable: bool = False
    shape_signature: tuple[int, ...] = ()  # -1: a dimension that the converter left open; () for no signature


@dataclass(frozen=True, slots=True)
class OperatorRecord:
    """One row of the Operator table; ``opcode`` indexes the model's operator codes."""

    opcode: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options_name: str = ""  # "Conv2DOptions"; "" for an operator without an options table
    options: Mapping[str, OptionValue] | None = None
    intermediates: tuple[int, ...] = ()
    custom_options: bytes = b""


@dataclass(frozen=True, slots=True)
class SubGraphRecord:
    name: str
    tensors: Sequence[TensorRecord]
    operators: Sequence[OperatorRecord]
    inputs: Sequence[int]
    outputs: Sequence[int]


@dataclass(frozen=True, slots=True)
class SignatureRecord:
    key: str
    subgraph: int
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """``opcodes`` are (builtin code, version, custom name); ``metadata`` are (name, buffer index)."""

    description: str
    opcodes: Sequence[tuple[int, int, str]]
    subgraphs: Sequence[SubGraphRecord]
    buffers: Sequence[bytes]
    metadata: Sequence[tuple[str, int]]
    signatures: Sequence[SignatureRecord]


def serialize(model: ModelRecord) -> bytes:
    """The file: buffers aligned to 16 bytes from its first byte, identifier ``TFL3``."""
    builder = flatbuffers.Builder(sum(map(len, model.buffers)) + 4096)
    buffers = _tables(builder, [_buffer(builder, data) for data in model.buffers])
    subgraphs = _tables(builder, [_subgraph(builder, subgraph) for subgraph in model.subgraphs])
    opcodes = _tables(builder, [_opcode(builder, *opcode) for opcode in model.opcodes])
    metadata = _tables(
        builder, [_table(builder, "Metadata", {"name": name, "buffer": index}) for name, index in model.metadata]
    )
    signatures = _tables(builder, [_signature(builder, signature) for signature in model.signatures])
    fields: dict[str, OptionValue] = {"version": SCHEMA_VERSION, "description": model.description}
    references = {"operator_codes": opcodes, "subgraphs": subgraphs, "buffers": buffers}
    references |= {"metadata": metadata} if model.metadata else {}
    references |= {"signature_defs": signatures} if model.signatures else {}
    builder.Finish(_table(builder, "Model", fields, references), file_identifier=IDENTIFIER)
    return bytes(builder.Output())


def _table(
    builder: flatbuffers.Builder,
    name: str,
    fields: Mapping[str, OptionValue],
    references: Mapping[str, int] | None = None,
) -> int:
    """One table by its schema name and its fields by their schema names; ``references`` are offsets already written.

    Fields equal to the schema's default are left out by the generated code, as flatbuffers do.
    """
    written: dict[str, Any] = {}
    for key, value in fields.items():
        match value:
            case str():
                written[key] = builder.CreateString(value)
            case tuple():
                written[key] = _int32s(builder, value)
            case _:
                written[key] = value
    written |= references or {}
    _function(name, "Start")(builder)
    for key, value in written.items():
        _function(name, "Add" + "".join(part[:1].upper() + part[1:] for part in key.split("_")))(builder, value)
    return int(_function(name, "End")(builder))


def _function(table: str, action: str) -> Callable[..., Any]:
    function: Callable[..., Any] | None = getattr(tflite, table + action, None)
    if function is None:
        raise ValueError(f"the schema has no {table}{action}")
    return function


def _tables(builder: flatbuffers.Builder, offsets: Sequence[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return int(builder.EndVector())


def _int32s(builder: flatbuffers.Builder, values: Sequence[int]) -> int:
    return int(builder.CreateNumpyVector(np.asarray(values, dtype=np.int32)))


def _buffer(builder: flatbuffers.Builder, data: bytes) -> int:
    if not data:
        return _table(builder, "Buffer", {})
    builder.StartVector(1, len(data), BUFFER_ALIGNMENT)
    # As flatbuffers.Builder.CreateByteVector does it, which cannot align.
    builder.head -= len(data)
    builder.Bytes[builder.head : builder.head + len(data)] = data
    return _table(builder, "Buffer", {}, {"data": int(builder.EndVector())})


def _opcode(builder: flatbuffers.Builder, code: int, version: int, custom_name: str) -> int:
    fields: dict[str, OptionValue] = {"deprecated_builtin_code": min(code, 127), "version": version}
    fields |= {"builtin_code": code} | ({"custom_code": custom_name} if custom_name else {})
    return _table(builder, "OperatorCode", fields)


def _subgraph(builder: flatbuffers.Builder, subgraph: SubGraphRecord) -> int:
    tensors = _tables(builder, [_tensor(builder, tensor) for tensor in subgraph.tensors])
    operators = _tables(builder, [_operator(builder, operator) for operator in subgraph.operators])
    fields: dict[str, OptionValue] = {
        "inputs": tuple(subgraph.inputs),
        "outputs": tuple(subgraph.outputs),
        "name": subgraph.name,
    }
    return _table(builder, "SubGraph", fields, {"tensors": tensors, "operators": operators})


def _tensor(builder: flatbuffers.Builder, tensor: TensorRecord) -> int:
    references = {}
    if tensor.scales:
        vectors = {
            "scale": int(builder.CreateNumpyVector(np.asarray(tensor.scales, dtype=np.float32))),
            "zero_point": int(builder.CreateNumpyVector(np.asarray(tensor.zero_points, dtype=np.int64))),
        }
        dimension = {"quantized_dimension": tensor.quantized_dimension}
        references["quantization"] = _table(builder, "QuantizationParameters", dimension, vectors)
    fields: dict[str, OptionValue] = {"shape": tensor.shape, "type": tensor.type, "buffer": tensor.buffer}
    fields |= {"name": tensor.name, "is_variable": tensor.is_variable, "has_rank": True}
    fields |= {"shape_signature": tensor.shape_signature} if tensor.shape_signature else {}
    return _table(builder, "Tensor", fields, references)


def _operator(builder: flatbuffers.Builder, operator: OperatorRecord) -> int:
    references = {}
    fields: dict[str, OptionValue] = {"opcode_index": operator.opcode}
    fields |= {"inputs": operator.inputs, "outputs": operator.outputs}
    if operator.options_name:
        references["builtin_options"] = _table(builder, operator.options_name, operator.options or {})
        fields["builtin_options_type"] = getattr(tflite.BuiltinOptions, operator.options_name)
    if operator.intermediates:
        fields["intermediates"] = operator.intermediates
    if operator.custom_options:
        references["custom_options"] = int(builder.CreateByteVector(operator.custom_options))
    return _table(builder, "Operator", fields, references)


def _signature(builder: flatbuffers.Builder, signature: SignatureRecord) -> int:
    def maps(pairs: tuple[tuple[str, int], ...]) -> int:
        rows = [_table(builder, "TensorMap", {"name": name, "tensor_index": index}) for name, index in pairs]
        return _tables(builder, rows)

    references = {"inputs": maps(signature.inputs), "outputs": maps(signature.outputs)}
    fields: dict[str, OptionValue] = {"signature_key": signature.key, "subgraph_index": signature.subgraph}
    return _table(builder, "SignatureDef", fields, references)
