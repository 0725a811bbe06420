"""``--preserve-all-tensors``: on the host board, and what two traces tell."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.cli.main import main
from harness.model.builder import ModelBuilder, layers
from harness.model.builder.examples import chain as chain_of
from harness.model.graph import Model, TensorType
from harness.model.reader import parse_model
from harness.record.schema import OperatorDifferenceRecord, OverwrittenRecord
from harness.sweep.overlap import first_difference, why_not_traceable
from harness.wire import messages as wire
from tests.device.fakes import FakeDevice
from tests.firmware.offline import overwritten_input
from tests.host_board.presence import needs_host_board

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(capsys: pytest.CaptureFixture[str], results: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    common = ["--board", "host", "--preserve-all-tensors", "--json", "--results", str(results)]
    code = main([arguments[0], *common, *arguments[1:]])
    return code, json.loads(capsys.readouterr().out)["results"][0]


@needs_host_board
@pytest.mark.parametrize(("name", "vectors"), [("hello", 1), ("svdf", 7)])
def test_the_host_board_gives_the_same_outputs_without_reuse(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, vectors: int
) -> None:
    code, result = run(capsys, tmp_path, "sweep", str(EXAMPLES / f"{name}.tflite"))
    found = result["no_reuse"]
    assert (code, found["verdict"], found["vectors"], found["flashes"]) == (0, "equal", vectors, 1)
    assert found["output_digest"] == result["measured"]["output_digest"]
    assert (result["search"]["flashes"], result["device"]["interpreter"]) == (1, "recording")


@needs_host_board
@pytest.mark.parametrize("command", ["sweep", "measure"])
def test_an_overlap_is_a_failure_of_the_model_and_the_operator_is_not_invented(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str
) -> None:
    path = tmp_path / "overlap.tflite"
    path.write_bytes(overwritten_input())
    code, result = run(capsys, tmp_path / "results", command, "--no-check", "--no-reference", str(path))
    assert (code, result["status"], result["error"]["code"]) == (1, "failed", "outputs.overlap")
    assert '"overlap.tflite" on host' in result["error"]["message"]
    assert "no operator is named: the host board does not tell its tensors" in result["error"]["message"]
    assert "offline memory plan" in result["error"]["remedy"]
    found = result["no_reuse"]
    assert (found["verdict"], found["first_difference"], found["flashes"]) == ("different", None, 1)
    assert found["offline_plan_removed"] is True
    (kept,) = (tmp_path / "results" / "firmware").glob("*-without-offline-plan.tflite")
    assert kept.stat().st_size == path.stat().st_size


@needs_host_board
def test_more_buffers_than_the_linear_planner_has_are_not_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "chain.tflite"
    path.write_bytes(chain_of(1024))
    code, result = run(capsys, tmp_path / "results", "sweep", "--no-reference", str(path))
    found = result["no_reuse"]
    assert (code, found["verdict"], found["flashes"]) == (0, "not_run", 0)
    assert "Too many buffers (max is 1024)" in found["detail"]


@needs_host_board
def test_the_baseline_is_not_compared_with_itself(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, result = run(capsys, tmp_path, "sweep", "--interpreter", "preserve_all", str(EXAMPLES / "hello.tflite"))
    assert (code, result["error"]["code"]) == (2, "usage")


@needs_host_board
def test_a_person_reads_it_in_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    options = ["sweep", "--board", "host", "--preserve-all-tensors", "--results", str(tmp_path)]
    assert main([*options, str(EXAMPLES / "hello.tflite")]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "without reuse of memory the outputs are the same (1 inference with preserve_all_tensors in" in out


def chain() -> Model:
    """Tensors without constants: 0 the input, 3, 6 and 9 the outputs of operators 0, 1 and 2; 10 adds 0 and 9."""
    builder = ModelBuilder(seed=1)
    graph = builder.graph
    x = value = graph.input((1, 8), TensorType.INT8, name="x")
    for _ in range(3):
        value = layers.fully_connected(graph, value, 8)
    graph.output(layers.add(graph, x, value))
    return parse_model(builder.finish())


def no_tensor(_index: int) -> Sequence[int]:
    return (7, 7, 7, 7, 7)


def test_the_first_of_several_differences_is_named() -> None:
    found, why = first_difference(chain(), [1, 8, 8, 8], [1, 2, 3, 4], 4, no_tensor)
    assert (found, why) == (OperatorDifferenceRecord(1, "FULLY_CONNECTED", ("main/fully_connected_1",), None), "")


def test_a_tensor_may_change_before_it_is_made_and_after_it_was_read() -> None:
    """Of operator 1's input, made by operator 0: what was there before, and what lies there later, is nobody's."""
    rows = {3: (1, 5, 5, 6, 6)}
    found, _ = first_difference(chain(), [1, 8, 8, 8], [1, 2, 3, 4], 4, lambda index: rows.get(index, (7,) * 5))
    assert found is not None and found.overwritten is None


@pytest.mark.parametrize(
    ("row", "culprit"), [((5, 5, 6, 6, 6), 1), ((5, 6, 6, 6, 6), 0), ((5, 5, 5, 6, 6), 2), ((5, 6, 5, 5, 5), 0)]
)
def test_the_operator_after_which_an_input_is_another_wrote_over_it(row: tuple[int, ...], culprit: int) -> None:
    found, _ = first_difference(
        chain(), [1, 2, 3, 8], [1, 2, 3, 4], 4, lambda index: row if index == 0 else (7, 7, 7, 9, 9)
    )
    assert found is not None
    assert (found.operator, found.name) == (3, "ADD")
    assert found.overwritten == OverwrittenRecord(0, "x", culprit, "FULLY_CONNECTED")


def test_no_difference_in_a_further_run_is_told_as_such() -> None:
    found, why = first_difference(chain(), [1, 2, 3, 4], [1, 2, 3, 4], 4, no_tensor)
    assert found is None and "not repeatable" in why


def test_operators_that_the_device_could_not_keep_are_not_judged() -> None:
    found, why = first_difference(chain(), [1, 2], [1, 2], 4, no_tensor)
    assert (found, why) == (None, "the first 2 of 4 operators, which the device can keep, compute the same")


def test_a_device_of_an_older_protocol_cannot_be_traced() -> None:
    hello = FakeDevice(minor=1)._hello()
    assert why_not_traceable(hello) == "the device speaks protocol 1.1, which has no digests of operators"
    can = dataclasses.replace(hello, minor=2, capabilities=1 << wire.Capability.OPERATOR_DIGESTS)
    assert why_not_traceable(can) == ""
    assert "TF_LITE_STRIP_ERROR_STRINGS" in why_not_traceable(dataclasses.replace(hello, minor=2))
