"""A folder that may not be written to: one exit code, one code and one remedy, whichever command finds out."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from harness.cli.main import main
from harness.record.store import ResultsError, kept_in

from .test_build import EXAMPLE, build, tree

__all__ = ["build", "tree"]  # fixtures


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/sys is where nobody may make a folder")
@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("build", str(EXAMPLE), "--board", "nucleo-f446re", "--out"), "--out"),
        (("flash", str(EXAMPLE), "--board", "sim:nucleo-f446re", "--results"), "--results"),
        (("qualify", "--board", "sim:nucleo-f446re", "--results"), "--results"),
        (("sweep", str(EXAMPLE), "--board", "sim:nucleo-f446re", "--results"), "--results"),
    ],
)
def test_the_option_that_names_another_folder_is_told(
    build: object, capfd: pytest.CaptureFixture[str], arguments: tuple[str, ...], option: str
) -> None:
    assert build, "the stand-in for TFLM is the registered one"
    assert main([*arguments, "/sys/harness", "--json"]) == 3
    document = json.loads(capfd.readouterr().out)
    error = document["error"] if "error" in document else document["results"][0]["error"]
    assert (error["code"], error["remedy"]) == ("results.unwritable", f"name a folder with {option}")
    assert "/sys/harness" in error["message"]


def test_only_what_is_about_the_folder_is_translated(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), kept_in(tmp_path / "results"):
        (tmp_path / "model.tflite").read_bytes()
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ResultsError, match="cannot write"), kept_in(tmp_path / "file" / "results"):
        (tmp_path / "file" / "results" / "src").mkdir(parents=True)
