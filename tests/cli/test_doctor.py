"""``harness doctor`` on the machine at hand, and on one that lacks something."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from harness import __version__
from tests.patience import PATIENCE_S


def doctor(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "harness", "doctor", *args]
    return subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE_S, env=os.environ | env, check=False)


def document(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(done.stdout)
    return parsed


def test_json_is_one_document_and_agrees_with_the_exit_code() -> None:
    done = doctor("--json")
    found = document(done)
    assert (found["schema"], found["schema_version"], found["version"]) == ("harness.doctor", 1, __version__)
    assert done.returncode == (0 if found["ok"] else 3)
    names = {part["name"]: part for part in found["parts"]}
    assert names["python"]["version"] == ".".join(map(str, sys.version_info[:3]))
    assert names["click"]["required"] is True
    assert {"sweep on the host board", "build firmware"} <= {entry["name"] for entry in found["capabilities"]}


def test_an_empty_path_lacks_the_compiler_and_says_what_that_costs(tmp_path: Path) -> None:
    found = document(doctor("--json", PATH="/nonexistent", HARNESS_TFLM="", XDG_DATA_HOME=str(tmp_path)))
    compiler = next(part for part in found["parts"] if part["name"] == "arm-none-eabi-g++")
    assert (compiler["status"], compiler["required"]) == ("missing", False)
    build = next(entry for entry in found["capabilities"] if entry["name"] == "build firmware")
    assert build == {"name": "build firmware", "available": False, "missing": ["TFLM library", "arm-none-eabi-g++"]}


def test_a_broken_package_ends_in_exit_code_3_and_names_the_remedy(tmp_path: Path) -> None:
    """A tflite_micro that cannot be imported: found by loading it, not by its metadata."""
    (tmp_path / "tflite_micro").mkdir()
    (tmp_path / "tflite_micro" / "__init__.py").write_text("raise ImportError('libstdc++ is too old')\n")
    done = doctor(PYTHONPATH=str(tmp_path), COLUMNS="200")
    assert done.returncode == 3
    assert "ImportError: libstdc++ is too old" in done.stdout
    assert "sweep on the host board: no, for want of tflite-micro" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
