"""A model with one operator for each operator (and type) that the example models do not hold, made by the builder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from flatbuffers import flexbuffers

from harness.model.builder.graph import ModelBuilder, Value, per_tensor
from harness.model.graph import Quantization, TensorType

INT8, INT16, INT32, INT64 = TensorType.INT8, TensorType.INT16, TensorType.INT32, TensorType.INT64
UINT32, UINT64, FLOAT, BOOL = TensorType.UINT32, TensorType.UINT64, TensorType.FLOAT32, TensorType.BOOL
Shape = Sequence[int]


def _quantization(kind: TensorType) -> Quantization | None:
    return {INT8: per_tensor(1 / 32), INT16: per_tensor(4 / 32768)}.get(kind)


def one(
    name: str,
    inputs: Sequence[tuple[TensorType, Shape]],
    outputs: Sequence[tuple[TensorType, Shape]],
    constants: Sequence[Sequence[int]] = (),
    options: tuple[str, Mapping[str, Any]] | None = None,
    custom: Mapping[str, Any] | None = None,
) -> bytes:
    """``inputs`` become graph inputs, ``constants`` int32 vectors after them, ``outputs`` graph outputs."""
    model = ModelBuilder()
    graph = model.graph
    values: list[Value | None] = [graph.input(shape, kind) for kind, shape in inputs]
    values += [graph.int32s(f"constant{index}", values_) for index, values_ in enumerate(constants)]
    results = [
        graph.tensor(f"out{index}", shape, kind, _quantization(kind)) for index, (kind, shape) in enumerate(outputs)
    ]
    graph.operator(
        name,
        values,
        results,
        *(options or ("", None)),
        custom_options=bytes(flexbuffers.Dumps(dict(custom))) if custom is not None else b"",
    )
    graph.output(*results)
    return model.finish()


def fill() -> bytes:
    model = ModelBuilder()
    graph = model.graph
    value = graph.input((), FLOAT)
    output = graph.tensor("out", (2, 3), FLOAT)
    graph.operator("FILL", [graph.int32s("dims", (2, 3)), value], [output])
    graph.output(output)
    return model.finish()


def detection(boxes: int = 8, classes: int = 3, detections: int = 4) -> bytes:
    options = {
        "max_detections": detections,
        "max_classes_per_detection": 1,
        "detections_per_class": 1,
        "use_regular_nms": False,
        "nms_score_threshold": 0.1,
        "nms_iou_threshold": 0.5,
        "num_classes": classes,
        "y_scale": 10.0,
        "x_scale": 10.0,
        "h_scale": 5.0,
        "w_scale": 5.0,
    }
    inputs = [(FLOAT, (1, boxes, 4)), (FLOAT, (1, boxes, classes)), (FLOAT, (boxes, 4))]
    outputs = [(FLOAT, (1, detections, 4)), (FLOAT, (1, detections)), (FLOAT, (1, detections)), (FLOAT, (1,))]
    return one("TFLite_Detection_PostProcess", inputs, outputs, custom=options)


def decode_lut() -> bytes:
    """DECODE of eight 4-bit indices with a table of sixteen values (signal: decode_state_lut.cc, version 1)."""
    model = ModelBuilder()
    graph = model.graph
    source = graph.input((8,), INT8)
    header = bytes([0, 1, 0, 0, 1, 4, 16, *([0] * 9)])
    encoded = graph.tensor("encoded", (4,), TensorType.UINT8, data=bytes([0x01, 0x23, 0x45, 0x67]))
    ancillary = graph.tensor("ancillary", (32,), TensorType.UINT8, data=header + bytes(range(16)))
    decoded = graph.tensor("decoded", (8,), INT8, per_tensor(1 / 32))
    graph.operator("TFLM_DECODE", [encoded, ancillary], [decoded])
    total = graph.tensor("total", (8,), INT8, per_tensor(1 / 16))
    graph.operator("ADD", [source, decoded], [total], "AddOptions", {})
    graph.output(total)
    return model.finish()


def dead_tensors(count: int) -> bytes:
    """Tensors that no operator touches: alive together, all the time."""
    model = ModelBuilder()
    graph = model.graph
    source = graph.input((4,), FLOAT)
    for index in range(count):
        graph.tensor(f"dead{index}", (index + 1,), FLOAT)
    output = graph.tensor("out", (4,), FLOAT)
    graph.operator("NEG", [source], [output], "NegOptions", {})
    graph.output(output)
    return model.finish()


def reshape_with_open_dimension() -> bytes:
    model = ModelBuilder()
    graph = model.graph
    source = graph.input((2, 6), FLOAT)
    output = graph.tensor("out", (-1, 4), FLOAT)
    graph.operator("RESHAPE", [source, graph.int32s("shape", (-1, 4))], [output], "ReshapeOptions", {})
    graph.output(output)
    return model.finish()


def per_channel_fully_connected(kind: TensorType) -> bytes:
    model = ModelBuilder()
    graph = model.graph
    source = graph.input((1, 4), kind)
    scales = Quantization(tuple(1 / 64 for _ in range(6)), (0,) * 6, 0)
    weights = graph.tensor("weights", (6, 4), INT8, scales, data=np.ones((6, 4), np.int8).tobytes())
    output = graph.tensor("out", (1, 6), kind, _quantization(kind))
    graph.operator("FULLY_CONNECTED", [source, weights, None], [output], "FullyConnectedOptions", {})
    graph.output(output)
    return model.finish()


_F1, _F2, _F4 = (FLOAT, (4,)), (FLOAT, (2, 4)), (FLOAT, (1, 4, 4, 2))
_B = (BOOL, (4,))

ONE_OPERATOR: dict[str, Callable[[], bytes]] = {
    **{
        f"{name}_float": lambda name=name: one(name, [_F1, _F1], [_B])
        for name in ("GREATER", "GREATER_EQUAL", "LESS_EQUAL", "NOT_EQUAL")
    },
    **{
        f"{name}_int8": lambda name=name: one(name, [(INT8, (4,)), (INT8, (4,))], [_B])
        for name in ("EQUAL", "LESS", "GREATER")
    },
    **{f"{name}_float": lambda name=name: one(name, [_F1], [_F1]) for name in ("CEIL", "LOG", "ROUND", "COS", "SIN")},
    **{f"{name}_float": lambda name=name: one(name, [_F2, _F2], [_F2]) for name in ("FLOOR_DIV", "FLOOR_MOD")},
    **{
        f"{name}_int16": lambda name=name: one(name, [(INT16, (1, 8))], [(INT16, (1, 8))])
        for name in ("RELU", "LEAKY_RELU")
    },
    "LOGICAL_AND": lambda: one("LOGICAL_AND", [_B, _B], [_B]),
    "LOGICAL_NOT": lambda: one("LOGICAL_NOT", [_B], [_B]),
    "ZEROS_LIKE": lambda: one("ZEROS_LIKE", [_F2], [_F2]),
    "CAST": lambda: one("CAST", [(INT8, (4,))], [_F1], options=("CastOptions", {})),
    "ARG_MIN": lambda: one("ARG_MIN", [_F2], [(INT32, (2,))], [[1]], ("ArgMinOptions", {"outputType": 2})),
    "L2_NORMALIZATION": lambda: one("L2_NORMALIZATION", [_F2], [_F2], options=("L2NormOptions", {})),
    "REDUCE_MIN": lambda: one("REDUCE_MIN", [_F2], [(FLOAT, (2,))], [[1]], ("ReducerOptions", {"keepDims": False})),
    "REDUCE_MAX_int8": lambda: one("REDUCE_MAX", [(INT8, (2, 4))], [(INT8, (2,))], [[1]], ("ReducerOptions", {})),
    "MEAN_int16": lambda: one("MEAN", [(INT16, (2, 4))], [(INT16, (2,))], [[1]], ("ReducerOptions", {})),
    "PADV2": lambda: padv2(),
    "BATCH_TO_SPACE_ND": lambda: one(
        "BATCH_TO_SPACE_ND", [(FLOAT, (4, 2, 2, 1))], [(FLOAT, (1, 4, 4, 1))], [[2, 2], [[0, 0], [0, 0]]]
    ),
    "BROADCAST_ARGS": lambda: one("BROADCAST_ARGS", [(INT32, (2,)), (INT32, (2,))], [(INT32, (2,))]),
    "DYNAMIC_UPDATE_SLICE": lambda: one(
        "DYNAMIC_UPDATE_SLICE", [(FLOAT, (4, 4)), (FLOAT, (2, 2)), (INT32, (2,))], [(FLOAT, (4, 4))]
    ),
    "FILL": fill,
    "RESIZE_NEAREST_NEIGHBOR": lambda: one(
        "RESIZE_NEAREST_NEIGHBOR", [_F4], [(FLOAT, (1, 8, 8, 2))], [[8, 8]], ("ResizeNearestNeighborOptions", {})
    ),
    "GATHER_ND": lambda: one("GATHER_ND", [_F2], [(FLOAT, (2, 4))], [[[0], [1]]]),
    "SPLIT_V": lambda: one(
        "SPLIT_V",
        [(FLOAT, (2, 4))],
        [(FLOAT, (2, 1)), (FLOAT, (2, 3))],
        [[1, 3], [1]],
        ("SplitVOptions", {"numSplits": 2}),
    ),
    "BATCH_MATMUL_float": lambda: one(
        "BATCH_MATMUL", [(FLOAT, (2, 3)), (FLOAT, (3, 4))], [(FLOAT, (2, 4))], options=("BatchMatMulOptions", {})
    ),
    "SOFTMAX_int16": lambda: softmax_int16(),
    "RESHAPE_open": reshape_with_open_dimension,
    "FULLY_CONNECTED_per_channel_int8": lambda: per_channel_fully_connected(INT8),
    "FULLY_CONNECTED_per_channel_int16": lambda: per_channel_fully_connected(INT16),
    "CIRCULAR_BUFFER": lambda: one(
        "CIRCULAR_BUFFER", [(INT8, (1, 1, 1, 4))], [(INT8, (1, 5, 1, 4))], custom={"cycles_max": 1}
    ),
    "TFLite_Detection_PostProcess": detection,
    "TFLM_DECODE": decode_lut,
    "dead_tensors": lambda: dead_tensors(12),
    "SignalDelay": lambda: one("SignalDelay", [(INT16, (2, 8))], [(INT16, (2, 8))], custom={"delay_length": 3}),
    "SignalFramer": lambda: one(
        "SignalFramer",
        [(INT16, (8,))],
        [(INT16, (4, 5)), (BOOL, ())],
        custom={"frame_size": 5, "frame_step": 2, "prefill": False},
    ),
    "SignalOverlapAdd": lambda: one(
        "SignalOverlapAdd", [(INT16, (2, 8))], [(INT16, (8,))], custom={"T": int(INT16), "frame_step": 4}
    ),
    "SignalStacker": lambda: one(
        "SignalStacker",
        [(INT16, (4,))],
        [(INT16, (12,)), (BOOL, ())],
        custom={"num_channels": 4, "stacker_left_context": 1, "stacker_right_context": 1, "stacker_step": 1},
    ),
    **{
        f"SignalRfft_{kind.name}": lambda kind=kind: one(
            "SignalRfft", [(kind, (32,))], [(kind, (34,))], custom={"T": int(kind), "fft_length": 32}
        )
        for kind in (INT16, INT32, FLOAT)
    },
    **{
        f"SignalIrfft_{kind.name}": lambda kind=kind: one(
            "SignalIrfft", [(kind, (34,))], [(kind, (32,))], custom={"T": int(kind), "fft_length": 32}
        )
        for kind in (INT16, INT32, FLOAT)
    },
}


def padv2() -> bytes:
    model = ModelBuilder()
    graph = model.graph
    source = graph.input((2, 2), FLOAT)
    value = graph.tensor("value", (1,), FLOAT, data=np.float32(1).tobytes())
    output = graph.tensor("out", (4, 3), FLOAT)
    graph.operator("PADV2", [source, graph.int32s("paddings", [[1, 1], [0, 1]]), value], [output])
    graph.output(output)
    return model.finish()


def softmax_int16() -> bytes:
    model = ModelBuilder()
    graph = model.graph
    source = graph.input((1, 8), INT16)
    output = graph.tensor("out", (1, 8), INT16, per_tensor(1 / 32768))
    graph.operator("SOFTMAX", [source], [output], "SoftmaxOptions", {"beta": 1.0})
    graph.output(output)
    return model.finish()
