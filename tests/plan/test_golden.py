"""The plan against real TFLM, measured on emulated Cortex-M3, M4, M7 and M55: every number, to the byte."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.errors import UnfitModelError
from harness.model.graph import Model
from harness.model.reader import read_model
from harness.plan.arena import ArenaPlan, Confidence, plan_arena
from harness.plan.target import target_for

pytestmark = pytest.mark.cases

#: Measured in too small an arena, says the goldens' README.
LEFT_OUT = ("litert_rope.tflite", "cortex-m7", "preserve_all")
#: Rule D': below this bound TFLM destroys live structs, and in a few cases only dead ones.
PRESERVE_ALL_TOLERANCE_BYTES = 16


def _records(shared: Path) -> Iterator[dict[str, Any]]:
    for line in (shared / "golden" / "golden.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if (record["file"], record["core"], record["interpreter"]) != LEFT_OUT:
            yield record


def _plan(record: dict[str, Any], models: dict[str, Model], shared: Path) -> ArenaPlan:
    name = record["file"]
    if name not in models:
        models[name] = read_model(shared / "models" / name)
    target = target_for(record["core"], kernels=record["kernels"], interpreter=record["interpreter"])
    return plan_arena(models[name], target)


def _differences(record: dict[str, Any], plan: ArenaPlan) -> Iterator[str]:
    if plan.confidence is not Confidence.EXACT:
        yield f"only estimated: {plan.reasons}"
    if plan.used_bytes != record["used_bytes"]:
        yield f"used {plan.used_bytes}, measured {record['used_bytes']}"
    if plan.used_by_size_residue16() != record["used_by_size_residue16"]:
        yield f"used by residue {plan.used_by_size_residue16()}"
    tolerance = PRESERVE_ALL_TOLERANCE_BYTES if record["interpreter"] == "preserve_all" else 0
    # one record has no minimum: its search on Cortex-M55 was cut short
    measured_min = record["min_exact_bytes"] or plan.min_exact_bytes
    if not 0 <= plan.min_exact_bytes - measured_min <= tolerance:
        yield f"min {plan.min_exact_bytes}, measured {record['min_exact_bytes']}"
    for name, measured in record.get("categories", {}).items():
        planned = plan.categories[name]
        if [planned.requested_bytes, planned.used_bytes, planned.count] != list(measured.values()):
            yield f"{name}: {planned}, measured {measured}"


def test_every_measured_model_is_planned_to_the_byte(shared_dir: Path) -> None:
    models: dict[str, Model] = {}
    wrong: list[str] = []
    worst = exact_minimum = count = 0
    for record in _records(shared_dir):
        if record["status"] != "ok":
            continue
        plan = _plan(record, models, shared_dir)
        case = f"{record['file']} {record['core']} {record['kernels']} {record['interpreter']}"
        wrong += [f"{case}: {difference}" for difference in _differences(record, plan)]
        error = abs(plan.min_exact_bytes - (record["min_exact_bytes"] or plan.min_exact_bytes))
        worst, exact_minimum, count = max(worst, error), exact_minimum + (error == 0), count + 1
    print(f"\nminimum exact in {exact_minimum} of {count} records, worst error {worst} bytes")
    assert not wrong, "\n".join(wrong[:20])
    assert count > 2500


#: What TFLM printed for the models that it refused, and the part of it that the plan must say.
CAUSES = (
    "Hybrid models are not supported on TFLite Micro.",
    "Input data type not supported",
    "input_type == kTfLiteFloat32",
    "input_dims->data[current] == 1 was not true.",
    "Nbr of offline buffer offsets (4) in metadata not equal nbr tensors (5)",
)


def test_models_that_tflm_refuses_are_refused_with_its_cause(shared_dir: Path) -> None:
    models: dict[str, Model] = {}
    refused = [record for record in _records(shared_dir) if record["status"] != "ok"]
    for record in refused:
        with pytest.raises(UnfitModelError) as caught:
            _plan(record, models, shared_dir)
        said = str(record["error"])
        for cause in (cause for cause in CAUSES if cause in said):
            assert cause in caught.value.message, record["file"]
    assert len(refused) >= 25


def test_the_limit_is_the_allocation_that_fails_one_byte_below(shared_dir: Path) -> None:
    """TFLM's own last words at one byte below the minimum name the same step."""
    models: dict[str, Model] = {}
    checked = 0
    for record in _records(shared_dir):
        if record["status"] != "ok" or record["interpreter"] != "plain":
            continue
        said = record.get("fails_one_byte_below_with") or ""
        plan = _plan(record, models, shared_dir)
        if said.startswith("Too many buffers"):
            assert plan.limit.kind == "planner", (record["file"], plan.limit)
            checked += 1
        elif "Failed to initialize output tensor" in said:
            assert "output" in plan.limit.label, (record["file"], plan.limit)
            checked += 1
    assert checked > 300
