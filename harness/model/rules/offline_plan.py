"""The OfflineMemoryAllocation metadata: offsets that a converter or compiler chose. TFLM believes them."""

from __future__ import annotations

import bisect
import struct
from collections.abc import Iterator, Sequence

from harness.model.codes import finding
from harness.model.finding import Finding
from harness.model.graph import Model
from harness.model.rules.control_flow import called_subgraphs, calls_itself
from harness.model.rules.file import BUFFER_ALIGNMENT
from harness.model.sizes import arena_size_bytes
from harness.units import align_up

#: kOfflineMemAllocMetadata, tensorflow/lite/micro/micro_allocation_info.cc. The whole name counts.
METADATA_NAME = "OfflineMemoryAllocation"
#: The metadata starts with three 32-bit words: version, subgraph, number of offsets.
_HEADER_BYTES = 12
_VERSION = 1
ONLINE = -1
#: Operators whose kernels copy the values as they are, and not at all onto themselves (reshape.cc, squeeze.cc: memcpy).
_KEEPS_VALUES = frozenset({"EXPAND_DIMS", "RESHAPE", "SQUEEZE"})
#: No microcontroller has an arena that large.
_LARGEST_ARENA_BYTES = 256 * 1024 * 1024
#: Calls of subgraphs that are followed before the lifetimes are given up.
_MAX_CALLS = 10_000

Lifetime = tuple[int, int]


def check_offline_plan(model: Model) -> Iterator[Finding]:
    plans = [entry for entry in model.metadata if entry.name == METADATA_NAME]
    for entry in plans[-1:]:  # the last one counts
        data = model.buffer_data(entry.buffer)
        tensors = sum(len(subgraph.tensors) for subgraph in model.subgraphs)
        if len(data) < _HEADER_BYTES:
            message = f"the plan has {len(data)} bytes; its header alone has {_HEADER_BYTES}"
            yield finding("offline.length", "metadata", message)
            continue
        version, _, count = struct.unpack_from("<3I", data)
        if version != _VERSION:
            yield finding("offline.version", "metadata", f"the plan has version {version}, known is {_VERSION}")
        if len(data) < _HEADER_BYTES + 4 * count:
            message = f"the plan has {len(data):,} bytes, {count:,} offsets take {_HEADER_BYTES + 4 * count:,}"
            yield finding("offline.length", "metadata", message)
            continue
        if count != tensors:
            message = f"{count:,} offsets for {tensors:,} tensors over all subgraphs"
            yield finding("offline.count", "metadata", message)
            continue
        yield from _check_offsets(model, struct.unpack_from(f"<{count}i", data, _HEADER_BYTES))


def _check_offsets(model: Model, offsets: Sequence[int]) -> Iterator[Finding]:
    placed: list[tuple[int, int, int]] = []  # tensor number over all subgraphs, offset, end
    places: list[str] = []
    clean = True
    for subgraph in model.subgraphs:
        for tensor in subgraph.tensors:
            number = len(places)
            places.append(f"subgraph {subgraph.index}, tensor {tensor.index}")
            offset = offsets[number]
            # the offset of a constant is never looked at
            if offset == ONLINE or model.buffers[tensor.buffer].size_bytes:
                continue
            size = arena_size_bytes(tensor) or 0
            if offset < 0 or offset + size > _LARGEST_ARENA_BYTES:
                clean = False
                message = f"offset {offset:,} of a tensor of {size:,} bytes"
                yield finding("offline.offset", places[number], message)
            elif offset % BUFFER_ALIGNMENT:
                clean = False
                message = f"offset {offset:,} is not a multiple of {BUFFER_ALIGNMENT}"
                yield finding("offline.unaligned", places[number], message)
            elif size > 0:
                placed.append((number, offset, offset + align_up(size, BUFFER_ALIGNMENT)))
    if clean and placed and not calls_itself(model):
        lifetimes = _lifetimes(model)
        clash = _first_clash([entry for entry in placed if entry[0] in lifetimes], lifetimes, _same_values(model))
        if clash:
            (one, start, end), (other, other_start, other_end) = clash
            message = f"bytes {start:,} to {end:,} and {other_start:,} to {other_end:,} of {places[other]} overlap"
            yield finding("offline.overlap", places[one], message)


def _lifetimes(model: Model) -> dict[int, Lifetime]:
    """First and last scope of each tensor, as AllocationInfoBuilder::MarkAllocationLifetimes counts them
    (tensorflow/lite/micro/micro_allocation_info.cc); empty where the calls are too many to follow."""
    bases = [0]
    for subgraph in model.subgraphs:
        bases.append(bases[-1] + len(subgraph.tensors))
    lifetimes: dict[int, Lifetime] = {}
    scope = calls = 0

    def live(number: int) -> None:
        first, _ = lifetimes.get(number, (scope, scope))
        lifetimes[number] = first, scope

    def mark(index: int) -> None:
        nonlocal scope, calls
        calls += 1
        if calls > _MAX_CALLS:
            return
        subgraph, base = model.subgraphs[index], bases[index]
        for tensor in subgraph.inputs:
            live(base + tensor)
        for operator in subgraph.operators:
            scope += 1
            for tensor in operator.outputs:
                live(base + tensor)
            for target in called_subgraphs(operator):
                if 0 <= target < len(model.subgraphs):
                    scope += 1
                    mark(target)
            for tensor in (*operator.inputs, *operator.outputs):
                if tensor >= 0:
                    live(base + tensor)
        for tensor in subgraph.outputs:
            live(base + tensor)

    if len(model.subgraphs) <= 200:  # as deep as calls can nest
        mark(0)
    return lifetimes if calls <= _MAX_CALLS else {}


def _same_values(model: Model) -> set[frozenset[int]]:
    """Pairs of tensors that may share their place: a reshaped tensor has the values of the one it comes from."""
    pairs: set[frozenset[int]] = set()
    base = 0
    for subgraph in model.subgraphs:
        for operator in subgraph.operators:
            if operator.name in _KEEPS_VALUES and operator.inputs and operator.outputs:
                pairs.add(frozenset((base + operator.inputs[0], base + operator.outputs[0])))
        base += len(subgraph.tensors)
    return pairs


def _first_clash(
    placed: list[tuple[int, int, int]], lifetimes: dict[int, Lifetime], same_values: set[frozenset[int]]
) -> tuple[tuple[int, int, int], tuple[int, int, int]] | None:
    """Two placements that share bytes while both live. One pass over time: the tensors that live now are kept sorted
    by offset, so a newcomer has to be held against its two neighbours only."""
    events = sorted(
        [(lifetimes[entry[0]][0], 1, entry) for entry in placed]
        + [(lifetimes[entry[0]][1] + 1, 0, entry) for entry in placed]
    )
    alive: list[tuple[int, int, int]] = []  # offset, end, tensor
    for _, begins, (number, offset, end) in events:
        item = (offset, end, number)
        at = bisect.bisect_left(alive, item)
        if not begins:
            del alive[at]
            continue
        for neighbour in alive[max(0, at - 1) : at + 1]:
            shared = neighbour[0] == offset and frozenset((number, neighbour[2])) in same_values
            if neighbour[0] < end and offset < neighbour[1] and not shared:
                return (number, offset, end), (neighbour[2], neighbour[0], neighbour[1])
        alive.insert(at, item)
    return None
