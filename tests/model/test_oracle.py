"""The support table against real TFLM: one-operator models of every type, run by the tflite-micro package.

What the checks let pass has to run, and what they refuse must not, but for the kinds that TFLM runs wrongly.
"""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from harness.model.builder import ModelBuilder, per_tensor
from harness.model.checks import check_model
from harness.model.finding import Severity
from harness.model.graph import Quantization, TensorType
from harness.model.reader import parse_model
from tests.patience import PATIENCE_S

pytest.importorskip("tflite_micro", reason="the tflite-micro package is for Linux x86-64 only")

F, I8, I16, I32, I64 = (TensorType[name] for name in ("FLOAT32", "INT8", "INT16", "INT32", "INT64"))
U8, BOOL = TensorType.UINT8, TensorType.BOOL
TYPES = [F, I8, I16, I32, I64, U8, BOOL, *(TensorType[n] for n in ("UINT32", "FLOAT16", "UINT16", "UINT64", "FLOAT64"))]
QUANTIZATION = {I8: per_tensor(1 / 32), I16: per_tensor(1 / 4096), U8: per_tensor(1 / 32, 128)}
FIXED_OUTPUTS: Mapping[str, Mapping[TensorType, Quantization]] = {
    "SOFTMAX": {I8: per_tensor(1 / 256, -128), I16: per_tensor(1 / 32768)},
    "LOGISTIC": {I8: per_tensor(1 / 256, -128), I16: per_tensor(1 / 32768)},
    "TANH": {I8: per_tensor(1 / 128), I16: per_tensor(1 / 32768)},
    "LOG_SOFTMAX": {I8: per_tensor(16 / 256, 127)},
}

#: Accepted by TFLM without an error, and wrong: (operator, input type). LOGICAL_* read any bytes as bool. GREATER on
#: INT16 uses scales that its Prepare does not set: 400/4096 > 90/1024 comes out false. QUANTIZE of INT32 without a
#: scale multiplies by 0.
WRONG_WITHOUT_AN_ERROR = {
    *(("LOGICAL_AND", kind) for kind in TYPES if kind is not BOOL),
    *(("LOGICAL_OR", kind) for kind in TYPES if kind is not BOOL),
    ("GREATER", I16),
    ("QUANTIZE", I32),
}


@dataclass(frozen=True)
class Case:
    """``inputs``: a type for a graph input of ``shape``, an array for a constant."""

    operator: str
    inputs: Sequence[TensorType | np.ndarray[Any, Any]]
    outputs: Sequence[TensorType]
    shape: tuple[int, ...] = (1, 4)
    output_shape: tuple[int, ...] | None = None
    options_name: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def kind(self) -> tuple[str, TensorType]:
        return self.operator, next((t for t in self.inputs if isinstance(t, TensorType)), F)

    def model(self) -> bytes:
        builder = ModelBuilder(seed=1)
        g = builder.graph
        values = []
        for number, entry in enumerate(self.inputs):
            if isinstance(entry, TensorType):
                values.append(g.input(self.shape, entry, QUANTIZATION.get(entry)))
            else:
                values.append(g.tensor(f"c{number}", entry.shape, I32, data=entry.astype(np.int32).tobytes()))
        known = FIXED_OUTPUTS.get(self.operator, QUANTIZATION)
        results = [
            g.tensor(f"y{number}", self.output_shape or self.shape, kind, known.get(kind, QUANTIZATION.get(kind)))
            for number, kind in enumerate(self.outputs)
        ]
        g.operator(self.operator, values, results, self.options_name, self.options if self.options_name else None)
        g.output(*results)
        return builder.finish()


def ints(*values: Any) -> np.ndarray[Any, Any]:
    return np.array(values)


UNARY = """ABS CEIL COS ELU EXP FLOOR HARD_SWISH LOG LOGICAL_NOT LOGISTIC LOG_SOFTMAX NEG RELU RELU6 ROUND RSQRT SIN
    SQRT SQUARE TANH ZEROS_LIKE RESHAPE DEQUANTIZE POW TILE"""
BINARY = (
    """ADD SUB MUL DIV FLOOR_DIV MAXIMUM MINIMUM FLOOR_MOD LOGICAL_AND LOGICAL_OR SQUARED_DIFFERENCE PRELU ADD_N POW"""
)
COMPARISONS = "EQUAL NOT_EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL"
REDUCTIONS = "MEAN SUM REDUCE_MAX REDUCE_MIN REDUCE_ALL REDUCE_PROD REDUCE_ANY"
POOLS = "MAX_POOL_2D AVERAGE_POOL_2D L2_POOL_2D"


def cases() -> Iterator[Case]:
    window = {"stride_w": 2, "stride_h": 2, "filter_width": 2, "filter_height": 2}
    corners = ints([0, 0], [1, 1])
    for t in TYPES:
        yield from (Case(name, [t], [t]) for name in UNARY.split())
        yield from (Case(name, [t, t], [t]) for name in BINARY.split())
        yield from (Case(name, [t, t], [BOOL]) for name in COMPARISONS.split())
        for name in REDUCTIONS.split():
            yield Case(name, [t, ints(1)], [t], (1, 4), (1, 1), "ReducerOptions", {"keep_dims": True})
        for name in POOLS.split():
            yield Case(name, [t], [t], (1, 2, 2, 1), (1, 1, 1, 1), "Pool2DOptions", window)
        yield from (Case("QUANTIZE", [t], [u]) for u in TYPES)
        yield from (Case("CAST", [t], [u], options_name="CastOptions") for u in TYPES)
        yield Case("LEAKY_RELU", [t], [t], options_name="LeakyReluOptions", options={"alpha": 0.1})
        yield Case("SHAPE", [t], [I32], (1, 4), (2,))
        yield Case("SOFTMAX", [t], [t], options_name="SoftmaxOptions", options={"beta": 1.0})
        yield Case("L2_NORMALIZATION", [t], [t], options_name="L2NormOptions")
        yield Case("CONCATENATION", [t, t], [t], (1, 4), (1, 8), "ConcatenationOptions", {"axis": 1})
        yield Case("PACK", [t, t], [t], (1, 4), (2, 1, 4), "PackOptions", {"axis": 0, "values_count": 2})
        yield Case("UNPACK", [t], [t], (1, 4), (4,), "UnpackOptions", {"axis": 0, "num": 1})
        yield Case("PAD", [t, corners], [t], (1, 4), (1, 6))
        yield Case("MIRROR_PAD", [t, corners], [t], (1, 4), (1, 6), "MirrorPadOptions")
        yield Case("TRANSPOSE", [t, ints(1, 0)], [t], (1, 4), (4, 1))
        yield Case("GATHER", [t, ints(0, 1)], [t], (1, 4), (1, 2), "GatherOptions", {"axis": 1})
        yield Case("GATHER_ND", [t, ints([0, 1])], [t], (1, 4), (1,))
        yield Case("SLICE", [t, ints(0, 0), ints(1, 2)], [t], (1, 4), (1, 2))
        yield Case("STRIDED_SLICE", [t, ints(0, 0), ints(1, 2), ints(1, 1)], [t], (1, 4), (1, 2), "StridedSliceOptions")
        yield Case("SPLIT", [ints(1), t], [t, t], (1, 4), (1, 2), "SplitOptions", {"num_splits": 2})
        yield Case("SPLIT_V", [t, ints(2, 2), ints(1)], [t, t], (1, 4), (1, 2), "SplitVOptions", {"num_splits": 2})
        yield Case("EXPAND_DIMS", [t, ints(0)], [t], (1, 4), (1, 1, 4))
        yield Case("SQUEEZE", [t], [t], (1, 4), (4,), "SqueezeOptions")
        yield Case("BROADCAST_TO", [t, ints(2, 4)], [t], (1, 4), (2, 4))
        yield Case("REVERSE_V2", [t, ints(1)], [t])
        yield Case("FILL", [ints(1, 4), t], [t], (), (1, 4))
        yield Case("CUMSUM", [t, np.array(1)], [t], options_name="CumsumOptions")
        yield Case("SELECT_V2", [BOOL, t, t], [t])
        yield Case("ARG_MAX", [t, ints(1)], [I32], (1, 4), (1,), "ArgMaxOptions", {"output_type": int(I32)})
        yield Case("BATCH_MATMUL", [t, t], [t], (4, 4), (4, 4), "BatchMatMulOptions")
        yield Case("DYNAMIC_UPDATE_SLICE", [t, t, ints(0, 0)], [t])
        yield Case("SPACE_TO_DEPTH", [t], [t], (1, 2, 2, 1), (1, 1, 1, 4), "SpaceToDepthOptions", {"block_size": 2})
        yield Case("DEPTH_TO_SPACE", [t], [t], (1, 1, 1, 4), (1, 2, 2, 1), "DepthToSpaceOptions", {"block_size": 2})
        zeros = ints([0, 0], [0, 0])
        yield Case("SPACE_TO_BATCH_ND", [t, ints(2, 2), zeros], [t], (1, 2, 2, 1), (4, 1, 1, 1))
        yield Case("BATCH_TO_SPACE_ND", [t, ints(2, 2), zeros], [t], (4, 1, 1, 1), (1, 2, 2, 1))
        for name, options in (
            ("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions"),
            ("RESIZE_BILINEAR", "ResizeBilinearOptions"),
        ):
            yield Case(name, [t, ints(4, 4)], [t], (1, 2, 2, 1), (1, 4, 4, 1), options)


#: Runs models from stdin, one after the other, and says how each ended. A crash of TFLM ends the process.
CHILD = """
import struct, sys
import numpy as np
from tflite_micro.python.tflite_micro import runtime
while size := sys.stdin.buffer.read(4):
    data = sys.stdin.buffer.read(struct.unpack("<I", size)[0])
    try:
        interpreter = runtime.Interpreter.from_bytes(data, arena_size=1 << 18)
        for index in range(3):
            try:
                detail = interpreter.get_input_details(index)
                interpreter.set_input(np.ones(detail["shape"], detail["dtype"]), index)
            except (IndexError, ValueError):
                break
        interpreter.invoke()
        print("ran", flush=True)
    except Exception as error:
        print("failed", flush=True)
"""


def run_all(models: Sequence[bytes]) -> list[str]:
    """``ran``, ``failed`` or ``crashed`` for each model."""
    results: list[str] = []
    while len(results) < len(models):
        rest = models[len(results) :]
        stream = b"".join(struct.pack("<I", len(data)) + data for data in rest)
        done = subprocess.run(
            [sys.executable, "-c", CHILD], input=stream, capture_output=True, timeout=PATIENCE_S, check=False
        )
        lines = done.stdout.decode().split()
        results += lines if len(lines) == len(rest) else [*lines, "crashed"]
    return results


def test_the_support_table_agrees_with_real_tflm() -> None:
    tried = list(cases())
    models = [case.model() for case in tried]
    let_pass_and_failed, refused_and_ran = [], set()
    for case, data, result in zip(tried, models, run_all(models), strict=True):
        refused = [f for f in check_model(parse_model(data)) if f.severity is Severity.REFUSED]
        if not refused and result != "ran":
            let_pass_and_failed.append((case, result))
        elif refused and result == "ran":
            refused_and_ran.add(case.kind)
    assert let_pass_and_failed == []
    assert refused_and_ran == WRONG_WITHOUT_AN_ERROR


def weighted(operator: str, kind: TensorType, bias: str) -> bytes:
    """One operator with weights of 1, its bias left out or absent (-1)."""
    builder = ModelBuilder(seed=1)
    g = builder.graph
    x = g.input((1, 4, 4, 4), kind, QUANTIZATION.get(kind))
    shape, out, options_name, options = {
        "CONV_2D": ((2, 1, 1, 4), (1, 4, 4, 2), "Conv2DOptions", {"stride_w": 1, "stride_h": 1}),
        "DEPTHWISE_CONV_2D": (
            (1, 1, 1, 4),
            (1, 4, 4, 4),
            "DepthwiseConv2DOptions",
            {"stride_w": 1, "stride_h": 1, "depth_multiplier": 1},
        ),
        "TRANSPOSE_CONV": ((2, 1, 1, 4), (1, 4, 4, 2), "TransposeConvOptions", {"stride_w": 1, "stride_h": 1}),
        "FULLY_CONNECTED": ((2, 4), (16, 2), "FullyConnectedOptions", {}),
    }[operator]
    ones = np.ones(shape, np.float32 if kind is F else np.int8)
    weights = g.tensor(
        "w", shape, F if kind is F else I8, None if kind is F else per_tensor(1 / 32), data=ones.tobytes()
    )
    y = g.tensor("y", out, kind, QUANTIZATION.get(kind))
    inputs = [x, weights] if operator != "TRANSPOSE_CONV" else [g.int32s("shape", out), weights, x]
    g.operator(operator, [*inputs, None] if bias == "absent" else inputs, [y], options_name, options)
    g.output(y)
    return builder.finish()


def test_where_a_bias_may_be_missing_is_what_real_tflm_survives() -> None:
    tried = [
        (operator, kind, bias)
        for operator in ("CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "FULLY_CONNECTED")
        for kind in (F, I8, I16)
        for bias in ("left out", "absent")
    ]
    models = [weighted(*case) for case in tried]
    ended = dict(zip(tried, run_all(models), strict=True))
    refused = {
        case
        for case, data in zip(tried, models, strict=True)
        if any(f.severity is Severity.REFUSED for f in check_model(parse_model(data)))
    }
    assert refused == {("DEPTHWISE_CONV_2D", kind, "absent") for kind in (F, I8, I16)}
    assert {case for case, result in ended.items() if result != "ran"} == refused
