"""Inputs from a seed and digests of bytes: the same arithmetic here and in the firmware.

Element ``i`` of input ``k`` is made from one 64-bit number of splitmix64 (Steele, Lea, Flood 2014)::

    state  = seed + (k + 1) * 0xD1B54A32D192ED03 + (i + 1) * 0x9E3779B97F4A7C15   (mod 2^64)
    z      = (state ^ state >> 30) * 0xBF58476D1CE4E5B9
    z      = (z ^ z >> 27) * 0x94D049BB133111EB
    random = z ^ z >> 31

and takes, by the tensor's type (schema.fbs, TensorType):

    int8, uint8, int16, uint16   the low 8 or 16 bits: the whole range
    float32                      ((random >> 40) - 2^23) / 2^23: −1 (inclusive) … 1 (exclusive)
    int32, int64, uint32, bool   the low bit: 0 or 1, as such inputs are mostly indices, counts and flags
"""

from __future__ import annotations

import struct

_MASK = 0xFFFFFFFFFFFFFFFF
GAMMA = 0x9E3779B97F4A7C15
INPUT_GAMMA = 0xD1B54A32D192ED03
FNV_OFFSET = 0xCBF29CE484222325
FNV_PRIME = 0x100000001B3

#: Elements made at a time: the intermediate 64-bit numbers of a large input would not fit in memory at once.
_BLOCK = 1 << 20

#: TensorType value → bytes per element and rule, for the types that can be generated.
ELEMENT_BYTES = {0: 4, 2: 4, 3: 1, 4: 8, 6: 1, 7: 2, 9: 1, 15: 4, 16: 2}


def random_words(seed: int, index: int, count: int) -> list[int]:
    """The first ``count`` 64-bit numbers for input ``index``."""
    state = (seed + (index + 1) * INPUT_GAMMA) & _MASK
    words = []
    for _ in range(count):
        state = (state + GAMMA) & _MASK
        z = ((state ^ state >> 30) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & _MASK
        words.append(z ^ z >> 31)
    return words


def generate_input(seed: int, index: int, tensor_type: int, count: int) -> bytes:
    """The bytes of input ``index`` with ``count`` elements of ``tensor_type`` (a TensorType value), little-endian."""
    if tensor_type not in ELEMENT_BYTES:
        raise ValueError(f"no generator for tensor type {tensor_type}")
    start = (seed + (index + 1) * INPUT_GAMMA) & _MASK
    blocks = range(0, count, _BLOCK)
    return b"".join(_elements(start, first, min(_BLOCK, count - first), tensor_type) for first in blocks)


def _elements(start: int, first: int, count: int, tensor_type: int) -> bytes:
    """Elements ``first`` … of the stream that begins at ``start``."""
    import numpy as np

    with np.errstate(over="ignore"):
        state = np.uint64(start) + np.arange(first + 1, first + count + 1, dtype=np.uint64) * np.uint64(GAMMA)
        z = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    size = ELEMENT_BYTES[tensor_type]
    if tensor_type == 0:
        values = ((z >> np.uint64(40)).astype(np.int64) - (1 << 23)).astype(np.float32) / np.float32(1 << 23)
        return values.astype("<f4").tobytes()
    if tensor_type in {2, 4, 6, 15}:
        return (z & np.uint64(1)).astype(f"<u{size}").tobytes()
    return z.astype(f"<u{size}").tobytes()


def pattern_of(value: float, tensor_type: int) -> bytes:
    """One element that holds ``value``, for filling an input. Integers are cut to whole numbers."""
    formats = {0: "<f", 2: "<i", 3: "<B", 4: "<q", 6: "<?", 7: "<h", 9: "<b", 15: "<I", 16: "<H"}
    if tensor_type not in formats:
        raise ValueError(f"no fill for tensor type {tensor_type}")
    if tensor_type == 0:
        return struct.pack("<f", value)
    if tensor_type == 6:
        return struct.pack("<?", bool(value))
    try:
        return struct.pack(formats[tensor_type], int(value))
    except struct.error as exc:
        raise ValueError(f"{value} is outside the range of the input's type") from exc


def digest(*pieces: bytes, start: int = FNV_OFFSET) -> int:
    """FNV-1a, 64 bits, over the pieces in order."""
    value = start
    for piece in pieces:
        for byte in piece:
            value = ((value ^ byte) * FNV_PRIME) & _MASK
    return value
