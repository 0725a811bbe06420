"""The whole plan of the project's own models: figures, records, and what holds for any model."""

from __future__ import annotations

import json
import struct
from dataclasses import replace

import pytest

from harness.errors import UnfitModelError
from harness.model.builder import EXAMPLES
from harness.model.builder.examples import chain
from harness.model.builder.graph import ModelBuilder
from harness.model.builder.random_models import random_model
from harness.model.graph import Model, OperatorCode, TensorType
from harness.model.reader import parse_model
from harness.plan.arena import ArenaPlan, Confidence, plan_arena
from harness.plan.core import CORES
from harness.plan.setup import StepKind
from harness.plan.target import Interpreter, Kernels, target_for
from tests.plan.one_operator import dead_tensors

FLOAT = TensorType.FLOAT32


def example(name: str) -> Model:
    return parse_model(EXAMPLES[name](), name)


#: (model, core) → head, tail, smallest size. ds_cnn_kws has the layers of MLPerf Tiny's keyword spotting model, whose
#: figures on these three targets were measured with real TFLM; those of the host are measured by test_live.
FIGURES = {
    ("ds_cnn_kws", "cortex-m4"): (16000, 6820, 22824),
    ("ds_cnn_kws", "cortex-m55"): (20464, 6884, 27352),
    ("ds_cnn_kws", "host"): (16000, 8272, 24272),
    ("hello_int8", "cortex-m4"): (32, 740, 1156),
    ("hello_int8", "cortex-m55"): (32, 884, 1300),
    ("hello_int8", "host"): (32, 1472, 1936),
}


@pytest.mark.parametrize(("name", "core"), FIGURES)
def test_figures(name: str, core: str) -> None:
    plan = plan_arena(example(name), target_for(core))
    assert (plan.head_bytes, plan.tail_bytes, plan.min_exact_bytes) == FIGURES[name, core]
    assert plan.used_bytes == plan.head_bytes + plan.tail_bytes


def test_the_smallest_arena_is_larger_than_the_used_bytes_where_the_planner_s_table_decides() -> None:
    plan = plan_arena(example("hello_int8"), target_for())
    assert (plan.used_bytes, plan.min_exact_bytes, plan.min_bytes) == (772, 1156, 1168)
    assert plan.limit.kind is StepKind.PLANNER
    assert plan.limit.label == "memory planner's table for 4 buffers"


def test_the_tail_is_told_item_by_item_with_its_padding() -> None:
    plan = plan_arena(example("ds_cnn_kws"), target_for())
    assert sum(item.size_bytes + item.padding_bytes for item in plan.tail) == plan.tail_bytes
    assert plan.padding_bytes == sum(item.padding_bytes for item in plan.tail)
    assert [item.label for item in plan.tail[:3]] == [
        "SingleArenaBufferAllocator",
        "GreedyMemoryPlanner",
        "MicroAllocator",
    ]


def test_used_bytes_depend_on_the_remainder_of_the_size() -> None:
    by_residue = plan_arena(example("hello_int8"), target_for()).used_by_size_residue16()
    assert by_residue[:5] == [772, 773, 774, 775, 760]


def test_the_json_form_has_the_contract_s_fields() -> None:
    plan = plan_arena(example("if_greater"), target_for("host"))
    document = json.loads(json.dumps(plan.to_dict()))
    assert document["schema"] == "harness.plan"
    assert document["schema_version"] == 1
    assert document["model"] == {"path": "if_greater", "sha256": plan.model_sha256, "bytes": plan.model_bytes}
    assert document["target"] == {
        "abi": "lp64",
        "core": "host",
        "kernels": "reference",
        "interpreter": "recording",
        "tflm_commit": "8f6596d",
    }
    assert document["arena"]["used_bytes"] == plan.used_bytes
    assert document["arena"]["confidence"] == "exact"
    assert len(document["placements"]) == len(plan.placements)


def test_targets_are_filled_in_with_cortex_m4_cmsis_nn_and_plain() -> None:
    target = target_for()
    assert (target.abi, target.core, target.kernels) == ("ilp32", "cortex-m4", Kernels.CMSIS_NN)
    assert target.interpreter is Interpreter.PLAIN
    assert target_for(abi="lp64") == target_for("host")


@pytest.mark.parametrize("core", CORES)
def test_any_model_is_planned_for_any_core(core: str) -> None:
    """Random models: every plan is verified as it is made, exact, and consistent in itself."""
    for seed in range(8):
        model = parse_model(random_model(seed), f"random_{seed}")
        for interpreter in Interpreter:
            _check(plan_arena(model, target_for(core, interpreter=interpreter)))


def _check(plan: ArenaPlan) -> None:
    assert plan.confidence is Confidence.EXACT
    assert plan.used_bytes <= plan.min_bytes + 16
    assert all(placement.end_bytes <= plan.head_bytes for placement in plan.placements)
    by_residue = plan.used_by_size_residue16()
    assert by_residue[0] == plan.used_bytes
    assert max(by_residue) - min(by_residue) <= 15


def test_the_recording_interpreter_costs_a_little_more_and_preserving_all_tensors_much() -> None:
    model = example("ds_cnn_kws")
    plain, recording, preserve_all = (
        plan_arena(model, target_for("cortex-m4", interpreter=interpreter)) for interpreter in Interpreter
    )
    assert recording.used_bytes - plain.used_bytes == 96  # 104 more, and 8 less padding: as measured
    assert preserve_all.head_bytes == sum(placement.request.size_bytes for placement in preserve_all.placements)


def test_dead_tensors_take_room_together() -> None:
    plan = plan_arena(parse_model(dead_tensors(12)), target_for())
    dead = [placement.request for placement in plan.placements if placement.request.first_use == -1]
    assert len(dead) == 12
    assert plan.head_bytes == sum(request.size_bytes for request in dead) == 384


def _negations(offsets: list[int] | None, count: int = 3) -> Model:
    builder = ModelBuilder()
    graph = builder.graph
    value = graph.input((8,), FLOAT)
    for index in range(count):
        following = graph.tensor(f"t{index}", (8,), FLOAT)
        graph.operator("NEG", [value], [following], "NegOptions", {})
        value = following
    graph.output(value)
    if offsets is not None:
        words = struct.pack(f"<3i{len(offsets)}i", 1, 0, len(offsets), *offsets)
        builder.add_metadata("OfflineMemoryAllocation", words)
    return parse_model(builder.finish())


def test_an_offline_plan_is_honoured_and_the_rest_is_fitted_around_it() -> None:
    plan = plan_arena(_negations([64, -1, -1, 0]), target_for())
    assert [placement.offset_bytes for placement in plan.placements] == [64, 0, 32, 0]
    assert plan.head_bytes == 96


def test_an_offline_plan_for_another_number_of_tensors_is_refused_in_tflm_s_words() -> None:
    with pytest.raises(UnfitModelError) as caught:
        plan_arena(_negations([0, 32]), target_for())
    assert "Nbr of offline buffer offsets (2) in metadata not equal nbr tensors (4)" in caught.value.message


def test_preserving_all_tensors_refuses_an_offline_plan_and_more_than_1024_buffers() -> None:
    target = target_for(interpreter="preserve_all")
    with pytest.raises(UnfitModelError, match="has no offline plan"):
        plan_arena(_negations([64, -1, -1, 0]), target)
    assert plan_arena(parse_model(chain(1023)), target).head_bytes == 1024 * 64
    with pytest.raises(UnfitModelError, match=r"Too many buffers \(max is 1024\)"):
        plan_arena(parse_model(chain(1024)), target)


def test_an_if_of_an_old_file_has_branches_without_lifetimes_in_the_commit_that_reads_only_the_new_code_field() -> None:
    """TFLM 90b983c, not the wheel: the branches' tensors may lie over the operator's own, which the plan says."""
    old = _with_old_codes(example("if_greater"))
    plan = plan_arena(old, target_for())
    branches = [placement.request for placement in plan.placements if placement.request.subgraph > 0]
    assert {(request.first_use, request.last_use) for request in branches} == {(-1, -1)}
    assert "operator 1 of subgraph 0 (IF)" in plan.warnings[0]
    host = plan_arena(old, target_for("host"))
    assert host.head_bytes == plan_arena(example("if_greater"), target_for("host")).head_bytes
    assert host.warnings == ()


def _with_old_codes(model: Model) -> Model:
    def old(opcode: OperatorCode) -> OperatorCode:
        return replace(opcode, builtin_code=0, deprecated_builtin_code=opcode.code)

    subgraphs = tuple(
        replace(subgraph, operators=tuple(replace(op, opcode=old(op.opcode)) for op in subgraph.operators))
        for subgraph in model.subgraphs
    )
    return replace(model, subgraphs=subgraphs)
