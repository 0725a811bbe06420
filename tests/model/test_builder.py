"""The model builder: its files are accepted and computed alike by LiteRT and by real TFLM."""

from __future__ import annotations

import hashlib
import math
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflite

from harness.model.builder import EXAMPLES, ModelBuilder, Weights, chain, conv_tower, layers, per_tensor
from harness.model.builder.noise import noise, pack_int4
from harness.model.builder.random_models import random_model
from harness.model.checks import check_model
from harness.model.finding import Severity
from harness.model.graph import TensorType
from harness.model.reader import read_model
from tests.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
INVOCATIONS = 3  # state must agree over several
#: TFLM's 8-bit LSTM is its own arithmetic (kernels/lstm_eval.cc), not LiteRT's: one quantized step apart.
STEPS_APART = {"lstm_int8": 1}
#: ai-edge-litert (2.3.0) rounds one operator otherwise than tflite-runtime 2.14 and TFLM do, the 16-bit fully connected
#: layer: one step apart, which a softmax behind it can make a few. All else agrees to the bit.
STEPS_AFTER_16_BIT_DENSE = 8


def reference_interpreter(data: bytes, name: str) -> Any:
    """LiteRT with its reference kernels; they know no int4 weights, its optimised ones do."""
    try:
        from ai_edge_litert import interpreter as litert
    except ImportError:
        litert = pytest.importorskip("tflite_runtime.interpreter", reason="neither LiteRT package is installed")
    resolver = litert.OpResolverType.BUILTIN_REF
    if name == "int4_weights":
        resolver = litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    return litert.Interpreter(model_content=data, experimental_op_resolver_type=resolver)


def pseudo_random(shape: tuple[int, ...], dtype: Any, seed: str) -> np.ndarray[Any, Any]:
    raw = np.frombuffer(hashlib.shake_128(seed.encode()).digest(2 * math.prod(shape)), dtype=np.int16).reshape(shape)
    if dtype == np.float32:
        return (raw / 16384).astype(np.float32)
    return raw if dtype == np.int16 else (raw >> 8).astype(np.int8)


@pytest.mark.backend
@pytest.mark.parametrize("name", EXAMPLES)
def test_litert_and_tflm_compute_the_same(name: str) -> None:
    outputs = compute_alike(EXAMPLES[name](), name)
    assert len(set(outputs)) > 1, "the outputs do not depend on the inputs"


def has_16_bit_dense(data: bytes) -> bool:
    model = tflite.Model.GetRootAs(data)
    graph = model.Subgraphs(0)
    return any(
        model.OperatorCodes(operator.OpcodeIndex()).BuiltinCode() == tflite.BuiltinOperator.FULLY_CONNECTED
        and graph.Tensors(operator.Inputs(0)).Type() == tflite.TensorType.INT16
        for operator in map(graph.Operators, range(graph.OperatorsLength()))
    )


def compute_alike(data: bytes, name: str) -> list[bytes]:
    """Invokes both several times on the same inputs; the outputs that LiteRT gave."""
    runtime = pytest.importorskip(
        "tflite_micro.python.tflite_micro.runtime", reason="the tflite-micro wheel is Linux x86-64 only"
    )
    reference = reference_interpreter(data, name)
    reference.allocate_tensors()
    tflm = runtime.Interpreter.from_bytes(data, arena_size=1_000_000)
    allowed = STEPS_APART.get(name, 0)
    if "ai_edge_litert" in sys.modules and has_16_bit_dense(data):
        allowed = STEPS_AFTER_16_BIT_DENSE
    seen: list[bytes] = []
    for invocation in range(INVOCATIONS):
        for position, detail in enumerate(reference.get_input_details()):
            value = pseudo_random(tuple(detail["shape"]), detail["dtype"], f"{name}/{invocation}/{position}")
            reference.set_tensor(detail["index"], value)
            tflm.set_input(value, position)
        reference.invoke()
        tflm.invoke()
        for position, detail in enumerate(reference.get_output_details()):
            expected, actual = reference.get_tensor(detail["index"]), tflm.get_output(position)
            if detail["dtype"] == np.float32:
                np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)
            else:
                apart = np.abs(actual.astype(np.int32) - expected.astype(np.int32)).max()
                assert apart <= allowed
            seen.append(expected.tobytes())
    return seen


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_same_seed_gives_the_same_bytes(name: str) -> None:
    assert EXAMPLES[name]() == EXAMPLES[name]()


def test_bytes_do_not_depend_on_the_process() -> None:
    """A set or a hash in the way of the bytes would differ between interpreters with other hash seeds."""
    program = (
        "import hashlib; from harness.model.builder import EXAMPLES;"
        "print(hashlib.sha256(EXAMPLES['svdf_int8']()).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE_S,
        ).stdout
        for seed in ("1", "2")
    }
    assert digests == {hashlib.sha256(EXAMPLES["svdf_int8"]()).hexdigest() + "\n"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_buffer_starts_at_a_multiple_of_16(name: str) -> None:
    data = EXAMPLES[name]()
    model = tflite.Model.GetRootAs(data)
    misaligned = [i for i in range(model.BuffersLength()) if _buffer_offset(model, i) % 16]
    assert misaligned == []
    assert data[4:8] == b"TFL3"


def _buffer_offset(model: Any, index: int) -> int:
    """Where the data of a buffer starts in the file; 0 for an empty buffer."""
    table = model.Buffers(index)._tab
    field = table.Offset(4)
    return int(table.Vector(field)) if field else 0


def test_min_runtime_version_and_signature_are_written() -> None:
    model = tflite.Model.GetRootAs(EXAMPLES["two_inputs_int8"]())
    metadata = model.Metadata(0)
    assert metadata.Name() == b"min_runtime_version"
    assert model.Buffers(metadata.Buffer()).DataAsNumpy().tobytes() == b"1.5.0" + bytes(11)
    signature = model.SignatureDefs(0)
    assert signature.SignatureKey() == b"serving_default"
    assert [signature.Inputs(i).Name() for i in range(signature.InputsLength())] == [b"left", b"right"]


def test_convolutions_are_quantized_per_channel() -> None:
    model = tflite.Model.GetRootAs(EXAMPLES["ds_cnn_kws"]())
    graph = model.Subgraphs(0)
    weight = graph.Tensors(graph.Operators(1).Inputs(1)).Quantization()
    assert (weight.ScaleLength(), weight.QuantizedDimension()) == (64, 3)
    assert len({weight.Scale(i) for i in range(64)}) == 5


def test_a_channel_bias_has_scale_input_times_weight() -> None:
    model = tflite.Model.GetRootAs(EXAMPLES["residual_int8"]())
    graph = model.Subgraphs(0)
    first = graph.Operators(0)
    tensors = [graph.Tensors(first.Inputs(i)).Quantization() for i in range(3)]
    expected = [np.float32(tensors[0].Scale(0) * tensors[1].Scale(i)) for i in range(8)]
    assert [np.float32(tensors[2].Scale(i)) for i in range(8)] == expected


def test_equal_constants_share_a_buffer() -> None:
    model = ModelBuilder()
    g = model.graph
    x = g.input((1, 4), TensorType.FLOAT32)
    for _ in range(3):
        x = layers.reshape(g, x, (1, 4))
    g.output(x)
    assert tflite.Model.GetRootAs(model.finish()).BuffersLength() == 3  # empty, min_runtime_version, shape


def test_int4_packs_the_first_value_in_the_low_half() -> None:
    assert pack_int4(np.asarray([1, -1, 7], dtype=np.int8)) == bytes([0xF1, 0x07])


def test_noise_is_fixed_for_ever() -> None:
    assert noise(1, "w", 6).tolist() == [int(b) for b in np.frombuffer(hashlib.shake_128(b"1/w").digest(6), np.int8)]
    assert noise(0, "x", 100_000).min() == -127


def test_an_unknown_operator_becomes_a_custom_one() -> None:
    model = ModelBuilder()
    g = model.graph
    x = g.input((1, 4), TensorType.FLOAT32)
    y = g.tensor("y", (1, 4), TensorType.FLOAT32)
    g.operator("MyOp", [x, None], [y], custom_options=b"abc")
    g.output(y)
    parsed = tflite.Model.GetRootAs(model.finish())
    assert (parsed.OperatorCodes(0).CustomCode(), parsed.OperatorCodes(0).BuiltinCode()) == (b"MyOp", 32)
    operator = parsed.Subgraphs(0).Operators(0)
    assert operator.InputsAsNumpy().tolist() == [0, -1]
    assert operator.CustomOptionsAsNumpy().tobytes() == b"abc"


def test_an_option_that_the_schema_does_not_know_is_refused() -> None:
    model = ModelBuilder()
    g = model.graph
    x = g.input((1, 4), TensorType.FLOAT32)
    g.operator("SOFTMAX", [x], [x], "SoftmaxOptions", {"gamma": 1.0})
    with pytest.raises(ValueError, match="the schema has no SoftmaxOptionsAddGamma"):
        model.finish()


def test_concatenation_refuses_unlike_scales() -> None:
    g = ModelBuilder().graph
    a = g.input((1, 4), TensorType.INT8, per_tensor(0.5))
    b = g.input((1, 4), TensorType.INT8, per_tensor(0.25))
    with pytest.raises(ValueError, match="must be quantized alike"):
        layers.concatenation(g, [a, b], 1)


def test_a_scalar_constant_has_rank_0() -> None:
    model = ModelBuilder()
    scalar = model.graph.constant("two", Weights(np.float32(2).reshape(()), TensorType.FLOAT32, None))
    assert (scalar.shape, scalar.element_count) == ((), 1)
    graph = tflite.Model.GetRootAs(model.finish()).Subgraphs(0)
    assert (graph.Tensors(0).ShapeLength(), graph.Tensors(0).HasRank()) == (0, True)


def test_chain_and_tower_have_the_sizes_that_benchmarks_count_on() -> None:
    long_chain = tflite.Model.GetRootAs(chain(2_000))
    assert long_chain.Subgraphs(0).OperatorsLength() == 2_000
    assert 4_000_000 < len(conv_tower()) < 4_200_000


def test_identifier_and_root_offset() -> None:
    data = EXAMPLES["hello_float"]()
    (root,) = struct.unpack_from("<I", data)
    assert 8 <= root < len(data)


def test_the_shipped_examples_are_what_the_builder_makes() -> None:
    """``python examples/regenerate.py`` after a wanted change of the builder."""
    source = (ROOT / "examples" / "regenerate.py").read_text(encoding="utf-8")
    scope: dict[str, Any] = {"__name__": "regenerate"}
    exec(compile(source, "regenerate.py", "exec"), scope)
    files: dict[str, str] = scope["FILES"]
    assert sorted(path.name for path in (ROOT / "examples").glob("*.tflite")) == sorted(files)
    stale = [file for file, name in files.items() if (ROOT / "examples" / file).read_bytes() != EXAMPLES[name]()]
    assert stale == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_pre_flight_check_has_nothing_against_any_example(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.tflite"
    path.write_bytes(EXAMPLES[name]())
    findings = check_model(read_model(path))
    assert [finding for finding in findings if finding.severity is not Severity.INFO] == []


@pytest.mark.backend
@pytest.mark.parametrize("seed", range(12))
def test_litert_and_tflm_compute_random_models_alike(seed: int) -> None:
    compute_alike(random_model(seed), f"random {seed}")


def test_random_models_differ_and_repeat() -> None:
    files = [random_model(seed) for seed in range(30)]
    assert len(set(files)) == 30
    assert files == [random_model(seed) for seed in range(30)]
