"""UNIDIRECTIONAL_SEQUENCE_LSTM (kernels/unidirectional_sequence_lstm.cc, lstm_eval*.cc, cmsis_nn/ of the same name)."""

from __future__ import annotations

from harness.model.graph import TensorType
from harness.plan.kernels.registry import register
from harness.plan.node import TYPE_BYTES, LiveTensor, Node, type_name
from harness.plan.target import Kernels

_INT8, _INT16, _FLOAT = TensorType.INT8, TensorType.INT16, TensorType.FLOAT32
_INPUTS = 24
_HIDDEN_STATE, _CELL_STATE = 18, 19
#: (input weights, recurrent weights) of the forget, input, cell and output gate: the order of
#: PrepareGateParametersInteger.
_GATES = ((2, 6), (1, 5), (3, 7), (4, 8))


@register("UNIDIRECTIONAL_SEQUENCE_LSTM", init="OpDataLSTM")
def lstm(node: Node) -> None:
    tensors = _tensors(node)
    for index in range(4):
        _buffer(node, tensors, index)


@register(
    "UNIDIRECTIONAL_SEQUENCE_LSTM", init="cmsis_nn_unidirectional_sequence_lstm::OpData", kernels=Kernels.CMSIS_NN
)
def lstm_cmsis_nn(node: Node) -> None:
    tensors = _tensors(node)
    for index in (*range(1, 9), *range(12, 16)):
        tensor = tensors[index]
        node.ensure(tensor is not None and tensor.is_constant, f"IsConstantTensor(input {index}) was not true.")
    source, cell = _at(node, tensors, 0), _at(node, tensors, _CELL_STATE)
    buffers = 4
    if cell.type == _INT16 and source.type in (_INT8, _INT16):
        bias_bytes = 4 if source.type == _INT8 else 8
        state = _at(node, tensors, _HIDDEN_STATE).dims[1]
        for part in ("input", "recurrent"):
            for gate in ("input", "forget", "cell", "output"):
                node.persist(bias_bytes * state, f"{gate} gate's {part} kernel sums")
        buffers = 3
    for index in range(buffers):
        _buffer(node, tensors, index)


def _tensors(node: Node) -> list[LiveTensor | None]:
    """LstmTensors, ValidateTensorStatus and the gate parameters."""
    node.ensure_counts(inputs=_INPUTS, outputs=1)
    tensors = [node.optional_temp_input(index) for index in range(_INPUTS)]
    output = node.temp_output()
    source, hidden, cell = (_at(node, tensors, index) for index in (0, _HIDDEN_STATE, _CELL_STATE))
    for state in (hidden, cell):
        node.ensure(state.source.is_variable, "internal_tensors_[state]->is_variable was not true.")
    node.ensure_same_type(hidden, source)
    node.ensure_same_type(output, source)
    for required in (range(1, 9), range(12, 16)):
        first = _at(node, tensors, required[0])
        for index in required:
            node.ensure_same_type(_at(node, tensors, index), first)
    for index in (*range(9, 12), 16, 17, *range(20, 24)):
        node.ensure(tensors[index] is None, f"internal_tensors_[{index}] == nullptr was not true.")
    node.ensure(output.rank == 3 and source.rank == 3 and hidden.rank == 2, "input and output need three dimensions")
    cause = (
        f"Cell state type {type_name(cell.type)} ({int(cell.type)}) not supported. The quantized Unidirectional "
        "Sequence LSTM Op only support int16 cell state"
    )
    node.ensure(cell.type in (_FLOAT, _INT16), cause)
    if cell.type == _INT16:
        for pair in _GATES:
            for index in pair:
                channels = _at(node, tensors, index).quantized_channels
                if channels > 1:
                    node.persist(4 * channels, "per-channel multipliers")
                    node.persist(4 * channels, "per-channel shifts")
    return tensors


def _buffer(node: Node, tensors: list[LiveTensor | None], index: int) -> None:
    source, hidden, cell = (_at(node, tensors, index) for index in (0, _HIDDEN_STATE, _CELL_STATE))
    batch = source.dims[1] if node.option("time_major") else source.dims[0]
    node.scratch(batch * hidden.dims[1] * TYPE_BYTES[cell.type], f"gate buffer {index}")


def _at(node: Node, tensors: list[LiveTensor | None], index: int) -> LiveTensor:
    tensor = tensors[index]
    node.ensure(tensor is not None, f"internal_tensors_[{index}] != nullptr was not true.")
    assert tensor is not None
    return tensor
