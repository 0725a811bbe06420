"""The offline memory plan in a model's metadata (micro_allocation_info.cc, GetOfflinePlannedOffsets)."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from harness.errors import UnfitModelError
from harness.model.graph import Model
from harness.model.reader import parse_model

METADATA_NAME = "OfflineMemoryAllocation"
#: kOnlinePlannedBuffer: the planner decides.
ONLINE = -1
#: int32 words before the offsets; the third is their count. TFLM reads neither the version nor the subgraph in the
#: first two.
_HEADER_WORDS = 3


def offline_offsets(model: Model) -> list[int] | None:
    """One offset in bytes per tensor of all subgraphs, −1 for a tensor that the planner places; None without a plan.

    Raises UnfitModelError when the plan's count is not the number of tensors, as TFLM does, and when the buffer is
    shorter than it says, which TFLM does not notice.
    """
    offsets: list[int] | None = None
    for metadata in model.metadata:
        if metadata.name != METADATA_NAME:
            continue
        data = model.buffer_data(metadata.buffer)
        words = len(data) // 4
        if words < _HEADER_WORDS:
            raise _unfit(f"the offline plan in the metadata has {len(data)} bytes, its header alone needs 12")
        count = struct.unpack_from("<I", data, 8)[0]
        tensors = sum(len(subgraph.tensors) for subgraph in model.subgraphs)
        if count != tensors:
            raise _unfit(f"Nbr of offline buffer offsets ({count}) in metadata not equal nbr tensors ({tensors})")
        if words < _HEADER_WORDS + count:
            raise _unfit(f"the offline plan says {count} offsets and holds {words - _HEADER_WORDS}")
        offsets = list(struct.unpack_from(f"<{count}i", data, 12))
    return offsets


def without_offline_plan(model: Model) -> Model:
    """The model with all its tensors left to the planner; itself where they are. Only the offsets in the metadata are
    other bytes: the file keeps its layout. Raises UnfitModelError as ``offline_offsets``."""
    offsets = offline_offsets(model)
    if offsets is None or all(offset == ONLINE for offset in offsets):
        return model
    data = bytearray(model.data)
    online = struct.pack(f"<{len(offsets)}i", *[ONLINE] * len(offsets))
    for metadata in model.metadata:
        if metadata.name == METADATA_NAME:
            start = model.buffers[metadata.buffer].offset + 4 * _HEADER_WORDS
            data[start : start + len(online)] = online
    return parse_model(bytes(data), model.path, lenient=True)


def _unfit(cause: str) -> UnfitModelError:
    return UnfitModelError(
        cause, code="model.offline_plan", remedy=f"make the metadata {METADATA_NAME} again for this model, or remove it"
    )


def encoded_plan(model: Model, offsets: Mapping[tuple[int, int], int]) -> bytes:
    """The metadata for a plan: ``offsets`` by (subgraph, tensor), bytes from the base of the head; all other tensors
    are left to TFLM's planner."""
    words = [
        offsets.get((subgraph.index, tensor.index), ONLINE)
        for subgraph in model.subgraphs
        for tensor in subgraph.tensors
    ]
    return struct.pack(f"<3i{len(words)}i", 1, len(model.subgraphs), len(words), *words)
