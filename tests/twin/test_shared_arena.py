"""``harness sweep --shared-arena``: several models in one firmware, swept on a twin."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.board.lab_file import RigEntry
from harness.cli.main import main
from harness.firmware.registry import VARIABLE
from harness.model.reader import read_model
from harness.plan.shared import SharedPlan, plan_models
from harness.plan.target import target_for
from harness.record.schema import SweepRecord
from harness.record.store import read_record
from harness.report.arena_snippet import arena_snippet
from harness.sweep.flow import keep_record, sweep_model
from harness.sweep.request import SilentProgress, SweepRequest
from harness.units import align_up
from harness.wire.generator import digest, generate_input

from .conftest import small_model

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
BOARD = "nucleo-f446re"
#: The stand-in's rules: the head is one model's, the tails and 24 bytes for each of 7 tensors are those of both.
USED = 3 * 64 + 2 * (256 + 2 * 16)
MINIMUM = align_up(USED + 24 * (7 + 7), 16)


@pytest.fixture
def other(tmp_path: Path) -> Path:
    path = tmp_path / "other.tflite"
    path.write_bytes(small_model("the other model"))
    return path


def test_the_smallest_shared_arena_is_found_and_certified(sweep: Callable[..., SweepRecord], other: Path) -> None:
    record = sweep(BOARD, others=(other,), runs=0, certify=True)
    assert record.status == "ok", record.error
    assert record.measured is not None and record.search is not None and record.certificate is not None
    assert (record.measured.used_bytes, record.search.min_bytes, record.search.flashes) == (USED, MINIMUM, 1)
    assert record.search.largest_failing_bytes == MINIMUM - 16
    assert record.certificate.works.arena_bytes == MINIMUM
    assert record.certificate.fails is not None and record.certificate.fails.outcome == "too_small"
    inputs = [generate_input(1, index, 9, 64) for index in range(2)]
    outputs = [bytes(data[i % 64] ^ i for i in range(64)) for data in inputs]  # the stand-in's
    assert record.measured.output_digest == f"{digest(*outputs):016x}"


def test_the_record_names_each_model_and_holds_the_shared_plan(
    sweep: Callable[..., SweepRecord], other: Path, tmp_path: Path
) -> None:
    record = sweep(BOARD, others=(other,), runs=0)
    models = [read_model(tmp_path / "small.tflite"), read_model(other)]
    assert [(one.path, one.sha256, one.bytes) for one in record.shared_by] == [
        (model.path, model.sha256, model.size_bytes) for model in models
    ]
    assert record.model.path == f"{models[0].path} + {models[1].path}"
    assert record.model.sha256 not in {model.sha256 for model in models}
    plan = plan_models(models, target_for("cortex-m4"))
    assert isinstance(plan, SharedPlan) and record.plan is not None
    assert record.plan["schema"] == "harness.shared_plan"
    assert record.plan["arena"]["min_bytes"] == plan.arena.min_bytes
    assert [entry["model"]["sha256"] for entry in record.plan["models"]] == [model.sha256 for model in models]
    assert record.record_path is not None and read_record(Path(record.record_path)).shared_by == record.shared_by
    assert record.model_name == "small.tflite + other.tflite"
    assert "-small_other-sim_nucleo-f446re-" in record.record_path
    assert any("small.tflite + other.tflite on " in line for line in arena_snippet(record))
    # a stand-in has other sizes than TFLM: the reconciliation says so
    assert record.reconciliation is not None and record.reconciliation["unexplained_bytes"] != 0


def test_the_order_is_part_of_the_trials_identity(sweep: Callable[..., SweepRecord], other: Path) -> None:
    one, again = sweep(BOARD, others=(other,), runs=0), sweep(BOARD, others=(other, other), runs=0)
    assert one.model.sha256 != again.model.sha256
    assert again.measured is not None and again.measured.used_bytes == USED + 256 + 2 * 16


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["kws"], "at least two models"),
        (["kws", "hello", "--runs", "3"], "measures no times"),
        (["kws", "hello", "--interpreter", "preserve_all"], "linear planner"),
        (["kws", "hello", "--vary", "interpreter=plain,preserve_all"], "linear planner"),
        (["kws", "hello", "--board", "host"], "host board runs one model"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_shared_is_refused(
    arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = [str(EXAMPLES / f"{word}.tflite") if word in {"kws", "hello"} else word for word in arguments]
    common = ["sweep", "--board", f"sim:{BOARD}", "--shared-arena", "--json", "--results", str(tmp_path)]
    assert main([*common, *named]) == 2
    document = json.loads(capsys.readouterr().out)
    error = document["results"][0]["error"] if "results" in document else document["error"]
    assert words in error["message"]
    assert list(tmp_path.glob("*.json")) == [] or "host" in arguments


@pytest.mark.tflm
@pytest.mark.parametrize("interpreter", ["plain", "recording"])
@pytest.mark.parametrize("names", [("hello", "kws"), ("svdf", "residual", "hello")], ids="+".join)
def test_real_tflm_needs_what_the_shared_plan_says(names: tuple[str, ...], interpreter: str, tmp_path: Path) -> None:
    record = real_sweep([EXAMPLES / f"{name}.tflite" for name in names], tmp_path, interpreter)
    assert_as_planned(record)


@pytest.mark.tflm
@pytest.mark.cases
def test_real_models_need_what_the_shared_plan_says(shared_dir: Path, tmp_path: Path) -> None:
    names = ["arduino_hello_world", "micro_speech_quantized"]
    record = real_sweep([shared_dir / "models" / f"{name}.tflite" for name in names], tmp_path, "plain")
    assert_as_planned(record)
    assert record.search is not None and record.search.min_bytes == 7472


def real_sweep(paths: list[Path], folder: Path, interpreter: str) -> SweepRecord:
    if not os.environ.get(VARIABLE):
        pytest.skip(f"{VARIABLE} names no TFLM library")
    request = SweepRequest(
        paths[0],
        f"sim:{BOARD}",
        others=tuple(paths[1:]),
        interpreter=interpreter,
        results=folder,
        rig=RigEntry(name="desk", board=BOARD),
        runs=0,
    )
    return keep_record(sweep_model(request, SilentProgress()))


def assert_as_planned(record: SweepRecord) -> None:
    assert record.status == "ok", record.error
    assert record.search is not None and record.plan is not None and record.measured is not None
    assert record.measured.used_bytes == record.plan["arena"]["used_bytes"]
    assert record.search.min_bytes == record.plan["arena"]["min_bytes"]
    assert (record.search.flashes, len(record.search.trials)) == (1, 3)
    assert record.reconciliation is not None and record.reconciliation["unexplained_bytes"] == 0
    assert record.reference is not None
    assert record.reference.agreement in {"bit_exact", "close"}, record.reference
