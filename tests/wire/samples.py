"""A message record with random content, made from the description."""

from __future__ import annotations

import random
from typing import Any

from harness.wire.fields import Array, Blob, Field, FixedBytes, Scalar, Text, fields_of


def sample_of(record: type, rng: random.Random) -> Any:
    return record(**{field.name: _sample(field, rng) for field in fields_of(record)})


def _sample(field: Field, rng: random.Random) -> Any:
    match field.wire:
        case Scalar(size_bytes=size):
            if field.enum:
                return rng.choice(list(field.enum))
            return rng.getrandbits(8 * size)
        case FixedBytes(size_bytes=size):
            return rng.randbytes(size)
        case Text(size_bytes=size):
            return "".join(rng.choice("abc XYZ=/.0123456789") for _ in range(rng.randrange(size + 1)))
        case Blob(max_bytes=limit):
            return rng.randbytes(rng.randrange(limit + 1))
        case Array(element=element, max_count=limit):
            count = rng.randrange(limit + 1)
            if isinstance(element, Scalar):
                return tuple(rng.getrandbits(8 * element.size_bytes) for _ in range(count))
            return tuple(sample_of(element, rng) for _ in range(count))
