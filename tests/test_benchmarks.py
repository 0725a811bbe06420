"""The benchmarks can be loaded with the code as it is, and their verdicts are right. ``make bench`` runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks"


def python(program: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PYTHONPATH": str(FOLDER)}
    argv = [sys.executable, "-c", program]
    return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("bench_*.py")), ids=lambda path: path.stem)
def test_a_benchmark_can_be_loaded_and_is_described(path: Path) -> None:
    done = python(f"import {path.stem}")
    assert done.returncode == 0, done.stderr
    assert f"`{path.name}`" in (FOLDER / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("row", "kept"),
    [
        ("Row('a', 2, 's', 3)", True),
        ("Row('a', 4, 's', 3)", False),
        ("Row('a', 4, '1/s', 3, at_least=True)", True),
        ("Row('a', 2, '1/s', 3, at_least=True)", False),
        ("Row('a', 2, 's')", True),
    ],
)
def test_a_missed_limit_ends_with_1_and_says_so(row: str, kept: bool) -> None:
    program = f"from result import Row, run; run(lambda: [{row}])"
    done = python(program)
    assert (done.returncode, "MISSED" in done.stdout) == (0 if kept else 1, not kept)


def test_json_gives_the_rows() -> None:
    done = python(
        "import sys; sys.argv.append('--json'); from result import Row, run; run(lambda: [Row('a', 2, 's', 3)])"
    )
    (row,) = json.loads(done.stdout)
    assert (row["what"], row["value"], row["limit"], row["kept"]) == ("a", 2, 3, True)
