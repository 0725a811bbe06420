"""UNIDIRECTIONAL_SEQUENCE_LSTM and SVDF (kernels/unidirectional_sequence_lstm.cc, lstm_eval*.cc, svdf*.cc, and
cmsis_nn/ of the same names)."""

from __future__ import annotations

from harness.model.graph import TensorType
from harness.plan.kernels import cmsis_nn
from harness.plan.kernels.registry import register
from harness.plan.node import Node
from harness.plan.target import Kernels
from harness.plan.tensor import TYPE_BYTES, LiveTensor, type_name

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
    _ensure_sizes(node, tensors, output)
    cause = (
        f"Cell state type {type_name(cell.type)} ({int(cell.type)}) not supported. The quantized Unidirectional "
        "Sequence LSTM Op only support int16 cell state"
    )
    node.ensure(cell.type in (_FLOAT, _INT16), cause)
    if cell.type == _INT16:
        for pair in _GATES:
            for index in pair:
                weights = _at(node, tensors, index)
                channels = weights.quantized_channels
                if channels > 1:
                    cause = f"per_channel_quantization_size != filter channels ({channels} != {weights.dims[0]})"
                    node.ensure(channels == weights.dims[0], cause)
                    node.persist(4 * channels, "per-channel multipliers")
                    node.persist(4 * channels, "per-channel shifts")
    return tensors


def _ensure_sizes(node: Node, tensors: list[LiveTensor | None], output: LiveTensor) -> None:
    """ValidateTensorSize, lstm_eval_common.cc."""
    source, hidden, cell = (_at(node, tensors, index) for index in (0, _HIDDEN_STATE, _CELL_STATE))
    batch = source.dims[1] if node.option("time_major") else source.dims[0]
    features, units = source.dims[2], hidden.dims[1]
    for indices, wanted in ((range(1, 5), (units, features)), (range(5, 9), (units, units)), (range(12, 16), (units,))):
        for index in indices:
            dims = _at(node, tensors, index).dims
            node.ensure(dims == wanted, f"tensor->dims of input {index} != {wanted} ({dims} != {wanted})")
    for state in (hidden, cell):
        cause = f"NumElements(state) != batch_size * state_dimension ({state.element_count} != {batch * units})"
        node.ensure(state.element_count == batch * units, cause)
    sequence = (*source.dims[:2], units)
    node.ensure(output.dims == sequence, f"OutputTensor()->dims != {sequence} ({output.dims} != {sequence})")


def _buffer(node: Node, tensors: list[LiveTensor | None], index: int) -> None:
    source, hidden, cell = (_at(node, tensors, index) for index in (0, _HIDDEN_STATE, _CELL_STATE))
    batch = source.dims[1] if node.option("time_major") else source.dims[0]
    node.scratch(batch * hidden.dims[1] * TYPE_BYTES[cell.type], f"gate buffer {index}")


def _at(node: Node, tensors: list[LiveTensor | None], index: int) -> LiveTensor:
    tensor = tensors[index]
    node.ensure(tensor is not None, f"internal_tensors_[{index}] != nullptr was not true.")
    assert tensor is not None
    return tensor


@register("SVDF", init="OpDataSvdf")
def svdf(node: Node) -> None:
    _svdf(node)


@register("SVDF", init="cmsis_nn_svdf::CmsisNnOpDataSvdf", kernels=Kernels.CMSIS_NN)
def svdf_cmsis_nn(node: Node) -> None:
    weights = _svdf(node)
    kernel_sums = cmsis_nn.svdf_s8(weights.dims[0], node.core) if weights.type == _INT8 else 0
    if kernel_sums:
        node.ensure(weights.is_constant, "IsConstantTensor(weights_feature) was not true.")
        node.persist(kernel_sums, "kernel sums")


def _svdf(node: Node) -> LiveTensor:
    """PrepareSvdf and CmsisNnPrepareSvdf. Returns the feature weights."""
    source, features, time = node.temp_input(0), node.temp_input(1), node.temp_input(2)
    bias = node.optional_temp_input(3)
    state = node.temp_input(4)
    node.ensure_type(source, _FLOAT, _INT8)
    node.ensure(source.rank == 2, f"NumDimensions(input) != 2 ({source.rank} != 2)")
    rank = node.option("rank", 1)
    filters = features.dims[0]
    node.ensure(rank > 0 and filters % rank == 0, f"num_filters % rank != 0 ({filters} % {rank})")
    units, batch = filters // max(rank, 1), source.dims[0]
    node.ensure_counts(outputs=1)
    output = node.temp_output()
    node.ensure(output.rank == 2, f"NumDimensions(output) != 2 ({output.rank} != 2)")
    node.ensure(output.dims[0] == batch, f"output->dims->data[0] != batch_size ({output.dims[0]} != {batch})")
    node.ensure(output.dims[1] == units, f"output->dims->data[1] != num_units ({output.dims[1]} != {units})")
    node.ensure(
        features.rank == 2 and features.dims[1] == source.dims[1], "weights_feature->dims->data[1] != input_size"
    )
    node.ensure(time.rank == 2 and time.dims[0] == filters, "weights_time->dims->data[0] != num_filters")
    wanted = (batch, time.dims[1] * filters)
    node.ensure(state.dims == wanted, f"activation_state->dims != {wanted} ({state.dims} != {wanted})")
    node.ensure(state.source.is_variable, "activation_state->is_variable != true (0 != 1)")
    node.ensure_counts(inputs=5)
    if bias is not None:
        node.ensure(bias.dims[0] == units, f"bias->dims->data[0] != num_units ({bias.dims[0]} != {units})")
        node.ensure_type(bias, TensorType.INT32 if source.type == _INT8 else _FLOAT)
    if source.type == _INT8:
        node.ensure_type(features, _INT8)
        node.ensure_type(time, _INT8, _INT16)
        node.ensure_type(state, _INT8, _INT16)
        node.ensure_type(output, _INT8)
        if bias is not None:
            close = abs(bias.scale - state.scale * time.scale) < 1e-5
            node.ensure(
                close, "std::abs(bias scale - activation_state scale * weights_time scale) < 1e-5 was not true."
            )
        node.scratch(4 * batch * filters, "filter results")
        node.scratch(4 * batch * units, "output accumulators")
    else:
        for tensor in (features, time, state, output):
            node.ensure_type(tensor, _FLOAT)
        node.scratch(4 * batch * filters, "filter results")
    return features
