"""``.tflite`` bytes → ``Model``. Whatever the bytes are, the only exception is ``ModelFileError``."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import Any

from harness.errors import ExitCode, ModelFileError
from harness.model.flatbuffer import FlatBuffer, Span, Values, table_plan
from harness.model.graph import (
    Buffer,
    Metadata,
    Model,
    Operator,
    OperatorCode,
    OptionValue,
    Quantization,
    Signature,
    SubGraph,
    Tensor,
    TensorType,
)
from harness.model.identity import check_identity
from harness.model.indices import find_index_faults
from harness.model.schema import BUILTIN_OPERATORS, UNIONS
from harness.units import safe_text

#: BuiltinOperator_CUSTOM of schema.fbs.
CUSTOM_CODE = 32

#: FLATBUFFERS_MAX_BUFFER_SIZE, flatbuffers/base.h.
MAX_FILE_BYTES = 2**31
#: Dimensions that a tensor may have here. The kernels of TFLM take 6; products of millions would never end.
MAX_DIMENSIONS = 64

_TENSOR_TYPES = {int(member): member for member in TensorType}
_NO_OPTIONS: dict[str, OptionValue] = {}


class ModelIndexError(ModelFileError):
    """The file is a flatbuffer, but an index in it names something that is not there."""

    exit_code = ExitCode.RESULT_BAD
    default_code = "index.out_of_range"


def read_model(path: str | Path, *, lenient: bool = False) -> Model:
    """Read a model file.

    Every index in the returned model is valid; with ``lenient`` an index that is out of range is left in the model
    for the checks to find. Raises ``ModelFileError`` (``ModelIndexError`` for an index).
    """
    try:
        _check_file(Path(path).stat(), path)
        data = Path(path).read_bytes()
    except (OSError, ValueError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc)
        raise ModelFileError(
            f"cannot read {safe_text(str(path))}: {reason}",
            code="model.unreadable",
            remedy="check the path and its permissions",
        ) from exc
    return parse_model(data, str(path), lenient=lenient)


def _check_file(status: os.stat_result, path: str | Path) -> None:
    """A directory cannot be read, a pipe or device may never end, and no flatbuffer is larger than 2 GiB."""
    if not stat.S_ISREG(status.st_mode):
        kind = "a directory" if stat.S_ISDIR(status.st_mode) else "not a regular file"
        raise ModelFileError(f"{safe_text(str(path))} is {kind}", code="model.not_a_file", remedy="name a .tflite file")
    if status.st_size >= MAX_FILE_BYTES:
        raise ModelFileError(
            f"{safe_text(str(path))} has {status.st_size:,} bytes; a flatbuffer has less than {MAX_FILE_BYTES:,}",
            code="model.too_large",
            remedy="name the .tflite file itself; no microcontroller holds a model of that size",
        )


def parse_model(data: bytes, path: str = "", *, lenient: bool = False) -> Model:
    """``read_model`` of bytes in memory; ``path`` only names them."""
    check_identity(data)
    model = _model(data, path, FlatBuffer(data).root("Model"))
    if not lenient:
        for fault in find_index_faults(model):
            raise ModelIndexError(f"{fault.where}: {fault.message}", code=fault.code, remedy=fault.remedy)
    return model


def _model(data: bytes, path: str, values: Values) -> Model:
    version, codes, subgraphs, description, buffers, _, metadata, signatures, _, _ = values
    opcodes = tuple(_operator_code(index, entry) for index, entry in enumerate(codes or ()))
    return Model(
        path=path,
        sha256=hashlib.sha256(data).hexdigest(),
        data=data,
        schema_version=version,
        description=description or "",
        operator_codes=opcodes,
        subgraphs=tuple(_subgraph(index, entry, opcodes, data) for index, entry in enumerate(subgraphs or ())),
        buffers=tuple(_buffer(index, entry) for index, entry in enumerate(buffers or ())),
        metadata=tuple(Metadata(name or "", buffer) for name, buffer in metadata or ()),
        signatures=tuple(_signature(entry) for entry in signatures or ()),
    )


def _operator_code(index: int, values: Values) -> OperatorCode:
    deprecated, custom_name, version, builtin = values
    code = max(deprecated, builtin)
    name = BUILTIN_OPERATORS[code] if 0 <= code < len(BUILTIN_OPERATORS) else f"BUILTIN_{code}"
    return OperatorCode(index, code, name, builtin, deprecated, version, custom_name)


def _subgraph(index: int, values: Values, opcodes: tuple[OperatorCode, ...], data: bytes) -> SubGraph:
    tensors, inputs, outputs, operators, name, _ = values
    return SubGraph(
        index,
        name or "",
        tuple([_tensor(number, entry) for number, entry in enumerate(tensors or ())]),
        tuple([_operator(number, entry, opcodes, data) for number, entry in enumerate(operators or ())]),
        inputs or (),
        outputs or (),
    )


def _tensor(index: int, values: Values) -> Tensor:
    shape, code, buffer, name, quantization, is_variable, sparsity, signature, has_rank, _, external = values
    tensor_type = _TENSOR_TYPES[code] if code in _TENSOR_TYPES else code  # noqa: SIM401
    if shape is not None and len(shape) > MAX_DIMENSIONS:
        raise ModelFileError(
            f"tensor {index} has {len(shape):,} dimensions; more than {MAX_DIMENSIONS} are not read",
            code="model.too_complex",
            remedy="the kernels of TFLM take 6 dimensions: the file is damaged or made to do harm",
        )
    return Tensor(
        index,
        name or "",
        tensor_type,
        shape,
        buffer,
        signature,
        has_rank,
        is_variable,
        _quantization(quantization),
        sparsity is not None,
        external,
    )


def _quantization(values: Values | None) -> Quantization | None:
    if values is None:
        return None
    _, _, scales, zero_points, details, dimension = values
    return Quantization(scales, zero_points, dimension, details[0])


def _operator(index: int, values: Values, opcodes: tuple[OperatorCode, ...], data: bytes) -> Operator:
    code, inputs, outputs, options, custom, _, _, intermediates, external, _, options_2, _ = values
    opcode = opcodes[code] if code < len(opcodes) else OperatorCode(code, -1, f"OPCODE_INDEX_{code}", -1, -1, 0)
    union, (union_type, fields) = ("BuiltinOptions", options) if options[0] else ("BuiltinOptions2", options_2)
    table, named = _options(union, union_type, fields, data)
    return Operator(
        index,
        opcode,
        inputs or (),
        outputs or (),
        intermediates or (),
        union_type,
        named,
        _bytes(custom, data),
        table,
        external > 1,
        custom is not None,
    )


def _options(union: str, union_type: int, values: Values | None, data: bytes) -> tuple[str, dict[str, OptionValue]]:
    if union_type == 0 or values is None:
        return "", _NO_OPTIONS
    table = UNIONS[union][union_type - 1]
    plan = table_plan(table)
    if not plan.fields:
        return table, _NO_OPTIONS
    named: dict[str, Any] = dict(zip(plan.field_names, values, strict=True))
    for entry in plan.fields:
        if entry.kind == "span":
            named[entry.name] = _bytes(named[entry.name], data)
    return table, named


def _bytes(span: Span | None, data: bytes) -> bytes:
    return b"" if span is None else data[span[0] : span[0] + span[1]]


def _buffer(index: int, values: Values) -> Buffer:
    span, offset, size = values
    start, count = span or (0, 0)
    return Buffer(index, start, count, (offset, size) if offset > 1 else None)


def _signature(values: Values) -> Signature:
    inputs, outputs, key, subgraph = values
    return Signature(
        key or "",
        subgraph,
        tuple((name or "", index) for name, index in inputs or ()),
        tuple((name or "", index) for name, index in outputs or ()),
    )
