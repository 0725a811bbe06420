"""Several models in one firmware with one arena, on the stand-in TFLM: what the device does with them."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator

import pytest

from harness.device.client import UnsupportedError
from harness.errors import UsageError
from harness.firmware.config import Interpreter
from harness.model.builder import ModelBuilder, layers
from harness.model.graph import Model, TensorType, joint_sha256
from harness.model.reader import parse_model
from harness.wire import messages as wire
from harness.wire.generator import digest, generate_input
from tests.firmware.conftest import Builder, small_model
from tests.firmware.test_on_twin import Bench, expected_output, soon

needs_twin = pytest.mark.skipif(
    importlib.util.find_spec("unicorn") is None or sys.platform == "win32",
    reason="a twin needs unicorn, and a pseudo-terminal",
)
#: The stand-in's rules: heads 3 * 64 and 4 * 64, tails 256 + 16 per operator, 24 bytes for each of 7 and 10 tensors.
USED = 4 * 64 + (256 + 2 * 16) + (256 + 3 * 16)
MINIMUM = USED + 24 * (7 + 10)


def branches() -> Model:
    """Two inputs and two outputs."""
    builder = ModelBuilder(seed=2, description="two branches")
    graph = builder.graph
    for _ in range(2):
        graph.output(layers.fully_connected(graph, graph.input((1, 64), TensorType.INT8), 64))
    return parse_model(builder.finish(), "branches.tflite")


@pytest.fixture
def pair(build_fake: Builder) -> Iterator[Bench]:
    image = build_fake("nucleo-f446re", small_model(depth=2), others=[small_model("another", depth=3)])
    bench = Bench(image, "nucleo-f446re")
    yield bench
    bench.close()


@needs_twin
def test_the_heads_lie_over_one_another_and_the_tails_add_up(pair: Bench) -> None:
    hello = pair.boot()
    models = [small_model(depth=2), small_model("another", depth=3)]
    assert hello.model_sha256.hex() == joint_sha256(models) == pair.image.model_sha256
    assert (hello.input_count, hello.output_count) == (2, 2)
    report = pair.trial(MINIMUM)
    assert (report.status, report.used_bytes, report.guard) == (wire.TrialStatus.OK, USED, wire.GuardState.INTACT)
    outputs = [expected_output(generate_input(7, index, 9, 64)) for index in range(2)]
    assert outputs[0] != outputs[1]
    assert report.output_digest == digest(*outputs)
    pair.boot()
    assert pair.trial(MINIMUM - 1).status is wire.TrialStatus.ALLOC_FAILED


@needs_twin
def test_each_models_outputs_can_be_read_though_they_share_their_bytes(pair: Bench) -> None:
    pair.boot()
    pair.trial(MINIMUM)
    outputs = [expected_output(generate_input(7, index, 9, 64)) for index in range(2)]
    for index in (1, 0, 1, 0):
        assert pair.device.read_object(wire.ReadObject.OUTPUT, index, 64, soon()) == outputs[index]


@needs_twin
def test_inputs_are_numbered_through_the_models(build_fake: Builder) -> None:
    b = Bench(build_fake("nucleo-f446re", branches(), others=[small_model()]), "nucleo-f446re")
    try:
        hello = b.boot()
        assert (hello.input_count, hello.output_count) == (3, 3)
        for index, value in enumerate((3, 4, 5)):
            b.device.set_input(wire.SetInput(index, wire.InputKind.PATTERN, value, 1), soon())
        report = b.device.trial(16384, soon())
        assert not hello.can(wire.Capability.OPERATOR_DIGESTS)
        with pytest.raises(UnsupportedError):
            b.device.operator_digests(soon())
        outputs = (expected_output(bytes([value]) * 64) for value in (3, 4, 5))
        assert report.output_digest == digest(*outputs)
    finally:
        b.close()


def test_preserve_all_is_refused_before_anything_is_compiled(build_fake: Builder) -> None:
    with pytest.raises(UsageError, match="linear planner"):
        build_fake("nucleo-f446re", others=[small_model("other")], interpreter=Interpreter.PRESERVE_ALL)


def test_the_digest_of_several_models_is_that_of_their_digests_and_depends_on_the_order() -> None:
    one, other = small_model("one"), small_model("other")
    assert joint_sha256([one]) == one.sha256
    assert joint_sha256([one, other]) != joint_sha256([other, one])
