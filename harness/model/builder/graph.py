"""``ModelBuilder`` and ``Graph``: tensors, constants and operators in, a ``.tflite`` out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tflite

from harness.model.builder.flatbuffer import (
    ModelRecord,
    OperatorRecord,
    OptionValue,
    SignatureRecord,
    SubGraphRecord,
    TensorRecord,
    serialize,
)
from harness.model.builder.noise import Array, Weights, pack_int4
from harness.model.graph import Quantization, TensorType

_CUSTOM_CODE = 32  # schema.fbs, BuiltinOperator.CUSTOM
_DTYPES: dict[TensorType, str] = {
    TensorType.FLOAT32: "<f4",
    TensorType.INT8: "<i1",
    TensorType.UINT8: "<u1",
    TensorType.INT16: "<i2",
    TensorType.INT32: "<i4",
    TensorType.INT64: "<i8",
    TensorType.BOOL: "?",
}


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor of one graph: what operators are given and what they return."""

    index: int
    shape: tuple[int, ...]
    type: TensorType
    quantization: Quantization | None = None

    @property
    def scale(self) -> float:
        """The scale of the whole tensor; 1.0 for one that is not quantized."""
        return self.quantization.scales[0] if self.quantization and self.quantization.scales else 1.0

    @property
    def element_count(self) -> int:
        return math.prod(self.shape)


def per_tensor(scale: float, zero_point: int = 0) -> Quantization:
    return Quantization((float(np.float32(scale)),), (zero_point,))


class ModelBuilder:
    """Collects the graphs of one model; ``graph`` is subgraph 0, the main one."""

    def __init__(
        self, *, seed: int = 0, description: str = "made by tflm-harness", min_runtime_version: str = "1.5.0"
    ) -> None:
        self.seed = seed
        self._description = description
        self._buffers: list[bytes] = [b""]  # buffer 0 is empty by convention
        self._buffer_of: dict[bytes, int] = {}
        self._opcodes: dict[tuple[int, int, str], int] = {}
        self._metadata: list[tuple[str, int]] = []
        self.graphs: list[Graph] = []
        self.graph = self.add_graph("main")
        if min_runtime_version:
            self.add_metadata("min_runtime_version", min_runtime_version.encode().ljust(16, b"\0"))

    def add_graph(self, name: str) -> Graph:
        """A further subgraph: a branch, a loop body, an initialiser."""
        graph = Graph(self, len(self.graphs), name)
        self.graphs.append(graph)
        return graph

    def add_metadata(self, name: str, data: bytes) -> None:
        self._buffers.append(data)
        self._metadata.append((name, len(self._buffers) - 1))

    def buffer(self, data: bytes) -> int:
        """The index of a buffer with these bytes; equal constants share one, as converters do."""
        if data not in self._buffer_of:
            self._buffers.append(data)
            self._buffer_of[data] = len(self._buffers) - 1
        return self._buffer_of[data]

    def opcode(self, code: int, version: int, custom_name: str) -> int:
        return self._opcodes.setdefault((code, version, custom_name), len(self._opcodes))

    def finish(self) -> bytes:
        """The model's file. The main graph's inputs and outputs become the signature ``serving_default``."""
        main = self.graph
        signature = SignatureRecord(
            "serving_default",
            main.index,
            tuple((main.tensors[index].name, index) for index in main.inputs),
            tuple((main.tensors[index].name, index) for index in main.outputs),
        )
        subgraphs = [SubGraphRecord(g.name, g.tensors, g.operators, g.inputs, g.outputs) for g in self.graphs]
        model = ModelRecord(
            self._description, list(self._opcodes), subgraphs, self._buffers, self._metadata, [signature]
        )
        return serialize(model)


class Graph:
    """One subgraph under construction. Layers (``harness.model.builder.layers``, …) are functions over it."""

    def __init__(self, model: ModelBuilder, index: int, name: str) -> None:
        self.model = model
        self.index = index
        self.name = name
        self.tensors: list[TensorRecord] = []
        self.operators: list[OperatorRecord] = []
        self.inputs: list[int] = []
        self.outputs: list[int] = []

    def input(
        self,
        shape: Sequence[int],
        kind: TensorType,
        quantization: Quantization | None = None,
        name: str = "",
        *,
        signature: Sequence[int] = (),
    ) -> Value:
        """A graph input. Quantized kinds get a fitting quantization when none is given. ``signature`` is the shape
        with -1 for open dimensions."""
        if quantization is None and kind in {TensorType.INT8, TensorType.INT16}:
            quantization = per_tensor(1 / 32) if kind is TensorType.INT8 else per_tensor(4 / 32768)
        value = self.tensor(name or f"{self.name}_in{len(self.inputs)}", shape, kind, quantization)
        self.tensors[value.index] = replace(self.tensors[value.index], shape_signature=tuple(signature))
        self.inputs.append(value.index)
        return value

    def output(self, *values: Value) -> None:
        self.outputs.extend(value.index for value in values)

    def tensor(
        self,
        name: str,
        shape: Sequence[int],
        kind: TensorType,
        quantization: Quantization | None = None,
        *,
        data: bytes = b"",
        is_variable: bool = False,
    ) -> Value:
        """A tensor; with ``data`` a constant. Names may repeat: runtimes go by index."""
        value = Value(len(self.tensors), tuple(int(size) for size in shape), kind, quantization)
        record = TensorRecord(
            name,
            value.shape,
            int(kind),
            self.model.buffer(data) if data else 0,
            (quantization.scales or ()) if quantization else (),
            (quantization.zero_points or ()) if quantization else (),
            quantization.quantized_dimension if quantization else 0,
            is_variable,
        )
        self.tensors.append(record)
        return value

    def constant(self, name: str, weights: Weights) -> Value:
        packed = weights.type is TensorType.INT4
        data = pack_int4(weights.array) if packed else weights.array.astype(_DTYPES[weights.type]).tobytes()
        return self.tensor(name, weights.array.shape, weights.type, weights.quantization, data=data)

    def int32s(self, name: str, values: Sequence[int] | Array) -> Value:
        """A constant of indices: an axis list, a new shape, a permutation."""
        return self.constant(name, Weights(np.asarray(values, dtype=np.int32), TensorType.INT32, None))

    def next_name(self, operator: str) -> str:
        return f"{self.name}/{operator.lower()}_{len(self.operators)}"

    def operator(
        self,
        name: str,
        inputs: Sequence[Value | None],
        outputs: Sequence[Value],
        options_name: str = "",
        options: Mapping[str, OptionValue] | None = None,
        *,
        version: int = 1,
        intermediates: Sequence[Value] = (),
        custom_options: bytes = b"",
    ) -> None:
        """Any operator by its schema name (``CONV_2D``); a name that the schema does not know is a custom operator.

        ``None`` among the inputs is an absent optional input.
        """
        code: Any = getattr(tflite.BuiltinOperator, name, None)
        custom_name = "" if code is not None else name
        self.operators.append(
            OperatorRecord(
                self.model.opcode(_CUSTOM_CODE if code is None else int(code), version, custom_name),
                tuple(-1 if value is None else value.index for value in inputs),
                tuple(value.index for value in outputs),
                options_name,
                options,
                tuple(value.index for value in intermediates),
                custom_options,
            )
        )
