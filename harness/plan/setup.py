"""The setup of an interpreter as a list of steps against an arena of unknown size, and the smallest size that passes.

TFLM's SingleArenaBufferAllocator (arena_allocator/single_arena_buffer_allocator.cc) keeps three marks: ``head`` and
``temp`` grow up from the aligned base, ``tail`` grows down from the end. Head and temp do not depend on the arena's
size, so each step is: move the tail down (or not), then the tail must not lie below ``floor_bytes``. That makes the
smallest working size arithmetic: read the steps backwards and keep the lowest tail that still passes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from harness.abi import ARENA_ALIGNMENT
from harness.units import align_down, align_up


class StepKind(str, Enum):
    """PERSISTENT moves the tail; the others need room between the head and the tail."""

    PERSISTENT = "persistent"
    TEMP = "temp"
    HEAD = "head"
    PLANNER = "planner"


class Category(str, Enum):
    """RecordedAllocationType, by the names that RecordingMicroAllocator::PrintAllocations prints, and the persistent
    parts that TFLM records nowhere (allocator objects, subgraph lists, builtin parameters, scratch handles)."""

    EVAL_TENSOR = "TfLiteEvalTensor data"
    TENSOR = "Persistent TfLiteTensor data"
    QUANTIZATION = "Persistent TfLiteTensor quantization data"
    BUFFER = "Persistent buffer data"
    VARIABLE = "TfLiteTensor variable buffer data"
    NODE = "NodeAndRegistration struct"
    OP_DATA = "Operator runtime data"
    ALLOCATOR = "allocator objects"
    STRUCTURE = "subgraph structures"
    PARAMETERS = "operator parameters"
    SCRATCH_HANDLE = "scratch buffer handles"


#: Those that RecordingMicroAllocator keeps a sum for.
RECORDED = (
    Category.EVAL_TENSOR,
    Category.TENSOR,
    Category.QUANTIZATION,
    Category.BUFFER,
    Category.VARIABLE,
    Category.NODE,
    Category.OP_DATA,
)


@dataclass(frozen=True, slots=True)
class SetupStep:
    """One allocation of the setup. ``size_bytes`` and ``alignment`` are what is asked for; only PERSISTENT takes them
    from the tail. Afterwards the tail must be at or above ``floor_bytes``, counted from the aligned base."""

    kind: StepKind
    label: str
    size_bytes: int
    alignment: int
    floor_bytes: int
    category: Category | None = None
    subgraph: int | None = None
    operator: int | None = None


@dataclass(frozen=True, slots=True)
class TailItem:
    """One persistent allocation at its place: ``offset_bytes`` below the arena's end, ``padding_bytes`` lost above."""

    label: str
    category: Category
    size_bytes: int
    padding_bytes: int
    alignment: int
    offset_bytes: int
    subgraph: int | None
    operator: int | None


@dataclass(slots=True)
class Setup:
    """Records steps in TFLM's order; then answers what they need."""

    steps: list[SetupStep] = field(default_factory=list)
    head_bytes: int = 0
    temp_bytes: int = 0
    peak_temp_bytes: int = 0
    subgraph: int | None = None
    operator: int | None = None

    def persist(self, size_bytes: int, alignment: int, label: str, category: Category, spare_bytes: int = 0) -> None:
        """AllocatePersistentBuffer. TFLM only checks it against the head. Below the end of the temporaries it would
        destroy live TfLiteTensor structs and go on, so the floor here is that end, less ``spare_bytes`` at it that
        nothing reads any more."""
        floor = max(self.head_bytes, self.temp_bytes - spare_bytes)
        self._add(StepKind.PERSISTENT, label, size_bytes, alignment, floor, category)

    def temp(self, parts: tuple[tuple[int, int], ...], label: str) -> None:
        """AllocateTemp, once per (size, alignment) of ``parts``."""
        start = end = self.temp_bytes
        for size, alignment in parts:
            end = align_up(end, alignment) + size
        self._raise_temp(end)
        self._add(StepKind.TEMP, label, end - start, parts[0][1], end)

    def resize_head(self, size_bytes: int, label: str) -> None:
        """ResizeBuffer and ReserveNonPersistentOverlayMemory: the head ends at ``size_bytes``, the temporaries go."""
        self.head_bytes = self.temp_bytes = size_bytes
        self.peak_temp_bytes = max(self.peak_temp_bytes, size_bytes)
        self._add(StepKind.HEAD, label, size_bytes, 1, size_bytes)

    def planner_table(self, buffer_count: int, bytes_per_buffer: int) -> None:
        """The planner gets all that is left, aligned at both ends, and needs a table entry per buffer in it."""
        end = align_up(self.temp_bytes, ARENA_ALIGNMENT) + buffer_count * bytes_per_buffer
        self._raise_temp(end)
        label = f"memory planner's table for {buffer_count} buffers"
        size = buffer_count * bytes_per_buffer
        self._add(StepKind.PLANNER, label, size, ARENA_ALIGNMENT, align_up(end, ARENA_ALIGNMENT))

    def reset_temp(self) -> None:
        self.temp_bytes = self.head_bytes

    def minimum(self) -> tuple[int, SetupStep]:
        """The smallest size in bytes at which every step passes (16-aligned base), and the step that fails at one byte
        less."""
        need = 0
        limit = self.steps[-1]
        for step in reversed(self.steps):
            if step.floor_bytes >= need:
                need, limit = step.floor_bytes, step
            if step.kind is StepKind.PERSISTENT:
                need = align_up(need, step.alignment) + step.size_bytes
        return need, limit

    def tail_items(self, arena_bytes: int) -> Iterator[TailItem]:
        """The persistent allocations as they lie in an arena of this size (16-aligned base)."""
        tail = arena_bytes
        for step in self.steps:
            if step.kind is StepKind.PERSISTENT and step.category is not None:
                place = align_down(tail - step.size_bytes, step.alignment)
                yield TailItem(
                    step.label,
                    step.category,
                    step.size_bytes,
                    tail - place - step.size_bytes,
                    step.alignment,
                    arena_bytes - place,
                    step.subgraph,
                    step.operator,
                )
                tail = place

    def tail_bytes(self, arena_bytes: int) -> int:
        """Bytes from the end of an arena of this size down to its tail, after setup."""
        tail = arena_bytes
        for step in self.steps:
            if step.kind is StepKind.PERSISTENT:
                tail = align_down(tail - step.size_bytes, step.alignment)
        return arena_bytes - tail

    def _raise_temp(self, end_bytes: int) -> None:
        self.temp_bytes = end_bytes
        self.peak_temp_bytes = max(self.peak_temp_bytes, end_bytes)

    def _add(
        self, kind: StepKind, label: str, size: int, alignment: int, floor: int, category: Category | None = None
    ) -> None:
        step = SetupStep(kind, label, size, alignment, floor, category, self.subgraph, self.operator)
        self.steps.append(step)
