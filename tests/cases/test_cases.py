"""Every handed case ends as it must: check, then sweep on the host board to the byte."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from harness.cli.main import main
from tests.conftest import find_shared
from tests.host_board.presence import needs_host_board

pytestmark = [pytest.mark.cases, needs_host_board]

#: Said of a row by its set and file.
Row = dict[str, str]


def _rows() -> list[Row]:
    shared = find_shared()
    if shared is None:
        return []
    with (shared / "cases" / "expected.csv").open(newline="") as file:
        return list(csv.DictReader(file))


ROWS = _rows() or [pytest.param({}, marks=pytest.mark.skip(reason="the handed cases are not here: HARNESS_SHARED"))]


def _run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    code = main([*arguments, "--json"])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, json.loads(out)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.get("file", "none") if isinstance(row, dict) else None)
def test_the_case_ends_as_it_must(
    row: Row, shared_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(shared_dir / "cases" / row["set"] / row["file"])
    check_code, checked = _run(capsys, "check", path)
    verdict = checked["files"][0]["verdict"]
    assert (verdict == "refused") == (check_code != 0)
    fill = ["--fill", row["fill"]] if row["fill"] else []
    code, document = _run(capsys, "sweep", "--board", "host", "--step", "1", "--results", str(tmp_path), *fill, path)
    (result,) = document["results"]
    assert result["error"] is None or result["error"]["code"] != "internal"
    match row["expect"]:
        case "works":
            _works(row, code, result)
        case "refused":
            assert verdict == "refused"
            _refused(code, result)
        case "not_ok":
            assert result["status"] != "ok"
            assert code in {1, 2, 6}
            assert result["error"]["message"]
        case "either":
            if result["status"] == "ok":
                _works(row, code, result)
            else:
                _refused(code, result)
        case other:
            raise AssertionError(f"expected.csv says {other}")


def _works(row: Row, code: int, result: dict[str, Any]) -> None:
    assert (code, result["status"], result["error"]) == (0, "ok", None)
    assert result["search"]["min_bytes"] == int(row["min_exact_bytes"])
    assert result["search"]["largest_failing_bytes"] == int(row["min_exact_bytes"]) - 1
    assert result["search"]["flashes"] == 1
    assert result["reconciliation"]["unexplained_bytes"] == 0
    if result["plan"]["arena"]["confidence"] == "exact":
        assert len(result["search"]["trials"]) == 3


def _refused(code: int, result: dict[str, Any]) -> None:
    assert code in {1, 2}
    assert result["status"] == "failed"
    assert result["search"] is None


def test_an_invoke_that_never_returns_ends_as_an_error_that_says_so(
    shared_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """litert_nested_while on 0.0 loops for ever, in LiteRT and in TFLM."""
    path = str(shared_dir / "cases" / "files" / "litert_nested_while.tflite")
    options = ["--fill", "0.0", "--trial-timeout", "1.5", "--results", str(tmp_path)]
    code, document = _run(capsys, "sweep", "--board", "host", *options, path)
    (result,) = document["results"]
    assert (code, result["status"], result["error"]["code"]) == (6, "error", "trial.timeout")
    assert result["error"]["message"].startswith("Invoke did not return in 1.5 s")
