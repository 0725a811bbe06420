"""The LP64 plan against real TFLM on the host: what tflite-micro used and needed for every handed file that runs."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.errors import HarnessError, UnfitModelError
from harness.model.reader import read_model
from harness.plan.arena import Confidence, plan_arena
from harness.plan.target import target_for

pytestmark = pytest.mark.cases

HOST = target_for("host")


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        # one measured message holds control characters
        return list(csv.DictReader(line.replace("\0", "") for line in file))


def _cases(shared: Path) -> Iterator[tuple[Path, dict[str, str], dict[str, str]]]:
    """(model, what is expected, what tflite-micro did)."""
    expected = {row["file"]: row for row in _rows(shared / "cases" / "expected.csv")}
    for folder in ("files", "synth"):
        for measured in _rows(shared / "cases" / f"{folder}_results_x86_64.csv"):
            if measured["file"] in expected:
                yield shared / "cases" / folder / measured["file"], expected[measured["file"]], measured


def test_every_file_that_runs_is_planned_to_the_byte(shared_dir: Path) -> None:
    wrong: list[str] = []
    exact = 0
    for path, expected, measured in _cases(shared_dir):
        if expected["expect"] not in {"works", "either"} or not expected["min_exact_bytes"]:
            continue
        plan = plan_arena(read_model(path, lenient=expected["expect"] == "either"), HOST)
        found = [plan.min_exact_bytes, plan.used_bytes, plan.head_bytes, plan.tail_bytes]
        names = ("arena_used_total", "arena_used_head", "arena_used_tail")
        wanted = [int(expected["min_exact_bytes"]), *(int(measured[name]) for name in names)]
        if found != wanted or plan.confidence is not Confidence.EXACT:
            wrong.append(f"{path.name}: [min, used, head, tail] {found}, measured {wanted} {plan.reasons}")
        exact += found == wanted
    print(f"\nexact: {exact} of {exact + len(wrong)} files")
    assert not wrong, "\n".join(wrong)
    assert exact >= 95


#: Files that tflite-micro refuses while it prepares, and the part of its message that the plan must say.
PREPARE_CAUSES = {
    "concat_40_inputs_limit.tflite": "num_inputs <= kMaxInputNum was not true.",
    "coral_mobilenet_v1_0.25_128_uint8.tflite": "Hybrid models are not supported on TFLite Micro.",
    "custom_op_null_name.tflite": "Operator with CUSTOM builtin_code has no custom_code.",
    "helia_softmax_scale_unsupported.tflite": "output->params.zero_point != -128 (0 != -128)",
    "int8_no_quantization.tflite": "scale_diff / output_scale <= 0.02 was not true.",
    "java_int64.tflite": "data_type == kTfLiteFloat32 || data_type == kTfLiteInt8 was not true.",
    "java_string_scalar.tflite": "Failed to populate a temp TfLiteTensor struct from flatbuffer data!",
    "litert_lstm.tflite": "Didn't find op for builtin opcode",
    "lrt_blockwise_quantized.tflite": "output->quantization.type != kTfLiteNoQuantization was not true.",
    "lrt_static_w8_a16_quantized_k_einsum.tflite": "lhs_data->type == rhs_data->type was not true.",
    "opcode_fields_disagree.tflite": "NumInputs(node) != 1 (3 != 1)",
    "quant_svdf_calibrated.tflite": "output->dims->data[1] != num_units (4 != 6)",
    "relu_neg_dim.tflite": "Dynamic tensors are not supported",
    "scale_zero.tflite": "scale_diff / output_scale <= 0.02 was not true.",
    "while_body_is_main_recursive.tflite": "call one another in a circle",
}


def test_files_that_tflm_refuses_are_refused_with_its_cause(shared_dir: Path) -> None:
    seen = set()
    for path, _, _ in _cases(shared_dir):
        if path.name in PREPARE_CAUSES:
            with pytest.raises(UnfitModelError) as caught:
                plan_arena(read_model(path), HOST)
            assert PREPARE_CAUSES[path.name] in caught.value.message, path.name
            seen.add(path.name)
    assert seen == set(PREPARE_CAUSES)


def test_no_handed_file_ends_the_plan_in_anything_but_our_errors(shared_dir: Path) -> None:
    for path, _, _ in _cases(shared_dir):
        for core in ("host", "cortex-m0", "cortex-m4", "cortex-m55"):
            try:
                plan = plan_arena(read_model(path), target_for(core))
            except HarnessError:
                continue
            assert plan.min_bytes % 16 == 0
            assert plan.min_exact_bytes <= plan.min_bytes
