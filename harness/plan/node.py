"""What a kernel sees and asks for while TFLM sets a model up: the Python side of TfLiteContext and TfLiteNode.

A kernel rule reads the operator's tensors and options, and records, in the order of the kernel's own source, its
temporary tensors, persistent buffers and scratch requests. A model that the kernel would refuse is refused here with
the kernel's own words.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.abi import ARENA_ALIGNMENT, MAX_SCRATCH_BUFFERS_PER_OP, Abi
from harness.errors import UnfitModelError
from harness.model.graph import Model, Operator, SubGraph, Tensor, TensorType
from harness.plan.core import Core
from harness.plan.setup import Category, Setup
from harness.units import quoted, safe_text

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


@dataclass(frozen=True, slots=True)
class ScratchRequest:
    """internal::ScratchBufferRequest: ``number`` in the order of all requests."""

    number: int
    size_bytes: int
    subgraph: int
    operator: int
    label: str


@dataclass(slots=True)
class Preparation:
    """Everything that outlives one operator's Prepare."""

    model: Model
    abi: Abi
    core: Core
    setup: Setup
    tensors: list[list[LiveTensor]]
    scratch: list[ScratchRequest] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    #: Resource variables: (container, shared name) → id; id → whether its buffer is allocated.
    resources: dict[tuple[str | None, str | None], int] = field(default_factory=dict)
    resource_buffers: set[int] = field(default_factory=set)
    resource_of_tensor: dict[tuple[int, int], int] = field(default_factory=dict)

    def temp_parts(self, tensor: LiveTensor) -> tuple[tuple[int, int], ...]:
        """(size, alignment) of the allocations of one temporary TfLiteTensor, micro_allocator.cc
        InitializeTfLiteTensorFromFlatbuffer."""
        parts = [(self.abi.size("TfLiteTensor"), self.abi.alignment("TfLiteTensor"))]
        if tensor.quantized_channels:
            parts.append((self.abi.size("TfLiteAffineQuantization"), self.abi.alignment("TfLiteAffineQuantization")))
            array = self.abi.int_array_bytes(tensor.quantized_channels)
            parts.append((array, self.abi.alignment("TfLiteIntArray")))
        return tuple(parts)

    def spare_bytes(self, temp_parts: tuple[tuple[int, int], ...]) -> int:
        """The end of a temporary TfLiteTensor that no one reads once a kernel's checks are through: its zero points and
        quantized dimension (behind two pointers); without quantization its bytes, type, allocation type and
        is_variable (behind the quantization, the parameters and two pointers)."""
        quantization = sum(size for size, _ in temp_parts[1:])
        if quantization:
            return quantization - 2 * self.abi.pointer_bytes
        fixed = self.abi.size("TfLiteQuantization") + self.abi.size("TfLiteQuantizationParams")
        return temp_parts[0][0] - fixed - 2 * self.abi.pointer_bytes


@dataclass(slots=True)
class Node:
    """One operator in Init or Prepare."""

    preparation: Preparation
    subgraph: SubGraph
    operator: Operator
    scratch_count: int = 0
    _spare_bytes: int = 0

    @property
    def abi(self) -> Abi:
        return self.preparation.abi

    @property
    def core(self) -> Core:
        return self.preparation.core

    @property
    def input_count(self) -> int:
        return len(self.operator.inputs)

    @property
    def output_count(self) -> int:
        return len(self.operator.outputs)

    def option(self, name: str, default: int = 0) -> int:
        """An integer builtin option; the schema's default where the file has none."""
        value = self.operator.options.get(name, default)
        return int(value) if isinstance(value, (int, float)) else default

    def integers(self, name: str) -> tuple[int, ...]:
        """A vector option; empty where the file has none."""
        value = self.operator.options.get(name)
        return tuple(int(entry) for entry in value) if isinstance(value, tuple) else ()

    def text(self, name: str) -> str | None:
        """A string builtin option; None where the file has none."""
        value = self.operator.options.get(name)
        return value if isinstance(value, str) else None

    def input(self, index: int) -> LiveTensor | None:
        return self._tensor(self.operator.inputs, index)

    def output(self, index: int = 0) -> LiveTensor | None:
        return self._tensor(self.operator.outputs, index)

    def temp_input(self, index: int) -> LiveTensor:
        """AllocateTempInputTensor of a tensor that must be there."""
        return self._required(self.optional_temp_input(index), f"input {index}")

    def optional_temp_input(self, index: int) -> LiveTensor | None:
        """AllocateTempInputTensor; None (and no allocation) where the operator has no such input."""
        return self._temp(self.input(index), f"input {index}")

    def temp_output(self, index: int = 0) -> LiveTensor:
        """AllocateTempOutputTensor of a tensor that must be there."""
        return self._required(self._temp(self.output(index), f"output {index}"), f"output {index}")

    def persist(self, size_bytes: int, label: str, *, still_read: bool = False) -> None:
        """context->AllocatePersistentBuffer: aligned to 16 whatever is stored in it.

        With temporaries alive, the buffer may lie over the end of the last one, unless the kernel still reads there
        (``still_read``).
        """
        spare = 0 if still_read else self._spare_bytes
        label = f"{self._kind}: {label}"
        self.preparation.setup.persist(size_bytes, ARENA_ALIGNMENT, label, Category.BUFFER, spare)

    def persist_struct(self, struct: str, *, still_read: bool = False) -> None:
        self.persist(self.abi.size(struct), struct.rpartition("::")[2], still_read=still_read)

    def persist_dims(
        self, tensor: LiveTensor, dims: tuple[int, ...] | None = None, *, still_read: bool = False
    ) -> None:
        """CreateWritableTensorDimsWithCopy (kernels/kernel_util.cc): the dims move into the arena, and may change."""
        self.persist(self.abi.int_array_bytes(tensor.rank), "dims of the output", still_read=still_read)
        if dims is not None:
            tensor.dims = dims

    def scratch(self, size_bytes: int, label: str) -> None:
        """context->RequestScratchBufferInArena."""
        self.ensure(
            self.scratch_count < MAX_SCRATCH_BUFFERS_PER_OP,
            f"Scratch buffer request exceeds limit per operator ({MAX_SCRATCH_BUFFERS_PER_OP})",
        )
        self.scratch_count += 1
        requests = self.preparation.scratch
        requests.append(
            ScratchRequest(
                len(requests), size_bytes, self.subgraph.index, self.operator.index, f"{self._kind}: {label}"
            )
        )

    def ensure(self, condition: bool, cause: str) -> None:
        """TF_LITE_ENSURE. Raises UnfitModelError with ``cause``, TFLM's own text where it has one."""
        if not condition:
            raise UnfitModelError(
                f"TFLM refuses the model: {cause} (node {self._kind}, number {self.operator.index} of subgraph "
                f"{self.subgraph.index}, failed to prepare)",
                code="model.prepare",
                remedy="convert the model again with what this kernel supports, or use another kernel set",
            )

    def ensure_type(self, tensor: LiveTensor, *types: TensorType) -> None:
        self.ensure(tensor.type in types, f"Type {type_name(tensor.type)} ({int(tensor.type)}) not supported.")

    def ensure_quantized(self, output: LiveTensor) -> None:
        """CalculateActivationRangeQuantized needs an output that is quantized."""
        cause = "output->quantization.type != kTfLiteNoQuantization was not true."
        self.ensure(output.quantized_channels > 0, cause)

    def ensure_same_type(self, one: LiveTensor, other: LiveTensor) -> None:
        self.ensure(one.type == other.type, f"{type_name(one.type)} != {type_name(other.type)}")

    def ensure_counts(self, inputs: int | None = None, outputs: int | None = None) -> None:
        if inputs is not None:
            self.ensure(self.input_count == inputs, f"NumInputs(node) != {inputs} ({self.input_count} != {inputs})")
        if outputs is not None:
            self.ensure(
                self.output_count == outputs, f"NumOutputs(node) != {outputs} ({self.output_count} != {outputs})"
            )

    def doubt(self, reason: str) -> None:
        """Why the plan is only an estimate from here on."""
        self.preparation.doubts.append(f"{self._kind} ({self.subgraph.index}/{self.operator.index}): {reason}")

    def warn(self, text: str) -> None:
        """Something to know that does not change a number of the plan."""
        self.preparation.warnings.append(f"{self._kind} ({self.subgraph.index}/{self.operator.index}): {text}")

    @property
    def _kind(self) -> str:
        return safe_text(self.operator.name, 60)

    def _tensor(self, indices: tuple[int, ...], index: int) -> LiveTensor | None:
        if index >= len(indices) or indices[index] < 0:
            return None
        return self.preparation.tensors[self.subgraph.index][indices[index]]

    def _temp(self, tensor: LiveTensor | None, role: str) -> LiveTensor | None:
        if tensor is None:
            return None
        self.ensure(tensor.type in TYPE_BYTES, "Failed to populate a temp TfLiteTensor struct from flatbuffer data!")
        parts = self.preparation.temp_parts(tensor)
        self.preparation.setup.temp(parts, f"{self._kind}: temporary TfLiteTensor of {role}")
        self._spare_bytes = self.preparation.spare_bytes(parts)
        return tensor

    def _required(self, tensor: LiveTensor | None, role: str) -> LiveTensor:
        self.ensure(tensor is not None, f"{role} != nullptr was not true.")
        assert tensor is not None
        return tensor


def type_name(value: TensorType | int) -> str:
    return value.name if isinstance(value, TensorType) else f"type {value}"


def described(tensor: Tensor) -> str:
    return f"tensor {tensor.index} {quoted(tensor.name, 60)}"
