"""Two arenas, and one arena for several models, against what real TFLM needed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from harness.abi import abi_named
from harness.errors import UnfitModelError, UsageError
from harness.model.builder import EXAMPLES
from harness.model.reader import parse_model, read_model
from harness.plan.arena import ArenaPlan, Confidence, plan_arena
from harness.plan.arenas import shared_arena, two_arenas
from harness.plan.setup import Category
from harness.plan.target import target_for

GOLDEN = json.loads((Path(__file__).parent / "golden_arenas.json").read_text(encoding="utf-8"))
ILP32 = abi_named("ilp32")


def planned(name: str, interpreter: str = "plain", kernels: str = "cmsis_nn") -> ArenaPlan:
    target = target_for("cortex-m4", kernels=kernels, interpreter=interpreter)
    return plan_arena(parse_model(EXAMPLES[name](), name), target)


@pytest.mark.cases
@pytest.mark.parametrize("row", GOLDEN["two_arenas"], ids=lambda row: f"{row['model']}-{row['kernels']}")
def test_two_arenas_are_planned_to_the_byte(shared_dir: Path, row: dict[str, object]) -> None:
    model = read_model(shared_dir / "models" / f"{row['model']}.tflite")
    two = two_arenas(plan_arena(model, target_for("cortex-m4", kernels=str(row["kernels"]))), ILP32)
    assert (two.used_bytes, two.persistent_bytes, two.nonpersistent_bytes) == (
        row["used"],
        row["persistent"],
        row["nonpersistent"],
    )


@pytest.mark.cases
@pytest.mark.parametrize("row", GOLDEN["shared_arena"], ids=lambda row: "+".join(row["models"]))
def test_a_shared_arena_is_planned_to_the_byte(shared_dir: Path, row: dict[str, list[str]]) -> None:
    target = target_for("cortex-m4", kernels=str(row["kernels"]))
    plans = [plan_arena(read_model(shared_dir / "models" / f"{name}.tflite"), target) for name in row["models"]]
    shared = shared_arena(plans)
    assert plans[0].used_bytes == row["used_first"]
    assert (shared.used_bytes, shared.min_exact_bytes) == (row["used"], row["min_exact"])


def test_one_model_alone_in_a_shared_arena_is_its_own_plan() -> None:
    plan = planned("ds_cnn_kws")
    shared = shared_arena([plan])
    assert (shared.head_bytes, shared.tail_bytes, shared.min_exact_bytes, shared.min_bytes) == (
        plan.head_bytes,
        plan.tail_bytes,
        plan.min_exact_bytes,
        plan.min_bytes,
    )


def test_tails_add_up_the_head_is_the_largest_and_the_allocator_is_there_once() -> None:
    plans = [planned("ds_cnn_kws"), planned("hello_int8"), planned("residual_int8")]
    shared = shared_arena(plans)
    assert shared.head_bytes == max(plan.head_bytes for plan in plans)
    once = sum(step.size_bytes for step in plans[0].setup.steps[:3])
    assert once == 36 + 44 + 36
    apart = sum(plan.tail_bytes for plan in plans)
    assert abs(apart - 2 * once - shared.tail_bytes) <= 2 * 16
    assert shared.min_bytes < sum(plan.min_bytes for plan in plans)
    assert shared.confidence is Confidence.EXACT


def test_the_model_whose_setup_limits_a_shared_arena_is_named() -> None:
    small, large = planned("hello_int8"), planned("ds_cnn_kws")
    assert shared_arena([large, small]).limit_model == 1
    assert shared_arena([small, large]).limit_model == 1


def test_the_linear_planner_cannot_be_shared() -> None:
    with pytest.raises(UnfitModelError, match="cannot share an arena with preserve_all_tensors"):
        shared_arena([planned("hello_int8", "preserve_all")] * 2)


def test_models_of_different_targets_cannot_share() -> None:
    with pytest.raises(UsageError, match="planned for one target"):
        shared_arena([planned("hello_int8"), planned("hello_int8", kernels="reference")])


def test_an_estimate_makes_the_shared_plan_an_estimate() -> None:
    doubtful = replace(planned("hello_int8"), reasons=("a doubt",))
    assert shared_arena([planned("ds_cnn_kws"), doubtful]).confidence is Confidence.ESTIMATED


def test_two_arenas_hold_together_what_one_holds_but_for_the_allocator() -> None:
    plan = planned("ds_cnn_kws")
    two = two_arenas(plan, ILP32)
    objects = {item.label for item in plan.tail if item.category is Category.ALLOCATOR}
    assert "SingleArenaBufferAllocator" in objects
    assert two.used_bytes - plan.used_bytes in range(16 + 32 - 36 - 15, 16 + 32 - 36 + 16)
    assert two.nonpersistent_bytes >= plan.head_bytes
    assert two.persistent_bytes % 16 == 0


def test_the_recording_interpreter_has_one_arena() -> None:
    with pytest.raises(UsageError, match="recording interpreter has one arena only"):
        two_arenas(planned("hello_int8", "recording"), ILP32)
