"""``harness plan``: the numbers, the questions, the pictures, the exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from harness.cli.main import main
from harness.model.builder import EXAMPLES, ModelBuilder, layers
from harness.model.graph import TensorType

HOSTILE = "a\x1b[31m[bold]\n\u202e<b>\"'"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "kws.tflite"
    path.write_bytes(EXAMPLES["ds_cnn_kws"]())
    return path


@pytest.fixture
def residual(tmp_path: Path) -> Path:
    path = tmp_path / "residual.tflite"
    path.write_bytes(EXAMPLES["residual_int8"]())
    return path


@pytest.fixture
def hello(tmp_path: Path) -> Path:
    path = tmp_path / "hello.tflite"
    path.write_bytes(EXAMPLES["hello_int8"]())
    return path


def plan(capsys: pytest.CaptureFixture[str], *args: str | Path) -> tuple[int, str, str]:
    code = main(["plan", *map(str, args)])
    out, err = capsys.readouterr()
    return int(code), out, err


def document(capsys: pytest.CaptureFixture[str], *args: str | Path, code: int = 0) -> dict[str, Any]:
    ended, out, err = plan(capsys, *args, "--json")
    assert ended == code, err
    found: dict[str, Any] = json.loads(out)
    return found


def test_json_follows_the_contract(capsys: pytest.CaptureFixture[str], model: Path) -> None:
    found = document(capsys, model)
    assert (found["schema"], found["schema_version"]) == ("harness.plan", 1)
    assert found["model"] == {"path": str(model), "sha256": found["model"]["sha256"], "bytes": model.stat().st_size}
    target = found["target"]
    assert (target["abi"], target["core"], target["kernels"], target["interpreter"]) == (
        "ilp32",
        "cortex-m4",
        "cmsis_nn",
        "plain",
    )
    arena = found["arena"]
    assert arena["used_bytes"] == arena["head_bytes"] + arena["tail_bytes"]
    assert arena["min_bytes"] == -(-arena["min_exact_bytes"] // 16) * 16
    assert arena["confidence"] == "exact"


def test_regions_add_up_to_used(capsys: pytest.CaptureFixture[str], model: Path, residual: Path) -> None:
    for path in (model, residual):
        found = document(capsys, path)
        for section, total in (("head", "head_bytes"), ("tail", "tail_bytes")):
            parts = [region["bytes"] for region in found["regions"] if region["section"] == section]
            assert sum(parts) == found["arena"][total]


def test_the_peak_names_the_operator_and_its_tensors(capsys: pytest.CaptureFixture[str], residual: Path) -> None:
    found = document(capsys, residual)
    peak = found["peak"]
    assert (peak["step"], peak["at"], peak["live_bytes"]) == (3, "CONV_2D 2", 3744)
    sizes = [found["placements"][index]["size_bytes"] for index in peak["buffers"]]
    assert (sum(sizes), sizes) == (3744, sorted(sizes, reverse=True))


def test_a_skip_connection_is_named_as_a_win(capsys: pytest.CaptureFixture[str], residual: Path) -> None:
    _, out, _ = plan(capsys, residual)
    assert (
        '864 bytes less head: tensor 3 "main/conv_2d_0" (1,152 bytes) lives across 4 operators because ADD 3 reads it '
        "again (skip connection)"
    ) in out
    assert [win["saved_bytes"] for win in document(capsys, residual)["wins"]] == [864, 864]


def test_a_better_placement_is_a_win(capsys: pytest.CaptureFixture[str], residual: Path) -> None:
    _, out, _ = plan(capsys, residual)
    assert "864 bytes less head: the same buffers in better places: --write-offline-plan" in out


def test_a_better_placement_is_written_into_a_copy(
    capsys: pytest.CaptureFixture[str], residual: Path, model: Path, tmp_path: Path
) -> None:
    out = tmp_path / "better.tflite"
    found = document(capsys, residual, "--write-offline-plan", out)
    assert found["arena"]["head_bytes"] == 4608
    assert found["offline_plan"]["arena"]["head_bytes"] == 3744
    assert "head 3,744 instead of 4,608" in found["notes"][0]
    assert document(capsys, out)["arena"] == found["offline_plan"]["arena"]
    assert "input (offline)" in plan(capsys, out)[1]
    assert plan(capsys, residual, "--write-offline-plan", residual)[0] == 2
    code, _, err = plan(capsys, model, "--write-offline-plan", tmp_path / "none.tflite")
    assert (code, "no better placement" in err, (tmp_path / "none.tflite").exists()) == (1, True, False)


def test_what_preserving_all_tensors_costs_is_noted(capsys: pytest.CaptureFixture[str], model: Path) -> None:
    plain = document(capsys, model)["arena"]["min_bytes"]
    found = document(capsys, model, "--preserve-all-tensors")
    more = found["arena"]["min_bytes"] - plain
    assert found["notes"] == [f"without preserve_all_tensors the minimum is {plain:,} bytes: {more:,} less"]


def test_a_peak_that_is_one_operator_is_said_to_be_one(capsys: pytest.CaptureFixture[str], model: Path) -> None:
    _, out, _ = plan(capsys, model)
    assert "none: what is alive at the peak is what DEPTHWISE_CONV_2D 1 reads and writes" in out


def test_the_page_says_which_number_is_which(capsys: pytest.CaptureFixture[str], hello: Path) -> None:
    code, out, _ = plan(capsys, hello)
    arena = document(capsys, hello)["arena"]
    assert code == 0
    (used,) = [line for line in out.splitlines() if line.startswith("used  ")][:1]
    assert used.split()[:2] == ["used", f"{arena['used_bytes']:,}"]
    assert "what arena_used_bytes() will say: not the size to give" in used
    assert f"({arena['min_exact_bytes']:,} to the byte)" in out
    assert "one byte less fails at: memory planner's table for" in out
    stages = {line[:24].strip(): line.split() for line in out.splitlines()}
    assert stages["plan the memory"][3] == f"{arena['min_exact_bytes']:,}"
    assert "the minimum is decided by the stage: plan the memory, 384 bytes above head and tail" in out
    assert stages["lay out head and tail"][5] == f"{arena['used_bytes']:,}"


def test_the_stage_that_needs_most_decides_the_minimum(
    capsys: pytest.CaptureFixture[str], hello: Path, model: Path
) -> None:
    for path, decides in ((hello, "plan the memory"), (model, "lay out head and tail")):
        found = document(capsys, path)
        needs = {stage["stage"]: stage["needed_bytes"] for stage in found["stages"]}
        assert list(needs) == [
            "load the model",
            "prepare the operators",
            "plan the memory",
            "lay out head and tail",
        ]
        assert needs[decides] == max(needs.values()) == found["arena"]["min_exact_bytes"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--core", "host"], ("lp64", "host", "reference", "recording")),
        (["--abi", "lp64"], ("lp64", "host", "reference", "recording")),
        (["--core", "cortex-m55", "--kernels", "reference"], ("ilp32", "cortex-m55", "reference", "plain")),
        (["--core", "M4"], ("ilp32", "cortex-m4", "cmsis_nn", "plain")),
        (["--core", "m33+nodsp"], ("ilp32", "cortex-m33+nodsp", "cmsis_nn", "plain")),
        (["--board", "nucleo-f746zg"], ("ilp32", "cortex-m7", "cmsis_nn", "plain")),
        (["--board", "host"], ("lp64", "host", "reference", "recording")),
        (["--preserve-all-tensors"], ("ilp32", "cortex-m4", "cmsis_nn", "preserve_all")),
    ],
)
def test_targets(
    capsys: pytest.CaptureFixture[str], hello: Path, options: list[str], expected: tuple[str, ...]
) -> None:
    target = document(capsys, hello, *options)["target"]
    assert (target["abi"], target["core"], target["kernels"], target["interpreter"]) == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--board", "nucleo-f746zg", "--core", "cortex-m4"], "--board already says core and ABI"),
        (["--preserve-all-tensors", "--interpreter", "recording"], "contradicts --interpreter recording"),
        (["--core", "cortex-m99"], "no core is named"),
        (["--arena-limit", "64k"], "is not a size"),
        (["--headroom", "0.5"], "0.5"),
        (["--planner", "magic"], "magic"),
        (["--shape", "nobody=1,2"], 'no input "nobody"'),
        (["--two-arenas", "--interpreter", "recording"], "recording interpreter has one arena only"),
    ],
)
def test_bad_usage_ends_with_2(
    capsys: pytest.CaptureFixture[str], hello: Path, options: list[str], message: str
) -> None:
    code, out, err = plan(capsys, hello, *options, "--json")
    assert (code, message in err) == (2, True), err
    assert json.loads(out)["schema"] == "harness.error"


def test_an_unknown_board_ends_with_5(capsys: pytest.CaptureFixture[str], hello: Path) -> None:
    assert plan(capsys, hello, "--board", "nucleo-f7")[0] == 5


def test_planners_are_compared(capsys: pytest.CaptureFixture[str], residual: Path) -> None:
    found = document(capsys, residual, "--planner", "all")["planners"]
    heads = {result["planner"]: result["head_bytes"] for result in found["results"]}
    assert list(heads) == ["greedy", "linear", "first_use", "best_fit", "search", "none"]
    assert heads["none"] == heads["linear"]
    assert found["bound_bytes"] == 3744
    assert found["bound_bytes"] <= heads["search"] <= heads["greedy"] == 4608
    _, out, _ = plan(capsys, residual, "--planner", "greedy", "--planner", "none")
    rows = [line.split() for line in out.splitlines()]
    assert ["lower", "bound", "3,744", "1.000"] in [row[:4] for row in rows]


def test_alignments_and_two_arenas(capsys: pytest.CaptureFixture[str], residual: Path) -> None:
    found = document(capsys, residual, "--alignments", "--two-arenas")
    assert [cost["alignment"] for cost in found["alignments"]] == [4, 8, 16]
    assert found["alignments"][2]["head_bytes"] == found["arena"]["head_bytes"]
    two = found["two_arenas"]
    assert two["fast"] == "nonpersistent"
    assert two["nonpersistent_bytes"] >= found["arena"]["head_bytes"]


def test_the_memories_that_hold_each_of_two_arenas(capsys: pytest.CaptureFixture[str], model: Path) -> None:
    two = document(capsys, model, "--two-arenas", "--board", "nucleo-f746zg")["two_arenas"]
    assert two["nonpersistent_fits_into"] == ["dtcm", "sram1"]
    assert two["persistent_fits_into"] == ["dtcm", "sram1", "sram2"]
    assert "fast memory; fits into dtcm, sram1" in plan(capsys, model, "--two-arenas", "--board", "nucleo-f746zg")[1]
    assert "fits into" not in plan(capsys, model, "--two-arenas")[1]


def test_headroom_and_limit(capsys: pytest.CaptureFixture[str], model: Path) -> None:
    minimum = document(capsys, model)["arena"]["min_bytes"]
    fits = document(capsys, model, "--arena-limit", str(minimum))
    assert (fits["fit"]["fits"], fits["fit"]["needed_bytes"]) == (True, minimum)
    short = document(capsys, model, "--arena-limit", str(minimum - 1), code=1)
    assert (short["fit"]["fits"], short["fit"]["place"]) == (False, None)
    roomy = document(capsys, model, "--headroom", "1.2", "--arena-limit", str(minimum), code=1)
    assert roomy["recommended"] == {"headroom": 1.2, "arena_bytes": roomy["fit"]["needed_bytes"]}
    assert roomy["recommended"]["arena_bytes"] % 16 == 0
    assert 0 <= roomy["recommended"]["arena_bytes"] - minimum * 1.2 < 16


def test_a_board_s_largest_contiguous_region_decides(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    builder = ModelBuilder(seed=1)
    g = builder.graph
    g.output(layers.unary(g, "NEG", g.input((1, 200, 200, 1), TensorType.FLOAT32)))
    path = tmp_path / "large.tflite"
    path.write_bytes(builder.finish())
    code, out, _ = plan(capsys, path, "--board", "nucleo-f746zg")
    assert code == 1
    assert (
        "does not fit: 320,272 B (312.8 KiB) in one contiguous region; the largest, dtcm+sram1+sram2, has 313,344 B"
        in out
    )
    found = document(capsys, path, "--board", "nucleo-f746zg", code=1)["fit"]
    assert [place["name"] for place in found["places"]] == ["sram1", "sram1+sram2", "dtcm+sram1+sram2"]
    assert found["places"][2] == {
        "name": "dtcm+sram1+sram2",
        "size_bytes": 327680,
        "reserved_bytes": 14336,
        "reserved_for": "stack, firmware data",
        "free_bytes": 313344,
    }


def test_several_models_share_an_arena(capsys: pytest.CaptureFixture[str], model: Path, hello: Path) -> None:
    found = document(capsys, model, hello, "--shared-arena", "--arena-limit", "64KiB")
    shared = found["shared_arena"]
    heads = [row["arena"]["head_bytes"] for row in found["plans"]]
    assert shared["arena"]["head_bytes"] == max(heads)
    assert (
        shared["arena"]["min_bytes"] < shared["separate_bytes"] == sum(r["arena"]["min_bytes"] for r in found["plans"])
    )
    assert shared["fit"]["needed_bytes"] == shared["arena"]["min_bytes"]
    code, out, _ = plan(capsys, model, hello, "--shared-arena")
    assert code == 0
    assert "2 models in one arena" in out


def test_a_failing_model_does_not_stop_the_others(
    capsys: pytest.CaptureFixture[str], hello: Path, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.tflite"
    bad.write_bytes(b"no model")
    found = document(capsys, bad, hello, code=2)
    assert found["schema"] == "harness.plan"
    assert set(found["plans"][0]) == {"model", "error"}
    assert found["plans"][1]["arena"]["confidence"] == "exact"
    code, out, err = plan(capsys, bad, hello)
    assert (code, "bad.tflite" in err, "hello.tflite" in out) == (2, True, True)


def test_a_model_that_tflm_would_run_wrongly_is_planned_and_ends_with_1(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    builder = ModelBuilder(seed=1)
    g = builder.graph
    y = g.tensor("y", (1, 4), TensorType.INT32)
    g.operator("FLOOR_MOD", [g.input((1, 4), TensorType.INT32), g.input((1, 4), TensorType.INT32)], [y])
    g.output(y)
    path = tmp_path / "wrong.tflite"
    path.write_bytes(builder.finish())
    found = document(capsys, path, code=1)
    assert found["unfit"]["code"] == "type.unsupported"
    assert found["arena"]["head_bytes"] == 48
    assert "TFLM would not run this model rightly" in plan(capsys, path)[1]
    assert document(capsys, path, "--no-check")["unfit"] is None


def test_a_model_that_tflm_refuses_is_refused_with_its_cause(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    builder = ModelBuilder(seed=1)
    g = builder.graph
    y = g.tensor("y", (1, 4), TensorType.FLOAT32)
    g.operator("BITCAST", [g.input((1, 4), TensorType.FLOAT32)], [y])
    g.output(y)
    path = tmp_path / "refused.tflite"
    path.write_bytes(builder.finish())
    error = document(capsys, path, code=1)["error"]
    assert error["code"] == "model.operator"
    assert "BITCAST" in error["message"]


def test_the_log_has_a_line_per_buffer(capsys: pytest.CaptureFixture[str], residual: Path) -> None:
    code, out, _ = plan(capsys, residual, "--log")
    lines = out.splitlines()
    assert (code, len(lines)) == (0, 17)
    assert lines[1] == (
        '1 subgraph=0 tensor=3 name="main/conv_2d_0" offset=3456 size=1152 requested=1152 first=1 last=4'
    )
    assert lines[9] == "9 subgraph=0 scratch=0 offset=432 size=112 requested=112 first=1 last=1"


def test_the_picture_is_written(capsys: pytest.CaptureFixture[str], residual: Path, tmp_path: Path) -> None:
    assert plan(capsys, residual, "--plot", tmp_path / "a.svg")[0] == 0
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert "residual.tflite: cortex-m4, cmsis_nn, plain" in text
    ElementTree.fromstring(text)
    assert plan(capsys, residual, "--plot", tmp_path / "a.gif")[0] == 2


def test_names_of_a_model_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    builder = ModelBuilder(seed=1)
    g = builder.graph
    g.output(layers.unary(g, "NEG", g.input((1, 600), TensorType.FLOAT32, name=HOSTILE)))
    path = tmp_path / "hostile.tflite"
    path.write_bytes(builder.finish())
    for options in ([], ["--log"], ["--json"], ["--plot", tmp_path / "h.svg"]):
        code, out, err = plan(capsys, path, *options)
        assert code == 0
        assert not set("\x1b\u202e") & set(out + err)
    assert '"a\\x1b[31m[bold]\\x0a\\u202e<b>\\"' in plan(capsys, path)[1]
    ElementTree.fromstring((tmp_path / "h.svg").read_text(encoding="utf-8"))


def test_a_record_gives_sizes_core_kernels_and_interpreter(
    capsys: pytest.CaptureFixture[str], hello: Path, tmp_path: Path
) -> None:
    commit = "90b983c2b3f1480642e040bbd2ddb37b998f3424"
    device = {"tflm_commit": commit, "kernels": "reference", "interpreter": "recording"}
    target = {"tflm_commit": "0" * 40, "core": "cortex-m7", "abi": "ilp32"}
    record = tmp_path / "record.json"
    same = {"plan": {"target": target}, "device": device | {"struct_sizes": {"TfLiteEvalTensor": 12}}}
    record.write_text(json.dumps(same), encoding="utf-8")
    exact = document(capsys, hello, "--abi-from", record)
    assert exact["arena"]["confidence"] == "exact"
    assert exact["target"] == {
        "abi": "ilp32",
        "core": "cortex-m7",
        "kernels": "reference",
        "interpreter": "recording",
        "tflm_commit": commit,
    }
    plain = document(capsys, hello, "--abi-from", record, "--interpreter", "plain", "--core", "cortex-m0")["target"]
    assert (plain["interpreter"], plain["core"], plain["kernels"]) == ("plain", "cortex-m0", "reference")
    other = same | {"device": device | {"struct_sizes": {"TfLiteEvalTensor": 16}}}
    record.write_text(json.dumps(other), encoding="utf-8")
    found = document(capsys, hello, "--abi-from", record)
    assert found["arena"]["confidence"] == "estimated"
    assert "sizeof(TfLiteEvalTensor) is 16 on the board, 12 here" in found["arena"]["reasons"]
    tensors = exact["categories"]["TfLiteEvalTensor data"]["count"]
    assert found["categories"]["TfLiteEvalTensor data"]["requested_bytes"] == 16 * tensors


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("{}", "holds no struct sizes"),
        ('{"tflm_commit": "90b983c", "struct_sizes": {"a": "x"}}', "has no size in bytes"),
        ('{"struct_sizes": {"void*": 4}}', "does not say which TFLM"),
    ],
)
def test_a_record_without_sizes_is_refused(
    capsys: pytest.CaptureFixture[str], hello: Path, tmp_path: Path, text: str, message: str
) -> None:
    record = tmp_path / "record.json"
    record.write_text(text, encoding="utf-8")
    code, _, err = plan(capsys, hello, "--abi-from", record)
    assert (code, message in err) == (2, True), err


@pytest.mark.backend
def test_open_dimensions_are_noted_and_planned_for(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "open.tflite"
    path.write_bytes(open_model())
    small = document(capsys, path)
    assert "has open dimensions [1, -1, 4, 2]: TFLM takes the [1, 8, 4, 2] of the file" in small["notes"][0]
    large = document(capsys, path, "--shape", "features=1,80,4,2")
    assert "worst case of all smaller inputs" in large["notes"][0]
    assert (small["arena"]["head_bytes"], large["arena"]["head_bytes"]) == (64 + 96 + 80, 640 + 960 + 80)


def open_model() -> bytes:
    """A model whose input has an open dimension."""
    builder = ModelBuilder(seed=1)
    g = builder.graph
    x = g.input((1, 8, 4, 2), TensorType.INT8, name="features", signature=(1, -1, 4, 2))
    g.output(layers.conv_2d(g, x, 3, (3, 3)))
    return builder.finish()
