"""A small model builder: real ``.tflite`` files that LiteRT and TFLM accept and compute alike.

    model = ModelBuilder(seed=1)
    g = model.graph
    x = g.input((1, 32, 32, 1), INT8)
    x = layers.conv_2d(g, x, 8, stride=(2, 2), activation="RELU")
    g.output(layers.softmax(g, layers.fully_connected(g, x, 10)))
    data = model.finish()

``EXAMPLES`` names ready-made models. The same seed gives the same bytes on every platform.
"""

from harness.model.builder import control, layers, state
from harness.model.builder.examples import EXAMPLES, chain, conv_tower
from harness.model.builder.graph import Graph, ModelBuilder, Value, per_tensor
from harness.model.builder.noise import Weights, noise, weights

__all__ = [
    "EXAMPLES",
    "Graph",
    "ModelBuilder",
    "Value",
    "Weights",
    "chain",
    "control",
    "conv_tower",
    "layers",
    "noise",
    "per_tensor",
    "state",
    "weights",
]
