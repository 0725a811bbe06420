"""Shapes of operators that multiply matrices: fully connected, batch products, SVDF, LSTM."""

from __future__ import annotations

import math
from collections.abc import Iterator

from harness.model.graph import Operator
from harness.model.rules.scope import Scope
from harness.model.rules.shape_facts import (
    MISMATCH,
    OPTION,
    Fault,
    Inputs,
    Outputs,
    Rule,
    broadcast_shape,
    check_bias,
    dims_of,
    option_of,
)


def _fully_connected(scope: Scope, operator: Operator, inputs: Inputs, outputs: Outputs) -> Iterator[Fault]:
    del scope, operator
    weights, source, output = dims_of(inputs[1]), dims_of(inputs[0]), outputs[0].dims
    units, depth = weights[-2], weights[-1]
    text = f"input {list(source)}, weights {list(weights)} → {list(output)}"
    if not output or output[-1] != units:
        yield MISMATCH, f"{text}: the last output dimension is not the {units} units"
    elif math.prod(source) != math.prod(output[:-1]) * depth:
        yield MISMATCH, f"{text}: the input is not {math.prod(output[:-1])} rows of {depth}"
    yield from check_bias(inputs[2:], units)


def _batch_matmul(scope: Scope, operator: Operator, inputs: Inputs, outputs: Outputs) -> Iterator[Fault]:
    del scope
    left, right, output = dims_of(inputs[0]), dims_of(inputs[1]), outputs[0].dims
    rows, inner = left[-2:][::-1] if operator.options.get("adj_x") else left[-2:]
    other, columns = right[-2:][::-1] if operator.options.get("adj_y") else right[-2:]
    batches = broadcast_shape([left[:-2], right[:-2], ()]) if len(left) > 2 or len(right) > 2 else ()
    text = f"{list(left)} × {list(right)} → {list(output)}"
    if inner != other or batches is None:
        yield MISMATCH, f"{text}: the inner dimensions or batches do not go together"
    elif math.prod(output) != math.prod(batches) * rows * columns:
        yield MISMATCH, f"{text}: the output has another size"


def _svdf(scope: Scope, operator: Operator, inputs: Inputs, outputs: Outputs) -> Iterator[Fault]:
    del scope
    source, feature, time, state = (dims_of(inputs[place]) for place in (0, 1, 2, 4))
    rank = option_of(operator, "rank")
    if rank <= 0 or feature[0] % rank:
        yield OPTION, f"rank {rank} with {feature[0]} filters"
        return
    units = feature[0] // rank
    if outputs[0].dims != (source[0], units):
        yield MISMATCH, f"output {list(outputs[0].dims)}; {source[0]} batches of {units} units are wanted"
    if feature[1] != source[1] or time[0] != feature[0] or state != (source[0], time[1] * feature[0]):
        text = f"input {list(source)}, feature {list(feature)}, time {list(time)}, state {list(state)}"
        yield MISMATCH, f"{text}: they do not belong together"
    yield from check_bias(inputs[3:4], units)


def _lstm(scope: Scope, operator: Operator, inputs: Inputs, outputs: Outputs) -> Iterator[Fault]:
    del scope
    source, hidden, output = dims_of(inputs[0]), inputs[18], outputs[0].dims
    if len(dims_of(hidden)) < 2 or hidden is None:
        yield MISMATCH, f"hidden state of shape {list(dims_of(hidden))}; two dimensions are read"
        return
    units = hidden.dims[1]
    batches = source[1] if operator.options.get("time_major") else source[0]
    wrong = [
        place
        for places, shape in (
            (range(1, 5), (units, source[2])),
            (range(5, 9), (units, units)),
            (range(12, 16), (units,)),
        )
        for place in places
        if dims_of(inputs[place]) != shape
    ]
    if wrong:
        yield MISMATCH, f"the shapes of inputs {wrong} do not go with {units} units and {source[2]} features"
    for place in (18, 19):
        state = inputs[place]
        if state is not None and state.element_count != batches * units:
            yield MISMATCH, f"state input {place} is {list(state.dims)}, not {batches} × {units}"
    if output != (*source[:2], units):
        yield MISMATCH, f"output {list(output)}; {[*source[:2], units]} is wanted"


PRODUCT_RULES: dict[str, Rule] = {
    "BATCH_MATMUL": _batch_matmul,
    "FULLY_CONNECTED": _fully_connected,
    "SVDF": _svdf,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _lstm,
}
