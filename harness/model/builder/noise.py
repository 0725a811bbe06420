"""Weights without a random generator: bytes of SHAKE-128 over the seed and the tensor's name.

The same on every platform, Python and numpy, and independent of the order in which tensors are made.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.model.graph import Quantization, TensorType

Array = NDArray[Any]

#: Standard deviation wanted of a layer's output for inputs of deviation 1, so that deep models neither die nor clip.
GAIN = 1.5


@dataclass(frozen=True, slots=True)
class Weights:
    """A constant and how to read it. ``array`` holds real values for float, quantized values otherwise."""

    array: Array
    type: TensorType
    quantization: Quantization | None


def noise(seed: int, name: str, count: int) -> Array:
    """``count`` int8 values in -127..127."""
    raw = np.frombuffer(hashlib.shake_128(f"{seed}/{name}".encode()).digest(count), dtype=np.int8)
    return np.maximum(raw, np.int8(-127))


def weights(
    seed: int, name: str, shape: tuple[int, ...], fan_in: int, kind: TensorType, channel_axis: int | None
) -> Weights:
    """Weights of ``kind`` FLOAT32, INT8 or INT4, symmetric; with one scale per channel if ``channel_axis`` is given."""
    raw = noise(seed, name, math.prod(shape)).reshape(shape)
    limit = 7 if kind is TensorType.INT4 else 127
    values = raw if limit == 127 else raw // np.int8(17)  # -127..127 → -8..7
    values = np.maximum(values, np.int8(-limit))
    scale = GAIN * math.sqrt(3) / limit / math.sqrt(fan_in)
    if kind is TensorType.FLOAT32:
        return Weights((raw * np.float64(scale)).astype(np.float32), kind, None)
    if channel_axis is None:
        return Weights(values, kind, Quantization((_float32(scale),), (0,)))
    channels = shape[channel_axis]
    scales = tuple(_float32(scale * (0.75 + 0.125 * (channel % 5))) for channel in range(channels))
    return Weights(values, kind, Quantization(scales, (0,) * channels, channel_axis))


def bias(
    seed: int, name: str, count: int, kind: TensorType, input_scale: float, weight: Quantization | None
) -> Weights:
    """FLOAT32, INT32 or INT64: real values in -0.5..0.5, quantized with scale input × weight, as kernels demand."""
    real = noise(seed, name, count).astype(np.float64) / 254
    if kind is TensorType.FLOAT32:
        return Weights(real.astype(np.float32), kind, None)
    assert weight is not None and weight.scales is not None
    scales = tuple(_float32(input_scale * scale) for scale in weight.scales)
    values = np.rint(real / np.asarray(scales, dtype=np.float64))
    dtype = np.int64 if kind is TensorType.INT64 else np.int32
    return Weights(values.astype(dtype), kind, Quantization(scales, (0,) * len(scales)))


def pack_int4(values: Array) -> bytes:
    """Two values per byte, the first in the low half (schema.fbs, TensorType.INT4; unpacked so by both runtimes)."""
    flat = values.reshape(-1).astype(np.int16) & 0xF
    flat = np.append(flat, np.zeros(len(flat) % 2, dtype=np.int16))
    return bytes((flat[0::2] | flat[1::2] << 4).astype(np.uint8))


def _float32(value: float) -> float:
    return float(np.float32(value))
