"""What a kernel sees and asks for while TFLM sets a model up: the Python side of TfLiteContext and TfLiteNode.

A kernel rule reads the operator's tensors and options, and records, in the order of the kernel's own source, its
temporary tensors, persistent buffers and scratch requests. A model that the kernel would refuse is refused here with
the kernel's own words.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from harness.abi import ARENA_ALIGNMENT, MAX_SCRATCH_BUFFERS_PER_OP, Abi
from harness.errors import UnfitModelError
from harness.model.graph import Operator, SubGraph, TensorType
from harness.plan.core import Core
from harness.plan.preparation import Preparation, ScratchRequest
from harness.plan.setup import Category
from harness.plan.tensor import TYPE_BYTES, LiveTensor, type_name
from harness.units import safe_text

_INTEGER_CODES: Mapping[int, str] = {TensorType.INT32: "i", TensorType.INT64: "q"}


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

    def constants(self, tensor: LiveTensor) -> tuple[int, ...] | None:
        """The elements of a constant INT32 or INT64 tensor; None for another, and where the file holds too few."""
        code = _INTEGER_CODES.get(tensor.type)
        if code is None or not tensor.is_constant or any(dim < 0 for dim in tensor.dims):
            return None
        data = self.preparation.model.buffer_data(tensor.source.buffer)
        if len(data) < tensor.size_bytes:
            return None
        return struct.unpack_from(f"<{tensor.element_count}{code}", data)

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

    def temp_input_and_output(self) -> tuple[LiveTensor, LiveTensor]:
        """The one input and the one output of an operator that has no more."""
        self.ensure_counts(inputs=1, outputs=1)
        return self.temp_input(0), self.temp_output()

    def persist(self, size_bytes: int, label: str, *, still_read: bool = False) -> None:
        """context->AllocatePersistentBuffer: aligned to 16 whatever is stored in it.

        With temporaries alive, the buffer may lie over the end of the last one, unless the kernel still reads there
        (``still_read``).
        """
        self._ensure_size(size_bytes, label)
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
        self._ensure_size(size_bytes, label)
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

    def _ensure_size(self, size_bytes: int, label: str) -> None:
        """Dimensions that are negative or beyond 32 bits reach TFLM's allocator as sizes that no arena has."""
        self.ensure(0 <= size_bytes < 2**31, f"{label}: a buffer of {size_bytes:,} bytes")

    def ensure(self, condition: bool, cause: str) -> None:
        """TF_LITE_ENSURE. Raises UnfitModelError with ``cause``, TFLM's own text where it has one."""
        if not condition:
            raise UnfitModelError(
                f"TFLM refuses the model: {cause} (node {self._kind}, number {self.operator.index} of subgraph "
                f"{self.subgraph.index}, failed to prepare)",
                code="model.prepare",
                remedy="convert the model again with what this kernel supports, or use another kernel set",
            )

    def expect(self, condition: bool, cause: str) -> None:
        """TFLITE_DCHECK: builds with assertions halt, release builds (the wheel) go on. Only a warning."""
        if not condition:
            self.warn(f"TFLM built with assertions halts here: {cause}")

    def ensure_type(self, tensor: LiveTensor, *types: TensorType) -> None:
        self.ensure(tensor.type in types, f"Type {type_name(tensor.type)} ({int(tensor.type)}) not supported.")

    def ensure_activation_range(self, output: LiveTensor) -> None:
        """CalculateActivationRangeQuantized, lite/kernels/kernel_util.cc: knows the range of these types only, and
        quantizes the bound of a fused activation (schema.fbs: RELU 1, RELU_N1_TO_1 2, RELU6 3)."""
        self.ensure_type(output, TensorType.UINT8, TensorType.INT8, TensorType.INT16)
        bound = {1: 0.0, 2: 1.0, 3: 6.0}.get(self.option("fused_activation_function"))
        if bound is not None:
            fits = output.scale != 0 and abs(bound / output.scale) < 2**31
            self.ensure(fits, "no_integer_overflow_from_quantization was not true.")

    def ensure_same_type(self, one: LiveTensor, other: LiveTensor) -> None:
        self.ensure(one.type == other.type, f"{type_name(one.type)} != {type_name(other.type)}")

    def ensure_symmetric(self, *tensors: LiveTensor) -> None:
        """16-bit kernels want zero points of 0."""
        for tensor in tensors:
            self.ensure(tensor.zero_point == 0, f"params.zero_point != 0 ({tensor.zero_point} != 0)")

    def ensure_constant(self, tensor: LiveTensor, name: str) -> None:
        self.ensure(tensor.is_constant, f"Non-constant >{name}< tensor is not supported")

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
