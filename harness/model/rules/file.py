"""The file as a whole: schema version, metadata, layout, signatures."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from harness.model.codes import finding
from harness.model.finding import Finding
from harness.model.graph import Model
from harness.model.versions import TFLM_TENSORFLOW_VERSION, parse_version
from harness.units import quoted

SCHEMA_VERSION = 3
#: MicroArenaBufferAlignment, tensorflow/lite/micro/micro_arena_constants.h; force_align of schema.fbs, table Buffer.
BUFFER_ALIGNMENT = 16
#: End-of-central-directory record: what stands 22 bytes before the end of a zip archive without a comment.
_ZIP_END = b"PK\x05\x06"
_COMPRESSION_METADATA = "COMPRESSION_METADATA"


def check_header(model: Model) -> Iterator[Finding]:
    """What can be said however broken the rest is."""
    if model.schema_version != SCHEMA_VERSION:
        message = f"schema version {model.schema_version} is not the supported version {SCHEMA_VERSION}"
        yield finding("schema.version", "model", message)
    if not model.subgraphs:
        yield finding("graph.no_subgraphs", "model", "the model has no subgraph")
        return
    main = model.subgraphs[0]
    if not main.operators and not main.outputs:
        yield finding("graph.empty", "subgraph 0", "the main subgraph has no operators and no outputs")
    elif not main.outputs:
        yield finding("graph.no_outputs", "subgraph 0", "the main subgraph has no outputs")
    elif not main.operators:
        yield finding("graph.no_operators", "subgraph 0", "the main subgraph has no operators")


def check_file(model: Model) -> Iterator[Finding]:
    yield from _min_runtime_version(model)
    if any(entry.name == _COMPRESSION_METADATA for entry in model.metadata):
        yield finding("metadata.compressed", "metadata", f"the model has {_COMPRESSION_METADATA}")
    yield from _layout(model)
    yield from _signatures(model)


def _min_runtime_version(model: Model) -> Iterator[Finding]:
    entry = next((entry for entry in model.metadata if entry.name == "min_runtime_version"), None)
    if entry is None:
        yield finding("metadata.min_runtime_version", "metadata", "there is no min_runtime_version")
        return
    data = bytes(model.buffer_data(entry.buffer)[:64])
    version = parse_version(data)
    if version is None:
        text = quoted(data.split(b"\0", 1)[0].decode("utf-8", "backslashreplace"), 40)
        yield finding("metadata.min_runtime_version", "metadata", f"min_runtime_version is {text}")
    elif version > TFLM_TENSORFLOW_VERSION:
        has = ".".join(map(str, TFLM_TENSORFLOW_VERSION))
        message = f"min_runtime_version is {'.'.join(map(str, version))}; the pinned TFLM goes with TensorFlow {has}"
        yield finding("metadata.newer_runtime", "metadata", message)


def _layout(model: Model) -> Iterator[Finding]:
    used = {tensor.buffer for subgraph in model.subgraphs for tensor in subgraph.tensors}
    filled = [buffer for buffer in model.buffers if buffer.size_bytes and buffer.index in used]
    unaligned = [buffer for buffer in filled if buffer.offset % BUFFER_ALIGNMENT]
    if unaligned:
        first = unaligned[0]
        message = (
            f"{len(unaligned)} of {len(filled)} buffers do not start on a multiple of {BUFFER_ALIGNMENT} bytes "
            f"in the file (buffer {first.index} at byte {first.offset:,})"
        )
        yield finding("layout.unaligned_buffers", "buffers", message)
    if model.buffers and model.buffers[0].size_bytes:
        message = f"buffer 0 holds {model.buffers[0].size_bytes:,} bytes; tensors that name it become constants"
        yield finding("buffer.sentinel", "buffer 0", message)
    spared = _duplicate_bytes(model)
    if spared:
        yield finding("layout.duplicate_buffers", "buffers", f"{spared:,} bytes stand in the file more than once")
    if model.data[-22:-18] == _ZIP_END:
        yield finding("layout.appended_archive", "file", "a zip archive stands behind the flatbuffer")


def _duplicate_bytes(model: Model) -> int:
    sizes: dict[int, int] = {}
    for buffer in model.buffers:
        sizes[buffer.size_bytes] = sizes.get(buffer.size_bytes, 0) + 1
    seen: set[tuple[int, bytes]] = set()
    places: set[int] = set()
    spared = hashed = 0
    for buffer in model.buffers:
        if buffer.size_bytes <= BUFFER_ALIGNMENT or sizes[buffer.size_bytes] == 1 or buffer.offset in places:
            continue
        hashed += buffer.size_bytes
        if hashed > model.size_bytes:
            break  # buffers that overlap: a damaged file
        places.add(buffer.offset)
        key = buffer.size_bytes, hashlib.blake2b(model.buffer_data(buffer.index), digest_size=16).digest()
        spared += buffer.size_bytes if key in seen else 0
        seen.add(key)
    return spared


def _signatures(model: Model) -> Iterator[Finding]:
    for signature in model.signatures:
        place = f"signature {quoted(signature.key, 60)}"
        if signature.subgraph != 0:
            message = f"the signature belongs to subgraph {signature.subgraph}"
            yield finding("signature.other_subgraph", place, message)
            continue
        order = tuple(index for _, index in signature.inputs)
        inputs = model.subgraphs[0].inputs
        if order != inputs and sorted(order) == sorted(inputs):
            yield finding("signature.order", place, f"inputs {list(order)} against the model's {list(inputs)}")
