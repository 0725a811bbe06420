"""Random models by seed: to try out plans, readers and boards on graphs that nobody thought of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

from harness.model.builder import control, layers, state
from harness.model.builder.graph import Graph, ModelBuilder, Value
from harness.model.graph import TensorType

FLOAT32, INT8, INT16 = TensorType.FLOAT32, TensorType.INT8, TensorType.INT16
MAX_LAYERS = 9
_T = TypeVar("_T")


class _Choice:
    """Choices that stay the same in every version of Python: only ``Random.random`` is promised to."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def below(self, limit: int) -> int:
        return int(self._random.random() * limit)

    def of(self, values: Sequence[_T]) -> _T:
        return values[self.below(len(values))]


def random_model(seed: int) -> bytes:
    """A model of 2 to 9 layers over an image, with skips, branches, state and control flow by chance.

    One kind of numbers (int8, int16 or float) per model. The same seed gives the same bytes.
    """
    pick = _Choice(seed)
    model = ModelBuilder(seed=seed, description=f"random model {seed}")
    g = model.graph
    kind = pick.of((INT8, INT8, FLOAT32, INT16))
    x = g.input((1, 3 + pick.below(14), 3 + pick.below(14), 1 + pick.below(5)), kind)
    skips = [x]
    for _ in range(1 + pick.below(MAX_LAYERS - 1)):
        x = pick.of(_IMAGE_LAYERS)(g, x, pick, skips)
        skips.append(x)
    end = pick.of(_ENDS)(g, x, pick)
    g.output(end)
    if pick.below(4) == 0 and x.index != end.index:
        g.output(x)
    return model.finish()


ImageLayer = Callable[[Graph, Value, _Choice, list[Value]], Value]


def _conv(g: Graph, x: Value, pick: _Choice, _skips: list[Value]) -> Value:
    kernel = pick.of(((1, 1), (3, 3), (2, 3), (5, 1)))
    stride, dilation = pick.of((((1, 1), (1, 1)), ((2, 2), (1, 1)), ((1, 2), (1, 1)), ((1, 1), (2, 2))))
    activation = pick.of(("NONE", "RELU", "RELU6"))
    filters = 1 + pick.below(12)
    return layers.conv_2d(g, x, filters, kernel, stride, dilation=dilation, activation=activation)


def _depthwise(g: Graph, x: Value, pick: _Choice, _skips: list[Value]) -> Value:
    multiplier = pick.of((1, 1, 2, 3)) if x.shape[3] <= 12 else 1
    kernel = pick.of(((3, 3), (1, 5)))
    return layers.depthwise_conv_2d(g, x, multiplier, kernel, pick.of(((1, 1), (2, 2))), activation="RELU")


def _skip(g: Graph, x: Value, pick: _Choice, skips: list[Value]) -> Value:
    """Adds an earlier tensor of the same shape, which lives until here; a convolution where there is none."""
    alike = [value for value in skips[:-1] if value.shape == x.shape]
    if not alike:
        return _conv(g, x, pick, skips)
    return layers.add(g, x, pick.of(alike), activation=pick.of(("NONE", "RELU")), operator=pick.of(("ADD", "MUL")))


def _branches(g: Graph, x: Value, pick: _Choice, _skips: list[Value]) -> Value:
    kernels = [pick.of(((1, 1), (3, 3))) for _ in range(2 + pick.below(2))]
    return layers.concatenation(g, [layers.conv_2d(g, x, 1 + pick.below(6), kernel) for kernel in kernels], 3)


def _pool(g: Graph, x: Value, pick: _Choice, _skips: list[Value]) -> Value:
    operator = pick.of(("MAX_POOL_2D", "AVERAGE_POOL_2D"))
    return layers.pool_2d(g, x, (2, 2), pick.of(((1, 1), (2, 2))), padding="SAME", operator=operator)


def _pad(g: Graph, x: Value, pick: _Choice, _skips: list[Value]) -> Value:
    return layers.pad(g, x, ((0, 0), (pick.below(2), 1), (1, pick.below(2)), (0, 0)))


def _transpose(g: Graph, x: Value, _pick: _Choice, _skips: list[Value]) -> Value:
    return layers.transpose(g, x, (0, 2, 1, 3))


def _unary(g: Graph, x: Value, pick: _Choice, _skips: list[Value]) -> Value:
    operators = {FLOAT32: ("NEG", "ABS", "TANH", "LOGISTIC"), INT8: ("TANH", "LOGISTIC"), INT16: ("TANH", "LOGISTIC")}
    return layers.unary(g, pick.of(operators[x.type]), x)


def _conditional(g: Graph, x: Value, pick: _Choice, skips: list[Value]) -> Value:
    """A float tensor that one of two branches computes."""
    if x.type is not FLOAT32:
        return _conv(g, x, pick, skips)
    one = layers.mean(g, x, (0, 1, 2, 3), keep_dims=False)
    flag = control.compare(g, "GREATER", layers.reshape(g, one, (1,)), layers.reshape(g, one, (1,)))
    branches = []
    for name, operator in (("then", "NEG"), ("else", "ABS")):
        branch = g.model.add_graph(f"{name}_{len(g.model.graphs)}")
        branch.output(layers.unary(branch, operator, branch.input(x.shape, FLOAT32)))
        branches.append(branch)
    return control.if_(g, flag, [x], *branches)[0]


_IMAGE_LAYERS: tuple[ImageLayer, ...] = (
    _conv,
    _conv,
    _depthwise,
    _skip,
    _skip,
    _branches,
    _pool,
    _pad,
    _transpose,
    _unary,
    _conditional,
)


def _classify(g: Graph, x: Value, pick: _Choice) -> Value:
    return layers.softmax(g, layers.fully_connected(g, x, 2 + pick.below(10)))


def _mean(g: Graph, x: Value, pick: _Choice) -> Value:
    return layers.mean(g, x, (1, 2), keep_dims=bool(pick.below(2)))


def _as_it_is(_g: Graph, x: Value, _pick: _Choice) -> Value:
    return x


def _svdf(g: Graph, x: Value, pick: _Choice) -> Value:
    flat = layers.fully_connected(g, x, 4 + pick.below(8))
    return (
        flat if x.type is INT16 else state.svdf(g, flat, 2 + pick.below(6), 2 + pick.below(4), rank=1 + pick.below(2))
    )


def _lstm(g: Graph, x: Value, pick: _Choice) -> Value:
    if x.type is not FLOAT32:
        return _classify(g, x, pick)
    sequence = layers.reshape(g, x, (1, x.shape[1], x.element_count // x.shape[1]))
    return state.unidirectional_lstm(g, sequence, 2 + pick.below(6))


_ENDS: tuple[Callable[[Graph, Value, _Choice], Value], ...] = (_classify, _classify, _mean, _as_it_is, _svdf, _lstm)
