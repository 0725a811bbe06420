"""Custom operators that TFLM registers itself, except Signal's: detection post-processing, DECODE, Ethos-U
(kernels/detection_postprocess.cc, decode*.cc, ethos_u/ethosu.cc)."""

from __future__ import annotations

from harness.plan.kernels.flexbuffer import custom_options
from harness.plan.kernels.registry import register
from harness.plan.node import Node
from harness.plan.tensor import LiveTensor

#: decode_state.h: bytes 0 and 1 of the ancillary tensor.
_DECODE_STATES = {0: "DecodeStateLut", 1: "DecodeStateHuffman", 2: "DecodeStatePrune"}


@register("TFLite_Detection_PostProcess", init="detection_postprocess::OpData", custom=True)
def detection_postprocess(node: Node) -> None:
    options = custom_options(node)
    node.ensure_counts(inputs=3)
    boxes, classes, anchors = (node.temp_input(index) for index in range(3))
    node.ensure(boxes.rank == 3, f"NumDimensions(input_box_encodings) != 3 ({boxes.rank} != 3)")
    node.ensure(classes.rank == 3, f"NumDimensions(input_class_predictions) != 3 ({classes.rank} != 3)")
    node.ensure(anchors.rank == 2, f"NumDimensions(input_anchors) != 2 ({anchors.rank} != 2)")
    node.ensure_counts(outputs=4)
    count = boxes.dims[1]
    detections, class_count = options.integer("max_detections"), options.integer("num_classes")
    node.scratch(count, "active candidates")
    node.scratch(16 * count, "decoded boxes")
    node.scratch(4 * classes.dims[1] * classes.dims[2], "scores")
    node.scratch(4 * count, "score buffer")
    node.scratch(4 * count, "kept scores")
    node.scratch(4 * detections * count, "scores after suppression")
    node.scratch(4 * detections * count, "sorted values")
    node.scratch(4 * count, "kept indices")
    node.scratch(4 * detections * count, "sorted indices")
    node.scratch(4 * max(class_count, detections) * count, "index buffer")
    node.scratch(4 * min(count, detections) * count, "selected")


@register("TFLM_DECODE", custom=True)
def decode(node: Node) -> None:
    """Without alternate decompression memory: the decoded tensors are planned like any other."""
    node.ensure(node.output_count > 0, "num_outputs > 0 was not true.")
    node.ensure(node.input_count == 2 * node.output_count, "num_inputs != num_outputs * 2")
    node.persist(node.abi.pointer_bytes * node.output_count, "decode states")
    for index in range(node.output_count):
        encoded, ancillary = node.temp_input(2 * index), node.temp_input(2 * index + 1)
        output = node.temp_output(index)
        node.ensure(encoded.is_constant, "IsConstantTensor(input) was not true.")
        node.ensure(ancillary.is_constant, "IsConstantTensor(ancillary) was not true.")
        header = node.preparation.model.buffer_data(ancillary.source.buffer)
        node.ensure(len(header) >= 16 and header[1] == 1, f"version {header[1] if len(header) > 1 else 0} != 1")
        state = _DECODE_STATES.get(header[0])
        node.ensure(state is not None, f"unsupported decode type {header[0]}")
        if state is not None:
            node.persist_struct(state, still_read=True)
        if state == "DecodeStatePrune":
            _prune_zero_points(node, output)


def _prune_zero_points(node: Node, output: LiveTensor) -> None:
    """DecodeStatePrune::Setup keeps the zero points of a per-channel tensor, unless all are 0."""
    quantization = output.source.quantization
    zero_points = quantization.zero_points if quantization else None
    if output.quantized_channels > 1 and zero_points and any(zero_points):
        node.persist(4 * output.quantized_channels, "zero points")


def _ethos_u_init(node: Node) -> None:
    node.persist(3 * node.abi.size("int"), "OpData")


@register("ethos-u", init=_ethos_u_init, custom=True)
def ethos_u(node: Node) -> None:
    node.doubt(
        "the Ethos-U driver and its command stream decide what else is needed; the default build has no such kernel"
    )
    addresses = node.input_count + node.output_count
    node.ensure(node.input_count > 0, "node->inputs->size > 0 was not true.")
    node.scratch(8 * addresses, "base addresses")
    node.scratch(node.abi.size("size_t") * addresses, "base address sizes")
    node.temp_input(0)
