"""The offline plan of a model, taken out."""

from __future__ import annotations

from harness.model.builder import ModelBuilder
from harness.model.graph import TensorType
from harness.model.reader import parse_model
from harness.plan.offline import offline_offsets, without_offline_plan
from tests.firmware.offline import overwritten_input, placed


def test_without_its_plan_a_model_is_the_same_but_for_the_offsets() -> None:
    model = parse_model(overwritten_input(), "m.tflite")
    offsets = offline_offsets(model)
    assert offsets is not None and max(offsets) == 192
    bare = without_offline_plan(model)
    assert offline_offsets(bare) == [-1] * len(offsets)
    assert (bare.subgraphs, bare.metadata, bare.path, bare.size_bytes) == (
        model.subgraphs,
        model.metadata,
        "m.tflite",
        model.size_bytes,
    )
    changed = sum(one != other for one, other in zip(model.data, bare.data, strict=True))
    assert 0 < changed <= 4 * len(offsets)


def test_a_model_without_a_plan_or_with_one_that_places_nothing_is_left_as_it_is() -> None:
    for with_plan in (False, True):
        builder = ModelBuilder()
        builder.graph.output(builder.graph.input((1, 4), TensorType.INT8))
        model = parse_model(placed(builder, {}) if with_plan else builder.finish())
        assert without_offline_plan(model) is model
