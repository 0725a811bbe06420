"""Every handed case: models from public bug reports with what a correct tool has to say of them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from harness.errors import ModelFileError
from harness.model.checks import check_model
from harness.model.finding import Finding, Severity, Verdict, verdict_of
from harness.model.reader import read_model

pytestmark = pytest.mark.cases


def judge(path: Path, kernels: str = "reference") -> tuple[Finding, ...]:
    """The findings of ``harness check``; a file that cannot be read is one refused finding."""
    try:
        return check_model(read_model(path, lenient=True), kernels)
    except ModelFileError as error:
        return (Finding(error.code, Severity.REFUSED, "file", error.message, error.remedy),)


def refusals(findings: tuple[Finding, ...]) -> list[str]:
    return [f"{f.code}: {f.where}: {f.message}" for f in findings if f.severity is Severity.REFUSED]


def test_every_row_of_the_cases_ends_as_it_has_to(shared_dir: Path) -> None:
    with (shared_dir / "cases" / "expected.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    wrong = []
    for row in rows:
        found = refusals(judge(shared_dir / "cases" / row["set"] / row["file"]))
        if row["expect"] == "works" and found:
            wrong.append((row["file"], found))
        if row["expect"] in {"refused", "not_ok"} and not found:
            wrong.append((row["file"], "not refused", row["tflm_says"]))
    assert len(rows) > 100
    assert wrong == []


#: The code that names the kind, for cases whose kind a user has to be told.
KINDS = {
    "files/coral_mobilenet_v1_0.25_128_uint8": "type.uint8",
    "files/mlperf_kws_float32": "type.hybrid",
    "files/litert_test_model_redux_precision": "type.float16",
    "files/litert_add_quantized_int8": "type.mismatch",
    "files/lrt_static_w8_a16_quantized_k_einsum": "type.mismatch",
    "files/java_string_scalar": "type.string",
    "files/litert_sparse_tensor": "tensor.sparse",
    "files/litert_double_flex": "operator.flex",
    "files/coralmicro_testconv1_edgetpu": "operator.accelerator",
    "files/litert_lstm": "operator.unsupported",
    "files/litert_no_subgraphs": "graph.no_subgraphs",
    "files/quant_svdf_calibrated": "shape.mismatch",
    "files/helia_softmax_scale_unsupported": "quantization.zero_point",
    "files/helia_ic_resnet_int8_LFSPOINTER": "model.lfs_pointer",
    "synth/builtin_code_250_unknown": "operator.unsupported",
    "synth/concat_40_inputs_limit": "operator.too_many_inputs",
    "synth/custom_op_null_name": "operator.custom_unnamed",
    "synth/external_buffers_offset_size": "buffer.external",
    "synth/if_subgraph_index_oob": "flow.subgraph_index",
    "synth/int4_activation": "type.int4_activation",
    "synth/int8_no_quantization": "quantization.missing",
    "synth/offline_plan_huge": "offline.offset",
    "synth/offline_plan_short_header": "offline.length",
    "synth/offline_plan_unaligned": "offline.unaligned",
    "synth/op_output_has_constant_buffer": "graph.output_is_constant_data",
    "synth/opcode_fields_disagree": "operator.inputs",
    "synth/ops_not_topological": "graph.not_topological",
    "synth/relu_dim_overflow_32bit": "shape.overflow",
    "synth/relu_neg_dim": "shape.dynamic",
    "synth/scale_zero": "quantization.scale",
    "synth/schema_version_0": "schema.version",
    "synth/size_prefixed": "model.size_prefixed",
    "synth/trunc_1000": "model.truncated",
    "synth/weights_buffer_too_short": "constant.short",
    "synth/weights_input_minus1": "operator.inputs",
    "synth/while_body_is_main_recursive": "flow.recursive",
}


@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_case_is_refused_by_its_kind(shared_dir: Path, name: str) -> None:
    found = judge(shared_dir / "cases" / f"{name}.tflite")
    assert KINDS[name] in {f.code for f in found if f.severity is Severity.REFUSED}


def test_models_that_ran_on_real_tflm_are_not_refused(shared_dir: Path) -> None:
    """golden.jsonl holds measured runs on emulated cores; FLOOR_MOD on INT32 allocates, and fails at Invoke."""
    statuses: dict[tuple[str, str], set[str]] = {}
    with (shared_dir / "golden" / "golden.jsonl").open(encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            statuses.setdefault((record["file"], record["kernels"]), set()).add(record["status"])
    wrong = []
    for (file_name, kernels), status in sorted(statuses.items()):
        refused = refusals(judge(shared_dir / "models" / file_name, kernels))
        if ("ok" in status) == bool(refused) and file_name != "litert_simple_floor_mod.tflite":
            wrong.append((file_name, kernels, sorted(status), refused))
    assert len(statuses) > 200
    assert wrong == []


def test_a_model_in_the_wild_has_warnings_that_say_what_to_do(shared_dir: Path) -> None:
    found = judge(shared_dir / "cases" / "files" / "arduino_hello_world.tflite")
    assert verdict_of(found) is Verdict.WARNINGS
    unaligned = next(f for f in found if f.code == "layout.unaligned_buffers")
    assert unaligned.message.startswith("5 of 6 buffers do not start on a multiple of 16 bytes in the file")
