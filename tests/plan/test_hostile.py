"""Damaged and hostile models: a plan ends in numbers that hold, or in an error of the tool, never in anything else."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import HarnessError, UnfitModelError
from harness.model.builder import EXAMPLES
from harness.model.builder.random_models import random_model
from harness.model.graph import Model
from harness.model.reader import parse_model
from harness.model.realign import with_metadata
from harness.plan.arena import plan_arena
from harness.plan.better import plan_offline
from harness.plan.overview import overview
from harness.plan.target import PlanTarget, target_for
from harness.report.plan_report import plan_blocks
from harness.shapes import dynamic_inputs
from harness.whatif.answer import Answer
from tests.examples import examples

TARGETS = [
    target_for("cortex-m4"),
    target_for("host"),
    target_for("cortex-m55", interpreter="preserve_all"),
    target_for("cortex-m0", kernels="reference"),
]
NAMES = [
    "hello_int8",
    "residual_int8",
    "if_greater",
    "resource_counter_int8",
    "lstm_int8",
    "while_doubling",
    "random_3",
    "random_8",
]


@cache
def source(name: str) -> bytes:
    return random_model(int(name[7:])) if name.startswith("random_") else EXAMPLES[name]()


def with_dims(model: Model, operator: int, position: int, dims: tuple[int, ...]) -> Model:
    """The model with other dimensions on one input of one operator."""
    main = model.subgraphs[0]
    index = main.operators[operator].inputs[position]
    tensors = tuple(replace(t, shape=dims) if t.index == index else t for t in main.tensors)
    return replace(model, subgraphs=(replace(main, tensors=tensors), *model.subgraphs[1:]))


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: f"{target.core}-{target.interpreter.value}")
def test_a_model_without_subgraphs_is_refused(target: PlanTarget) -> None:
    empty = replace(parse_model(source("hello_int8")), subgraphs=())
    assert dynamic_inputs(empty) == []
    with pytest.raises(UnfitModelError, match="no subgraph"):
        plan_arena(empty, target)


@pytest.mark.parametrize("dims", [(), (8,), (-8, 3, 3, 3), (2**29, 1, 1, 1), (8, 0, 0, 0)])
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: f"{target.core}-{target.interpreter.value}")
def test_weights_of_impossible_shapes_are_refused_or_planned_soundly(target: PlanTarget, dims: tuple[int, ...]) -> None:
    model = with_dims(parse_model(source("residual_int8")), 0, 1, dims)
    try:
        plan = plan_arena(model, target)
    except UnfitModelError as error:
        assert error.code.startswith("model.")
    else:
        assert 0 < plan.tail_bytes <= plan.used_bytes
        assert plan.min_exact_bytes >= plan.tail_bytes


mutations = st.lists(
    st.tuples(st.floats(0, 1, exclude_max=True), st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF]), st.booleans()),
    min_size=1,
    max_size=6,
)


@given(st.sampled_from(NAMES), mutations, st.sampled_from(TARGETS))
@examples(300)
def test_mutated_models_end_in_a_plan_or_in_an_error_of_the_tool(
    name: str, changes: list[tuple[float, int, bool]], target: PlanTarget
) -> None:
    data = bytearray(source(name))
    for where, value, wide in changes:
        at = int(where * len(data))
        if wide:
            at -= at % 4
            data[at : at + 4] = bytes([value]) * 4
        else:
            data[at] = value
    try:
        model = parse_model(bytes(data), "mutant")
        plan = plan_arena(model, target)
        page = overview(model, plan)
        assert sum(region.size_bytes for region in page.regions) == plan.used_bytes
        assert max(stage.needed_bytes for stage in page.stages) == plan.min_exact_bytes
        answer = Answer(page)
        json.dumps(answer.to_dict())
        assert list(plan_blocks(answer, 80))
    except HarnessError as error:
        assert error.message


@given(st.sampled_from(NAMES), st.binary(max_size=200))
@examples(30)
def test_metadata_is_put_into_any_model(name: str, payload: bytes) -> None:
    model = parse_model(source(name))
    copy = parse_model(with_metadata(model, "note", payload))
    assert copy.subgraphs == model.subgraphs
    assert bytes(copy.buffer_data(copy.metadata[-1].buffer)) == payload
    again = parse_model(with_metadata(copy, "note", b"x"))
    assert [entry.name for entry in again.metadata].count("note") == 1


def test_a_scale_that_is_no_number_does_not_stop_the_writer() -> None:
    model = parse_model(source("residual_int8"))
    scale = model.subgraphs[0].tensors[0].quantization
    assert scale is not None and scale.scales is not None
    import struct

    data = bytearray(model.data)
    at = data.index(struct.pack("<f", scale.scales[0]))
    data[at : at + 4] = struct.pack("<f", float("nan"))
    broken = parse_model(bytes(data))
    assert plan_offline(broken, plan_arena(broken, target_for("host"))).data
