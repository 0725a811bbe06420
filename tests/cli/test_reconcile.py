"""``harness reconcile``: every byte explained or counted, and other tools' estimates held against minima."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.cli.main import main
from harness.model.builder import EXAMPLES
from harness.model.reader import parse_model
from harness.plan.arena import plan_arena
from harness.plan.target import target_for
from harness.record.schema import (
    CategoryRecord,
    DeviceRecord,
    ErrorRecord,
    MeasuredRecord,
    ModelIdentity,
    SearchRecord,
    SweepRecord,
    TrialRecord,
)


def record(name: str = "hello_int8", *, extra_head: int = 0, sizes: dict[str, int] | None = None) -> SweepRecord:
    """A record as a device would leave it whose arena is the planned one, but for ``extra_head`` bytes."""
    target = target_for("cortex-m4", interpreter="recording")
    plan = plan_arena(parse_model(EXAMPLES[name](), f"{name}.tflite"), target)
    categories = tuple(
        CategoryRecord(key, entry.requested_bytes, entry.used_bytes, entry.count)
        for key, entry in plan.categories.items()
    )
    used, minimum = plan.used_bytes + extra_head, plan.min_bytes
    return SweepRecord(
        created="2026-01-02T03:04:05Z",
        harness_version="0.1.0",
        model=ModelIdentity(f"models/{name}.tflite", plan.model_sha256, plan.model_bytes),
        board="nucleo-f746zg",
        kernels="cmsis_nn",
        status="ok",
        plan=plan.to_dict(),
        measured=MeasuredRecord(65536, used, plan.head_bytes + extra_head, plan.tail_bytes, categories),
        search=SearchRecord(minimum, minimum - 16, 16, (TrialRecord(minimum, "works"),), flashes=1, ample_bytes=65536),
        device=DeviceRecord(
            "ab", target.tflm_commit, "cmsis_nn", "recording", "ilp32", "cycles", 65536, 16, struct_sizes=sizes or {}
        ),
    )


def shared(*names: str) -> SweepRecord:
    """As left by a sweep with --shared-arena."""
    each = tuple(record(name).model for name in names)
    together = ModelIdentity(" + ".join(model.path for model in each), "ab" * 32, sum(model.bytes for model in each))
    return msgspec.structs.replace(record(names[-1]), model=together, shared_by=each)


def write(path: Path, *records: SweepRecord) -> Path:
    if len(records) == 1:
        path.write_bytes(msgspec.json.encode(records[0]))
    else:
        results = [msgspec.to_builtins(entry) for entry in records]
        path.write_text(json.dumps({"schema": "harness.sweep", "schema_version": 1, "results": results}))
    return path


def run(capsys: pytest.CaptureFixture[str], *args: str | Path) -> tuple[int, str, str]:
    code = main(["reconcile", *map(str, args)])
    out, err = capsys.readouterr()
    return int(code), out, err


def test_an_exact_plan_agrees(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, _ = run(capsys, write(tmp_path / "r.json", record()), "--json")
    found: dict[str, Any] = json.loads(out)
    assert (code, found["schema"], found["schema_version"]) == (0, "harness.reconcile", 1)
    assert found["unexplained_bytes"] == 0
    (entry,) = found["records"]
    assert {term["agreement"] for term in entry["reconciliation"]["terms"]} == {"equal"}
    assert entry["reconciliation"]["terms"][-1]["name"] == "min"


def test_bytes_without_an_explanation_are_counted_and_end_with_1(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = write(tmp_path / "r.json", record(extra_head=48))
    code, out, _ = run(capsys, path, "--json")
    assert (code, json.loads(out)["unexplained_bytes"]) == (1, 48)
    code, out, _ = run(capsys, path)
    assert (code, "unexplained: 48 bytes" in out, "look at: compare kernel set" in out) == (1, True, True)


def test_a_document_of_sweep_and_a_folder_hold_several_records(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    both = write(tmp_path / "sweep.json", record(), record("ds_cnn_kws"))
    assert len(json.loads(run(capsys, both, "--json")[1])["records"]) == 2
    write(tmp_path / "one.json", record())
    assert len(json.loads(run(capsys, tmp_path, "--json")[1])["records"]) == 3


def test_a_record_of_a_refused_model_has_nothing_to_compare(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    refused = msgspec.structs.replace(
        record(), status="failed", error=ErrorRecord("x", "TFLM \x1b[31mrefuses"), measured=None, search=None
    )
    code, out, _ = run(capsys, write(tmp_path / "r.json", refused))
    assert code == 0
    assert "nothing was measured (failed: TFLM \\x1b[31mrefuses)" in out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "is no record"),
        (b"[]", "is no sweep record"),
        (b'{"schema": "harness.sweep", "results": [1]}', "damaged"),
    ],
)
def test_what_is_no_record_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "r.json"
    path.write_bytes(content)
    code, _, err = run(capsys, path)
    assert (code, message in err) == (2, True), err


def test_an_empty_folder_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(capsys, tmp_path)[0] == 2
    assert run(capsys, tmp_path / "none.json")[0] == 2


def test_estimates_are_held_against_the_minima(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    first, second = record(), record("ds_cnn_kws")
    assert first.search is not None and second.search is not None
    low, high = first.search.min_bytes or 0, second.search.min_bytes or 0
    path = write(tmp_path / "sweep.json", first, second)
    estimates = tmp_path / "e.csv"
    estimates.write_text(
        "tool,model,bytes\n"
        f"scope,hello_int8.tflite,{low - 8}\nscope,ds_cnn_kws,{high // 2}\nrule,ds_cnn_kws,{high * 2}\n"
    )
    code, out, _ = run(capsys, path, "--estimates", estimates, "--json")
    scope, rule = json.loads(out)["estimates"]["tools"]
    assert code == 0
    assert (scope["count"], scope["exact"], scope["under_estimates"]) == (2, 1, 1)
    assert scope["worst_under"]["error_bytes"] == high // 2 - high
    assert (rule["mean_abs_percent"], rule["median_abs_percent"], rule["worst"]["model"]) == (
        100,
        100,
        "ds_cnn_kws.tflite",
    )
    text = run(capsys, path, "--estimates", estimates)[1]
    assert "too small: an arena of that size does not work" in text


def test_a_minimum_that_several_records_tell_counts_once(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Swept twice with one result, and once with another: two minima, each with the record that it stands in."""
    swept = record()
    assert swept.search is not None and swept.search.min_bytes is not None
    larger = msgspec.structs.replace(swept.search, min_bytes=2 * swept.search.min_bytes, largest_failing_bytes=None)
    records = {"a.json": swept, "b.json": swept, "c.json": msgspec.structs.replace(swept, search=larger)}
    paths = [write(tmp_path / name, one) for name, one in records.items()]
    estimates = tmp_path / "e.csv"
    estimates.write_text(f"tool,model,bytes\nscope,hello_int8,{swept.search.min_bytes}\n")

    report = json.loads(run(capsys, *paths, "--estimates", estimates, "--json")[1])["estimates"]

    (tool,) = report["tools"]
    assert (tool["count"], tool["exact"], tool["mean_abs_percent"]) == (2, 1, 25)
    assert [comparison["record"] for comparison in report["comparisons"]] == [str(paths[0]), str(paths[2])]


def test_estimates_of_no_measured_model_are_refused_with_the_names(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    estimates = tmp_path / "e.csv"
    estimates.write_text("tool,model,bytes\nscope,other.tflite,5\n")
    code, _, err = run(capsys, write(tmp_path / "r.json", record()), "--estimates", estimates)
    assert (code, "measured: hello_int8.tflite" in err) == (2, True)


def test_sizes_that_the_firmware_reports_explain_a_category(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    measured = record(sizes={"TfLiteEvalTensor": 16})
    assert measured.measured is not None
    count = next(c.count for c in measured.measured.categories if c.name == "TfLiteEvalTensor data")
    more = 4 * count
    categories = tuple(
        CategoryRecord(c.name, c.requested_bytes + more, c.used_bytes + more, c.count)
        if c.name == "TfLiteEvalTensor data"
        else c
        for c in measured.measured.categories
    )
    was = measured.measured
    grown = MeasuredRecord(
        65536, (was.used_bytes or 0) + more, was.head_bytes, (was.tail_bytes or 0) + more, categories
    )
    code, out, _ = run(capsys, write(tmp_path / "r.json", msgspec.structs.replace(measured, measured=grown)), "--json")
    assert (code, json.loads(out)["unexplained_bytes"]) == (0, 0)
    assert f"sizeof(TfLiteEvalTensor) is 16 in the firmware, 12 in the plan, × {count}" in out.encode().decode(
        "unicode_escape"
    )


def test_the_sizes_of_a_record_serve_a_plan(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    model = tmp_path / "hello.tflite"
    model.write_bytes(EXAMPLES["hello_int8"]())
    path = write(tmp_path / "r.json", record(sizes={"void*": 4, "TfLiteEvalTensor": 12, "TfLiteTensor": 36}))
    assert main(["plan", str(model), "--abi-from", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["arena"]["confidence"] == "estimated"
    sizes, unseen = found["arena"]["reasons"]
    assert sizes == "sizeof(TfLiteTensor) is 36 on the board, 32 here"
    assert unseen.startswith("not visible in sizes: ")


def test_a_model_is_planned_anew_with_the_sizes_of_the_device(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    model = tmp_path / "hello.tflite"
    model.write_bytes(EXAMPLES["hello_int8"]())
    swept = record(sizes={"TfLiteEvalTensor": 16})
    old = dict(swept.plan or {})
    old["arena"] = old["arena"] | {"used_bytes": 1, "head_bytes": 0, "tail_bytes": 1}
    stale = write(tmp_path / "r.json", msgspec.structs.replace(swept, plan=old, device=record().device))
    assert run(capsys, stale)[0] == 1
    assert run(capsys, stale, "--model", model)[0] == 0
    grown = write(tmp_path / "g.json", swept)
    code, out, _ = run(capsys, grown, "--model", model, "--json")
    (term,) = [
        t for t in json.loads(out)["records"][0]["reconciliation"]["terms"] if t["name"].startswith("TfLiteEval")
    ]
    assert (code, term["planned_bytes"], term["measured_bytes"]) == (1, 160, 120)
    other = tmp_path / "other.tflite"
    other.write_bytes(EXAMPLES["residual_int8"]())
    code, _, err = run(capsys, grown, "--model", other)
    assert (code, "no record is of" in err) == (2, True)


def test_an_estimate_for_a_model_is_not_held_against_an_arena_that_it_shared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = record("svdf_int8")
    write(tmp_path / "alone.json", alone)
    write(tmp_path / "shared.json", shared("hello_int8", "svdf_int8"))
    assert alone.search is not None
    (tmp_path / "e.csv").write_text(f"tool,model,bytes\nperfect,svdf_int8.tflite,{alone.search.min_bytes}\n")
    assert main(["reconcile", str(tmp_path), "--estimates", str(tmp_path / "e.csv"), "--json"]) == 0
    (tool,) = json.loads(capsys.readouterr().out)["estimates"]["tools"]
    assert (tool["count"], tool["exact"], tool["under_estimates"]) == (1, 1, 0)


def test_each_block_says_which_record_it_is_from(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for cache in ("on", "off"):
        write(tmp_path / f"{cache}.json", msgspec.structs.replace(record(), variant={"cache": cache}))
    assert main(["reconcile", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    for cache in ("on", "off"):
        assert f"kernels, cache {cache}" in out
        assert str(tmp_path / f"{cache}.json") in out


def test_digits_are_not_cut_where_the_terminal_is_narrow(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    found = record("ds_cnn_kws")
    assert found.search is not None and found.search.min_bytes is not None
    write(tmp_path / "r.json", found)
    (tmp_path / "e.csv").write_text("tool,model,bytes\na_tool_with_a_long_name,ds_cnn_kws.tflite,123456\n")
    assert main(["reconcile", str(tmp_path / "r.json"), "--estimates", str(tmp_path / "e.csv")]) == 0
    out = capsys.readouterr().out
    assert "123,456" in out
    assert out.count(f"{found.search.min_bytes:,}") >= 2
