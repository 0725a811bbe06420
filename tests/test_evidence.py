"""The committed evidence: sweeps of real models with real TFLM on twins, held to what is said of them."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from harness.record.store import read_record
from harness.units import align_up

ROOT = Path(__file__).resolve().parent.parent
RECORDS = sorted((ROOT / "results" / "evidence" / "sweeps").glob("*.json"))
QUALIFICATIONS = sorted((ROOT / "results" / "evidence").glob("qualification-*.json"))
#: What the twins' cores and kernel sets were promised to have, each.
LEAST_MODELS = 15
CORES = {"sim:nucleo-f446re": "cortex-m4", "sim:nucleo-f767zi": "cortex-m7"}


def test_both_cores_and_both_kernel_sets_have_enough_models() -> None:
    models = defaultdict(set)
    for path in RECORDS:
        record = read_record(path)
        models[CORES[record.board], record.kernels].add(record.model.sha256)
    assert set(models) == {(core, kernels) for core in CORES.values() for kernels in ("cmsis_nn", "reference")}
    assert min(len(each) for each in models.values()) >= LEAST_MODELS


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_one_flash_three_runs_and_nothing_unexplained(path: Path) -> None:
    record = read_record(path)
    assert (record.status, record.warnings) == ("ok", ())
    assert record.search and record.reconciliation and record.device and record.measured
    assert record.search.flashes == 1
    assert [trial.outcome for trial in record.search.trials] == ["works", "works", "too_small"]
    assert [trial.attempts for trial in record.search.trials] == [1, 1, 1]
    assert {term["unexplained_bytes"] for term in record.reconciliation["terms"]} == {0}
    assert record.search.largest_failing_bytes == (record.search.min_bytes or 0) - record.search.step_bytes
    assert record.device.timing == "instructions"


@pytest.mark.parametrize("path", QUALIFICATIONS, ids=lambda path: path.stem)
def test_every_check_of_a_qualified_twin_passed(path: Path) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    assert (document["qualified"], document["evidence"]) == (True, "twin")
    assert {check["status"] for check in document["checks"]} == {"passed"}
    assert sum(check["name"].startswith("minimum of ") for check in document["checks"]) == 3


def test_the_qualified_twins_are_those_of_the_sweeps() -> None:
    documents = [json.loads(path.read_text(encoding="utf-8")) for path in QUALIFICATIONS]
    qualified = {(document["board"], document["kernels"]) for document in documents}
    assert qualified == {(board, kernels) for board in CORES for kernels in ("cmsis_nn", "reference")}


@pytest.fixture(scope="module")
def golden(shared_dir: Path) -> dict[tuple[str, str, str], dict[str, Any]]:
    """(SHA-256 of the model, core, kernels) → what real TFLM's plain interpreter measured under another emulator."""
    lines = (shared_dir / "golden" / "golden.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return {(row["sha256"], row["core"], row["kernels"]): row for row in rows if row["interpreter"] == "plain"}


@pytest.mark.cases
@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_the_minimum_is_the_golden_one(path: Path, golden: dict[tuple[str, str, str], dict[str, Any]]) -> None:
    record = read_record(path)
    row = golden[record.model.sha256, CORES[record.board], record.kernels]
    assert record.search and record.measured
    assert record.search.min_bytes == align_up(row["min_exact_bytes"], record.search.step_bytes)
    assert record.measured.used_bytes == row["used_bytes"]
