"""The plan: the whole arena of a model, predicted from the file alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from harness.abi import ARENA_ALIGNMENT, Abi, abi_named
from harness.model.graph import Model
from harness.plan.buffer import BufferRequest
from harness.plan.greedy import greedy
from harness.plan.interpreter import (
    allocate_inputs_and_outputs,
    construct,
    plan_memory,
    prepare_model,
)
from harness.plan.linear import linear
from harness.plan.preparation import Preparation
from harness.plan.requests import buffer_requests
from harness.plan.setup import RECORDED, Category, Setup, SetupStep, TailItem
from harness.plan.target import Interpreter, PlanTarget
from harness.plan.verifier import verify, verify_tail
from harness.units import align_up

#: kCompressionMetadataString, micro/compression/metadata_saved.h. Builds with USE_TFLM_COMPRESSION read it.
COMPRESSION_METADATA = "COMPRESSION_METADATA"


class Confidence(str, Enum):
    """EXACT: rules and sizes are those of a build against which the plan was verified byte for byte."""

    EXACT = "exact"
    ESTIMATED = "estimated"


@dataclass(frozen=True, slots=True)
class Placement:
    """A buffer of the head at its place, bytes from the aligned base."""

    request: BufferRequest
    offset_bytes: int

    @property
    def end_bytes(self) -> int:
        return self.offset_bytes + self.request.size_bytes


@dataclass(frozen=True, slots=True)
class CategorySum:
    """RecordedAllocation: ``used_bytes`` counts the padding in front of each allocation as well."""

    requested_bytes: int
    used_bytes: int
    count: int


@dataclass(frozen=True, slots=True)
class ArenaPlan:
    """What a model needs on one target.

    All sizes in bytes for a 16-aligned arena base. ``used_bytes`` is arena_used_bytes() in an arena whose size is a
    multiple of 16, head plus tail. ``min_exact_bytes`` is the smallest size that works, to the byte, ``min_bytes`` the
    same rounded up to 16; at one byte less, ``limit`` is the step that fails. ``setup_peak_bytes`` is the highest end
    of the temporaries during setup. ``reasons`` says why a plan is only estimated.
    """

    target: PlanTarget
    model_path: str
    model_sha256: str
    model_bytes: int
    placements: tuple[Placement, ...]
    tail: tuple[TailItem, ...]
    head_bytes: int
    tail_bytes: int
    min_exact_bytes: int
    limit: SetupStep
    setup_peak_bytes: int
    categories: Mapping[str, CategorySum]
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]
    setup: Setup = field(repr=False)

    @property
    def used_bytes(self) -> int:
        return self.head_bytes + self.tail_bytes

    @property
    def min_bytes(self) -> int:
        return align_up(self.min_exact_bytes, ARENA_ALIGNMENT)

    @property
    def confidence(self) -> Confidence:
        return Confidence.ESTIMATED if self.reasons else Confidence.EXACT

    @property
    def padding_bytes(self) -> int:
        """Bytes of the tail lost to alignment."""
        return sum(item.padding_bytes for item in self.tail)

    def used_bytes_at(self, arena_bytes: int) -> int:
        """arena_used_bytes() in an arena of this size: the end is not aligned, so the padding depends on size % 16."""
        return self.head_bytes + self.setup.tail_bytes(arena_bytes)

    def used_by_size_residue16(self) -> list[int]:
        """``used_bytes_at`` of an ample size with remainder 0 … 15."""
        ample = self.min_bytes + ARENA_ALIGNMENT
        return [self.used_bytes_at(ample + residue) for residue in range(ARENA_ALIGNMENT)]

    def to_dict(self) -> dict[str, Any]:
        """The JSON form, schema ``harness.plan``, version 1."""
        return {
            "schema": "harness.plan",
            "schema_version": 1,
            "model": {"path": self.model_path, "sha256": self.model_sha256, "bytes": self.model_bytes},
            "target": {
                "abi": self.target.abi,
                "core": self.target.core,
                "kernels": self.target.kernels.value,
                "interpreter": self.target.interpreter.value,
                "tflm_commit": self.target.tflm_commit,
            },
            "arena": {
                "head_bytes": self.head_bytes,
                "tail_bytes": self.tail_bytes,
                "used_bytes": self.used_bytes,
                "min_bytes": self.min_bytes,
                "min_exact_bytes": self.min_exact_bytes,
                "setup_peak_bytes": self.setup_peak_bytes,
                "padding_bytes": self.padding_bytes,
                "confidence": self.confidence.value,
                "reasons": list(self.reasons),
            },
            "limit": _step_dict(self.limit),
            "categories": {
                name: {"requested_bytes": entry.requested_bytes, "used_bytes": entry.used_bytes, "count": entry.count}
                for name, entry in self.categories.items()
            },
            "placements": [_placement_dict(placement) for placement in self.placements],
            "tail": [_tail_dict(item) for item in self.tail],
            "warnings": list(self.warnings),
        }


def plan_arena(model: Model, target: PlanTarget, *, abi: Abi | None = None) -> ArenaPlan:
    """Plan a model for a target. ``abi`` replaces the named ABI's sizes (from a board, say).

    Raises UnfitModelError when TFLM would refuse the model, with TFLM's cause.
    """
    abi = abi or abi_named(target.abi)
    setup = Setup()
    construct(setup, abi, target.interpreter)
    preparation = prepare_model(model, target, abi, setup)
    requests = buffer_requests(preparation)
    place = linear if target.interpreter is Interpreter.PRESERVE_ALL else greedy
    offsets = place(requests)
    verify(requests, offsets, alignment=ARENA_ALIGNMENT)
    placements = tuple(Placement(request, offset) for request, offset in zip(requests, offsets, strict=True))
    head_bytes = max((placement.end_bytes for placement in placements), default=0)
    plan_memory(preparation, target.interpreter, requests, head_bytes)
    allocate_inputs_and_outputs(preparation)
    min_exact_bytes, limit = setup.minimum()
    min_bytes = align_up(min_exact_bytes, ARENA_ALIGNMENT)
    tail = tuple(setup.tail_items(min_bytes))
    verify_tail(tail, arena_bytes=min_bytes, head_bytes=head_bytes)
    return ArenaPlan(
        target=target,
        model_path=model.path,
        model_sha256=model.sha256,
        model_bytes=model.size_bytes,
        placements=placements,
        tail=tail,
        head_bytes=head_bytes,
        tail_bytes=tail[-1].offset_bytes,
        min_exact_bytes=min_exact_bytes,
        limit=limit,
        setup_peak_bytes=setup.peak_temp_bytes,
        categories=_categories(model, tail),
        reasons=tuple(_reasons(preparation, target)),
        warnings=tuple(preparation.warnings),
        setup=setup,
    )


def _categories(model: Model, tail: tuple[TailItem, ...]) -> dict[str, CategorySum]:
    """RecordingMicroAllocator's sums. It counts tensors and nodes, not the arrays that hold them."""
    sums = {category: [0, 0, 0] for category in RECORDED}
    for item in tail:
        entry = sums.get(item.category)
        if entry is not None:
            entry[0] += item.size_bytes
            entry[1] += item.size_bytes + item.padding_bytes
            entry[2] += 1
    sums[Category.EVAL_TENSOR][2] = sum(len(subgraph.tensors) for subgraph in model.subgraphs)
    sums[Category.NODE][2] = sum(len(subgraph.operators) for subgraph in model.subgraphs)
    return {category.value: CategorySum(*entry) for category, entry in sums.items()}


def _reasons(preparation: Preparation, target: PlanTarget) -> list[str]:
    reasons = list(preparation.abi.doubts)
    host = target.core == "host"
    if host != (target.abi == "lp64"):
        reasons.append(f"core {target.core} with ABI {target.abi}: no such build was measured")
    elif host and target.kernels.value != "reference":
        reasons.append("the host build has the reference kernels")
    if any(metadata.name == COMPRESSION_METADATA for metadata in preparation.model.metadata):
        reasons.append("the model's tensors are compressed (COMPRESSION_METADATA): their buffers are not in the plan")
    return reasons + preparation.doubts


def _step_dict(step: SetupStep) -> dict[str, Any]:
    return {
        "kind": step.kind.value,
        "label": step.label,
        "size_bytes": step.size_bytes,
        "alignment": step.alignment,
        "subgraph": step.subgraph,
        "operator": step.operator,
    }


def _placement_dict(placement: Placement) -> dict[str, Any]:
    request = placement.request
    return {
        "offset_bytes": placement.offset_bytes,
        "size_bytes": request.size_bytes,
        "requested_bytes": request.requested_bytes,
        "first_use": request.first_use,
        "last_use": request.last_use,
        "subgraph": request.subgraph,
        "tensor": request.tensor,
        "scratch": request.scratch,
        "operator": request.operator,
        "offline": request.offline_offset is not None,
    }


def _tail_dict(item: TailItem) -> dict[str, Any]:
    return {
        "label": item.label,
        "category": item.category.value,
        "size_bytes": item.size_bytes,
        "padding_bytes": item.padding_bytes,
        "alignment": item.alignment,
        "offset_bytes": item.offset_bytes,
        "subgraph": item.subgraph,
        "operator": item.operator,
    }
