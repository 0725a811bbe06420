"""Models whose offline memory plan puts tensors where a test wants them: TFLM obeys it, however they overlap."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from harness.model.builder import ModelBuilder, layers
from harness.model.graph import TensorType
from harness.plan.offline import METADATA_NAME


def placed(builder: ModelBuilder, offsets: Mapping[int, int]) -> bytes:
    """The file, with each of these tensors at its offset (bytes from the head's base) and the others left to TFLM."""
    words = [offsets.get(index, -1) for index in range(len(builder.graph.tensors))]
    builder.add_metadata(METADATA_NAME, struct.pack(f"<3i{len(words)}i", 1, 1, len(words), *words))
    return builder.finish()


def overwritten_input() -> bytes:
    """Operator 1 writes its output over the model's input, which operator 4 adds."""
    builder = ModelBuilder(seed=1, description="an input written over")
    graph = builder.graph
    x = graph.input((1, 64), TensorType.INT8, name="features")
    chain = [x]
    for width in (48, 64, 48, 64):  # the stand-in repeats its input: another width gives other bytes
        chain.append(layers.fully_connected(graph, chain[-1], width))
    total = layers.add(graph, x, chain[-1])
    graph.output(total)
    offsets = (0, 64, 0, 64, 128, 192)
    return placed(builder, {value.index: at for value, at in zip((*chain, total), offsets, strict=True)})
