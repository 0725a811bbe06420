"""docs/arena.md says what the tool says: every table, the picture, and the figures in its sentences."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

from harness.abi import abi_named
from harness.cli.main import main

DOCS = Path(__file__).resolve().parent.parent / "docs"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("regenerate_arena", DOCS / "regenerate_arena.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def page() -> str:
    return (DOCS / "arena.md").read_text(encoding="utf-8")


def test_every_table_is_what_the_tool_says(generator: ModuleType, page: str) -> None:
    assert generator.filled(page) == page, "run python docs/regenerate_arena.py"
    assert set(re.findall(r"<!-- tool: (\w+) -->", page)) == set(generator.BLOCKS)


def test_the_picture_is_what_the_tool_draws(generator: ModuleType) -> None:
    assert generator.picture() == (DOCS / "arena-kws.svg").read_text(encoding="utf-8")


def test_the_figures_in_the_sentences_are_the_abi_s(page: str) -> None:
    abi = abi_named("ilp32")
    text = " ".join(page.split())
    per_buffer = sum(
        abi.size(struct)
        for struct in (
            "GreedyMemoryPlanner::BufferRequirements",
            "GreedyMemoryPlanner::ListEntry",
            "int",
            "int",
            "int",
        )
    )
    assert f"a table of {abi.size('AllocationInfo')} bytes for every tensor and scratch buffer" in text
    assert f"and {per_buffer} bytes for every buffer that it places" in text
    assert f"`TfLiteFullyConnectedParams` is {abi.size('TfLiteFullyConnectedParams')} bytes" in text
    assert abi.size("LinearMemoryPlanner") // 1024 == 4
    assert "its planner object alone takes 4 KB" in text


def test_the_example_s_numbers_add_up(generator: ModuleType) -> None:
    page = generator.example("kws")
    assert sum(region.size_bytes for region in page.regions) == page.plan.used_bytes == 22_820
    assert page.peak.live_bytes == page.plan.head_bytes == 16_000


def test_every_key_of_the_document_is_described(page: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    options = ["--planner", "greedy", "--alignments", "--two-arenas", "--headroom", "1.1", "--board", "nucleo-f746zg"]
    model = DOCS.parent / "examples" / "residual.tflite"
    assert main(["plan", str(model), *options, "--write-offline-plan", str(tmp_path / "o.tflite"), "--json"]) == 0
    keys = json.loads(capsys.readouterr().out).keys() - {"schema", "schema_version"}
    described = page.split("## The JSON document")[1].split("## ")[0]
    assert {key for key in keys if f"`{key}`" not in described} == set()


def test_the_measured_offline_plans_are_those_of_the_goldens(page: str) -> None:
    golden = json.loads((DOCS.parent / "tests" / "plan" / "golden_arenas.json").read_text(encoding="utf-8"))
    for row in golden["offline_plan"]:
        saved = round(100 * (1 - row["offline_min_exact"] / row["min_exact"]))
        figures = rf"{row['min_exact']:,} \| {row['offline_min_exact']:,} \| −{saved}% \|"
        assert re.search(rf"\| {row['model']}[^|]*\| {figures}", page), row["model"]
