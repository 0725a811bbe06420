"""Models whose offline memory plan puts tensors where a test wants them: TFLM obeys it, however they overlap."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from harness.model.builder import ModelBuilder
from harness.plan.offline import METADATA_NAME


def placed(builder: ModelBuilder, offsets: Mapping[int, int]) -> bytes:
    """The file, with each of these tensors at its offset (bytes from the head's base) and the others left to TFLM."""
    words = [offsets.get(index, -1) for index in range(len(builder.graph.tensors))]
    builder.add_metadata(METADATA_NAME, struct.pack(f"<3i{len(words)}i", 1, 1, len(words), *words))
    return builder.finish()
