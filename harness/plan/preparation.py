"""What a model's setup has come to so far: its tensors, the scratch requests, the resource variables, the steps."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.abi import Abi
from harness.model.graph import Model
from harness.plan.core import Core
from harness.plan.setup import Setup
from harness.plan.tensor import LiveTensor


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
