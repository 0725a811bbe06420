"""Layers that remember: SVDF, LSTM, resource variables."""

from __future__ import annotations

import numpy as np
from tflite import ActivationFunctionType

from harness.model.builder.graph import Graph, Value, per_tensor
from harness.model.builder.layers import FLOAT32, INT8, INT16, activations
from harness.model.builder.noise import Weights, bias, weights
from harness.model.graph import Quantization, TensorType


def svdf(g: Graph, x: Value, units: int, memory: int, *, rank: int = 2) -> Value:
    """SVDF over (batch, features) with its state in a variable tensor. Float, or int8 with an int16 state."""
    name = g.next_name("SVDF")
    filters = units * rank
    is_float = x.type is FLOAT32
    state_quantization = None if is_float else per_tensor(8 / 32768)
    feature = weights(g.model.seed, f"{name}/feature", (filters, x.shape[1]), x.shape[1], x.type, None)
    time = weights(g.model.seed, f"{name}/time", (filters, memory), memory * rank, x.type, None)
    if not is_float:
        time = Weights(time.array.astype(np.int16), INT16, time.quantization)
    state_scale = 1.0 if state_quantization is None else 8 / 32768
    bias_type = FLOAT32 if is_float else TensorType.INT32
    b = bias(g.model.seed, f"{name}/b", units, bias_type, state_scale, time.quantization)
    state_type = FLOAT32 if is_float else INT16
    shape = (x.shape[0], memory * filters)
    state = g.tensor(f"{name}/state", shape, state_type, state_quantization, is_variable=True)
    inputs = [x, g.constant(f"{name}/feature", feature), g.constant(f"{name}/time", time), g.constant(f"{name}/b", b)]
    y = g.tensor(name, (x.shape[0], units), x.type, activations(x.type, "RELU"))
    options = {"rank": rank, "fused_activation_function": ActivationFunctionType.RELU}
    g.operator("SVDF", [*inputs, state], [y], "SVDFOptions", options, version=1 if is_float else 3)
    return y


#: LSTM in 8-bit: Q0.15 gates, a cell state of a power-of-two scale (TFLM 90b983c, kernels/lstm_eval_common.cc).
_CELL_SCALE = 2.0**-11
_GATE_SCALE = 2.0**-12


def unidirectional_lstm(g: Graph, x: Value, units: int) -> Value:
    """UNIDIRECTIONAL_SEQUENCE_LSTM over (batch, time, features), float or int8, no peepholes, no projection."""
    name = g.next_name("UNIDIRECTIONAL_SEQUENCE_LSTM")
    is_float = x.type is FLOAT32
    batch, time, depth = x.shape
    hidden = None if is_float else per_tensor(1 / 128)
    cell = None if is_float else per_tensor(_CELL_SCALE)

    def gate(kind: str, width: int, gate_name: str) -> Value:
        w = weights(g.model.seed, f"{name}/{kind}_{gate_name}", (units, width), width, x.type, None)
        return g.constant(f"{name}/{kind}_{gate_name}", w)

    gates = ("input", "forget", "cell", "output")
    from_input = [gate("input_to", depth, gate_name) for gate_name in gates]
    from_state = [gate("recurrent_to", units, gate_name) for gate_name in gates]
    bias_type = FLOAT32 if is_float else TensorType.INT32
    biases = [
        g.constant(
            f"{name}/{gate_name}_bias",
            bias(g.model.seed, f"{name}/b_{gate_name}", units, bias_type, x.scale, weight.quantization),
        )
        for gate_name, weight in zip(gates, from_input, strict=True)
    ]
    states = [
        g.tensor(f"{name}/output_state", (batch, units), x.type, hidden, is_variable=True),
        g.tensor(f"{name}/cell_state", (batch, units), FLOAT32 if is_float else INT16, cell, is_variable=True),
    ]
    intermediates = [] if is_float else [_intermediate(g, f"{name}/gate_{n}", INT16, _GATE_SCALE) for n in range(4)]
    intermediates += [] if is_float else [_intermediate(g, f"{name}/hidden", INT8, 1 / 128)]
    y = g.tensor(name, (batch, time, units), x.type, hidden)
    inputs = [x, *from_input, *from_state, None, None, None, *biases, None, None, *states, None, None, None, None]
    options = {"fused_activation_function": ActivationFunctionType.TANH}
    g.operator(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        inputs,
        [y],
        "UnidirectionalSequenceLSTMOptions",
        options,
        version=1 if is_float else 3,
        intermediates=intermediates,
    )
    return y


def _intermediate(g: Graph, name: str, kind: TensorType, scale: float) -> Value:
    return g.tensor(name, (0,), kind, Quantization((scale,), (0,)))


def var_handle(g: Graph, shared_name: str) -> Value:
    """VAR_HANDLE: names a resource variable; each subgraph that uses the variable makes its own handle."""
    y = g.tensor(g.next_name("VAR_HANDLE"), (), TensorType.RESOURCE)
    g.operator("VAR_HANDLE", [], [y], "VarHandleOptions", {"container": "", "shared_name": shared_name})
    return y


def read_variable(g: Graph, handle: Value, like: Value) -> Value:
    y = g.tensor(g.next_name("READ_VARIABLE"), like.shape, like.type, like.quantization)
    g.operator("READ_VARIABLE", [handle], [y], "ReadVariableOptions")
    return y


def assign_variable(g: Graph, handle: Value, value: Value) -> None:
    g.operator("ASSIGN_VARIABLE", [handle, value], [], "AssignVariableOptions")


def call_once(g: Graph, initialiser: Graph) -> None:
    """CALL_ONCE: runs the initialiser's subgraph at the first Invoke only."""
    g.operator("CALL_ONCE", [], [], "CallOnceOptions", {"init_subgraph_index": initialiser.index})
