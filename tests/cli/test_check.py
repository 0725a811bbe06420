"""``harness check`` and ``harness inspect``: what stands on stdout, and the exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from harness.model.builder import EXAMPLES, ModelBuilder
from harness.model.graph import TensorType
from harness.model.reader import read_model
from tests.patience import PATIENCE_S


def harness(*args: str | Path) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "harness", *map(str, args)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    refused = ModelBuilder(seed=1)
    x = refused.graph.input((1, 4), TensorType.FLOAT32, name="x\x1b[31m[bold]\n")
    y = refused.graph.tensor("y", (1, 4), TensorType.FLOAT32)
    refused.graph.operator("bad\x1b]0;op\x07", [x], [y])
    refused.graph.output(y)
    contents = {
        "good": EXAMPLES["hello_int8"](),
        "refused": refused.finish(),
        "pointer": b"version https://git-lfs.github.com/spec/v1\nsize 5\n",
    }
    paths = {}
    for name, data in contents.items():
        paths[name] = tmp_path / f"{name}.tflite"
        paths[name].write_bytes(data)
    return paths


def test_json_has_a_verdict_and_findings_for_each_file(files: dict[str, Path]) -> None:
    done = harness("check", "--json", files["good"], files["refused"], files["pointer"])
    document = json.loads(done.stdout)
    assert (document["schema"], document["schema_version"]) == ("harness.check", 1)
    assert [entry["verdict"] for entry in document["files"]] == ["ok", "refused", "refused"]
    assert [entry["path"] for entry in document["files"]] == [str(files[n]) for n in ("good", "refused", "pointer")]
    finding = document["files"][2]["findings"][0]
    assert sorted(finding) == ["code", "message", "remedy", "severity", "where"]
    assert (finding["code"], finding["severity"]) == ("model.lfs_pointer", "refused")
    assert done.stderr == ""
    assert done.returncode == 2


def test_the_exit_code_is_the_worst_of_the_files(files: dict[str, Path]) -> None:
    assert harness("check", files["good"]).returncode == 0
    assert harness("check", files["good"], files["refused"]).returncode == 1
    assert harness("check", files["refused"], files["good"].with_name("absent")).returncode == 2
    assert harness("check").returncode == 2


def test_text_names_place_reason_and_remedy_and_carries_no_control_characters(files: dict[str, Path]) -> None:
    done = harness("check", files["refused"])
    assert done.stdout.startswith(f"{files['refused']}: refused (1 refused)")
    assert "operator.custom  subgraph 0, operator 0" in done.stdout
    assert "→ remove the operator" in done.stdout
    for command in ("check", "inspect"):
        assert not set(harness(command, files["refused"]).stdout) & {"\x1b", "\x07"}


def test_realign_writes_an_aligned_copy(files: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "out.tflite"
    done = harness("check", files["good"], "--realign", out, "--json")
    assert json.loads(done.stdout)["realigned"] == str(out)
    assert read_model(out).subgraphs == read_model(files["good"]).subgraphs
    assert harness("check", files["good"], files["refused"], "--realign", out).returncode == 2
    before = files["good"].read_bytes()
    assert harness("check", files["good"], "--realign", files["good"]).returncode == 2
    assert files["good"].read_bytes() == before


def test_kernels_are_chosen_and_others_refused(files: dict[str, Path]) -> None:
    assert harness("check", "--kernels", "cmsis_nn", files["good"]).returncode == 0
    assert harness("check", "--kernels", "esp_nn", files["good"]).returncode == 2


def test_inspect_shows_the_tables_as_json(files: dict[str, Path]) -> None:
    done = harness("inspect", "--json", files["refused"], files["pointer"])
    document = json.loads(done.stdout)
    assert (document["schema"], done.returncode) == ("harness.inspect", 2)
    model, unreadable = document["files"]
    assert unreadable["error"]["code"] == "model.lfs_pointer"
    assert model["operator_codes"][0]["custom_name"] == "bad\x1b]0;op\x07"
    tensor = model["subgraphs"][0]["tensors"][0]
    assert (tensor["type"], tensor["shape"], tensor["bytes"]) == ("FLOAT32", [1, 4], 16)
    assert model["subgraphs"][0]["operators"][0]["inputs"] == [0]


def test_inspect_prints_tables_for_a_person(files: dict[str, Path]) -> None:
    text = harness("inspect", files["good"]).stdout
    for title in ("operator codes", 'subgraph 0 "main"', "buffers with data", "metadata", "signatures"):
        assert title in text
    assert "FULLY_CONNECTED" in text
