"""The catalogue of models made by the project: for the demo, the tests and the benchmarks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from harness.model.builder import control, layers, state
from harness.model.builder.graph import Graph, ModelBuilder, Value
from harness.model.builder.noise import Weights
from harness.model.graph import TensorType

FLOAT32, INT8, INT16, INT32 = TensorType.FLOAT32, TensorType.INT8, TensorType.INT16, TensorType.INT32


def ds_cnn_kws(channels: int = 64, kind: TensorType = INT8) -> bytes:
    """A keyword spotter of five convolution layers (one plain, four depthwise separable) over 49 × 10 features,
    shaped as DS-CNN in Zhang et al., *Hello Edge*, 2017; its weights are noise."""
    model = ModelBuilder(seed=1, description="ds_cnn_kws: a depthwise separable keyword spotter with noise for weights")
    g = model.graph
    x = g.input((1, 49, 10, 1), kind, name="features")
    x = layers.conv_2d(g, x, channels, (10, 4), (2, 2), activation="RELU")
    for _ in range(4):
        x = layers.depthwise_conv_2d(g, x, activation="RELU")
        x = layers.conv_2d(g, x, channels, (1, 1), activation="RELU")
    x = layers.pool_2d(g, x, (25, 5))
    x = layers.fully_connected(g, layers.reshape(g, x, (1, channels)), 12)
    g.output(layers.softmax(g, x))
    return model.finish()


def chain(length: int, operator: str = "NEG") -> bytes:
    """``length`` operators of one input in a row over a float vector of 16: many tables, little arithmetic."""
    model = ModelBuilder(seed=2, description=f"chain of {length} {operator}")
    g = model.graph
    x = g.input((1, 16), FLOAT32)
    for _ in range(length):
        x = layers.unary(g, operator, x)
    g.output(x)
    return model.finish()


def conv_tower(filters: int = 192, depth: int = 12, size: int = 16) -> bytes:
    """Convolutions 3 × 3 of equal width: 4.0 MB of int8 weights with the defaults."""
    model = ModelBuilder(seed=3, description=f"conv tower {filters} x {depth}")
    g = model.graph
    x = layers.conv_2d(g, g.input((1, size, size, 3), INT8), filters, activation="RELU")
    for _ in range(depth):
        x = layers.conv_2d(g, x, filters, activation="RELU")
    g.output(layers.mean(g, x, (1, 2)))
    return model.finish()


def _single(kind: TensorType, shape: tuple[int, ...], layer: Callable[[Graph, Value], Value]) -> Callable[[], bytes]:
    """A model of one input and one chain of layers."""

    def build() -> bytes:
        model = ModelBuilder(seed=4)
        g = model.graph
        g.output(layer(g, g.input(shape, kind)))
        return model.finish()

    return build


def residual(kind: TensorType) -> bytes:
    """Two residual blocks: tensors that live across other operators."""
    model = ModelBuilder(seed=5)
    g = model.graph
    x = layers.conv_2d(g, g.input((1, 12, 12, 3), kind), 8, activation="RELU")
    for _ in range(2):
        y = layers.conv_2d(g, x, 8, activation="RELU")
        x = layers.add(g, x, layers.conv_2d(g, y, 8), activation="RELU")
    g.output(layers.mean(g, x, (1, 2)))
    return model.finish()


def inception(kind: TensorType) -> bytes:
    """Three branches, concatenated, pooled."""
    model = ModelBuilder(seed=6)
    g = model.graph
    x = g.input((1, 10, 10, 4), kind)
    branches = [layers.conv_2d(g, x, 6, size, activation="RELU") for size in ((1, 1), (3, 3), (5, 5))]
    x = layers.concatenation(g, branches, 3)
    g.output(layers.pool_2d(g, x, (2, 2), operator="MAX_POOL_2D"))
    return model.finish()


def float_io() -> bytes:
    """Float at both ends, int8 inside."""
    model = ModelBuilder(seed=7)
    g = model.graph
    x = layers.quantize(g, g.input((1, 20), FLOAT32), INT8)
    x = layers.fully_connected(g, layers.fully_connected(g, x, 16, activation="RELU"), 4)
    g.output(layers.dequantize(g, x))
    return model.finish()


def two_inputs(kind: TensorType) -> bytes:
    """Two inputs of different shapes and two outputs."""
    model = ModelBuilder(seed=8)
    g = model.graph
    a = layers.fully_connected(g, g.input((1, 8), kind, name="left"), 6)
    b = layers.fully_connected(g, g.input((1, 5), kind, name="right"), 6)
    g.output(layers.add(g, a, b), layers.add(g, a, b, operator="MUL"))
    return model.finish()


def dscnn_stages(kind: TensorType) -> bytes:
    """Strides, dilation, valid padding, a depth multiplier, padding and transposition in one model."""
    model = ModelBuilder(seed=9)
    g = model.graph
    x = layers.pad(g, g.input((1, 9, 11, 2), kind), ((0, 0), (1, 1), (0, 2), (0, 0)))
    x = layers.conv_2d(g, x, 6, (3, 2), (2, 1), padding="VALID", activation="RELU6")
    x = layers.depthwise_conv_2d(g, x, 2, dilation=(2, 2), activation="RELU")
    x = layers.conv_2d(g, x, 5, (2, 2), per_channel=False)
    g.output(layers.transpose(g, x, (0, 3, 1, 2)))
    return model.finish()


def int4_weights() -> bytes:
    """Convolution, depthwise convolution and fully connected with weights of four bits."""
    model = ModelBuilder(seed=10)
    g = model.graph
    int4 = TensorType.INT4
    x = layers.conv_2d(g, g.input((1, 8, 8, 3), INT8), 7, weight_type=int4, activation="RELU")
    x = layers.depthwise_conv_2d(g, x, weight_type=int4, activation="RELU")
    g.output(layers.fully_connected(g, x, 5, weight_type=int4))
    return model.finish()


def resource_counter(kind: TensorType) -> bytes:
    """A resource variable, set once by an initialiser, that adds up the inputs of all invocations."""
    model = ModelBuilder(seed=11)
    g = model.graph
    x = g.input((1, 4), kind, layers.activations(kind))
    start = model.add_graph("initialise")
    zero = Weights(np.zeros((1, 4), dtype=np.float32 if kind is FLOAT32 else np.int8), kind, x.quantization)
    state.assign_variable(start, state.var_handle(start, "sum"), start.constant("zero", zero))
    state.call_once(g, start)
    handle = state.var_handle(g, "sum")
    total = layers.add(g, state.read_variable(g, handle, x), x)
    state.assign_variable(g, handle, total)
    g.output(total)
    return model.finish()


def if_greater() -> bytes:
    """x > y decides whether x + y or x - y is computed."""
    model = ModelBuilder(seed=12)
    g = model.graph
    x, y = g.input((1,), FLOAT32, name="x"), g.input((1,), FLOAT32, name="y")
    branches = []
    for name, operator in (("then", "ADD"), ("else", "SUB")):
        branch = model.add_graph(name)
        branch.output(layers.add(branch, branch.input((1,), FLOAT32), branch.input((1,), FLOAT32), operator=operator))
        branches.append(branch)
    g.output(*control.if_(g, control.compare(g, "GREATER", x, y), [x, y], *branches))
    return model.finish()


def while_doubling() -> bytes:
    """Doubles a vector eight times, counting in a second value."""
    model = ModelBuilder(seed=13)
    g = model.graph
    condition, body = model.add_graph("condition"), model.add_graph("body")
    counter, _ = condition.input((1,), FLOAT32), condition.input((1, 8), FLOAT32)
    limit = condition.constant("limit", Weights(np.asarray([8], dtype=np.float32), FLOAT32, None))
    condition.output(control.compare(condition, "LESS", counter, limit))
    counter, x = body.input((1,), FLOAT32), body.input((1, 8), FLOAT32)
    one = body.constant("one", Weights(np.asarray([1], dtype=np.float32), FLOAT32, None))
    body.output(layers.add(body, counter, one), layers.add(body, x, x))
    x = g.input((1, 8), FLOAT32)
    zero = g.constant("zero", Weights(np.zeros(1, dtype=np.float32), FLOAT32, None))
    g.output(control.while_(g, [zero, x], condition, body)[1])
    return model.finish()


def _svdf_pair(g: Graph, x: Value) -> Value:
    return layers.softmax(g, layers.fully_connected(g, state.svdf(g, state.svdf(g, x, 16, 8), 8, 4), 4))


def _lstm(g: Graph, x: Value) -> Value:
    return layers.fully_connected(g, state.unidirectional_lstm(g, x, 12), 5)


def _activation_row(g: Graph, x: Value) -> Value:
    x = layers.unary(g, "LOGISTIC", layers.fully_connected(g, x, 12))
    return layers.unary(g, "TANH", layers.fully_connected(g, x, 12))


def _mlp(g: Graph, x: Value) -> Value:
    x = layers.fully_connected(g, x, 16, activation="RELU")
    return layers.fully_connected(g, layers.fully_connected(g, x, 16, activation="RELU"), 1)


def _requantize(g: Graph, x: Value) -> Value:
    return layers.quantize(g, layers.conv_2d(g, x, 4, activation="RELU"), INT8)


EXAMPLES: dict[str, Callable[[], bytes]] = {
    "ds_cnn_kws": ds_cnn_kws,
    "ds_cnn_kws_int16": lambda: ds_cnn_kws(16, INT16),
    "ds_cnn_kws_float": lambda: ds_cnn_kws(16, FLOAT32),
    "hello_int8": _single(INT8, (1, 1), _mlp),
    "hello_int16": _single(INT16, (1, 1), _mlp),
    "hello_float": _single(FLOAT32, (1, 1), _mlp),
    "residual_int8": lambda: residual(INT8),
    "residual_int16": lambda: residual(INT16),
    "residual_float": lambda: residual(FLOAT32),
    "inception_int8": lambda: inception(INT8),
    "inception_int16": lambda: inception(INT16),
    "inception_float": lambda: inception(FLOAT32),
    "stages_int8": lambda: dscnn_stages(INT8),
    "stages_float": lambda: dscnn_stages(FLOAT32),
    "activations_int8": _single(INT8, (1, 10), _activation_row),
    "activations_int16": _single(INT16, (1, 10), _activation_row),
    "requantize_int8": _single(INT8, (1, 6, 6, 2), _requantize),
    "int4_weights": int4_weights,
    "float_io": float_io,
    "two_inputs_int8": lambda: two_inputs(INT8),
    "two_inputs_float": lambda: two_inputs(FLOAT32),
    "svdf_int8": _single(INT8, (1, 12), _svdf_pair),
    "svdf_float": _single(FLOAT32, (1, 12), _svdf_pair),
    "lstm_int8": _single(INT8, (1, 7, 6), _lstm),
    "lstm_float": _single(FLOAT32, (1, 7, 6), _lstm),
    "resource_counter_int8": lambda: resource_counter(INT8),
    "resource_counter_float": lambda: resource_counter(FLOAT32),
    "if_greater": if_greater,
    "while_doubling": while_doubling,
    "chain_20": lambda: chain(20),
}
