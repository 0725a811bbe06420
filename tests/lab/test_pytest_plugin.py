"""The plugin in a pytest of its own, as a firmware team runs it."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
needs_tflm = pytest.mark.skipif(
    importlib.util.find_spec("tflite_micro") is None, reason="the tflite-micro wheel is Linux x86-64 only"
)


def _pytest(folder: Path, test: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_models.py").write_text(textwrap.dedent(test))
    (folder / "pytest.ini").write_text("[pytest]\n")
    plugin = ["-p", "harness.lab.pytest_plugin", "-p", "no:cacheprovider"]
    argv = [sys.executable, "-m", "pytest", "-q", *plugin, *arguments]
    # the entry point may not be registered where the checkout is only on the path: the plugin is named
    environment = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PATH": "/usr/bin:/bin"}
    return subprocess.run(
        argv, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S, check=False, env=environment
    )


@needs_tflm
def test_a_team_holds_its_models_against_the_host_board(tmp_path: Path) -> None:
    shutil.copy(EXAMPLES / "svdf.tflite", tmp_path)
    done = _pytest(
        tmp_path,
        """
        def test_fits(harness_sweep):
            found = harness_sweep("svdf.tflite")
            assert (found.min_bytes, found.used_bytes, found.unexplained_bytes) == (3328, 2528, 0)

        def test_times_are_those_of_timed_runs(harness_sweep):
            assert harness_sweep("svdf.tflite").invoke_cycles is None
            timed = harness_sweep("svdf.tflite", runs=3)
            assert timed.invoke_cycles == round(timed.record.timing.ample.median) > 0

        def test_too_large(harness_sweep):
            assert harness_sweep("svdf.tflite").min_bytes <= 3000

        def test_no_model(harness_sweep):
            harness_sweep("gone.tflite")

        def test_rig(harness_rig):
            assert harness_rig.board == "host"
        """,
    )
    assert "2 failed, 3 passed" in done.stdout, done.stdout + done.stderr
    assert "assert 3328 <= 3000" in done.stdout
    assert "gone.tflite on host: model.unreadable" in done.stdout
    # swept once, and once more for its times
    assert len(list((tmp_path / "results").glob("*.json"))) == 2


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("step_bytes=0", "ValueError: harness_sweep: step_bytes=0 is not a whole number of bytes from 1"),
        ("step_bytes=1.5", "step_bytes=1.5 is not a whole number"),
        ("seed=-1", "seed=-1 is not a whole number from 0"),
        ("runs=-1", "runs=-1 is not None, or a whole number from 0"),
        ("timeout_s=float('nan')", "timeout_s=nan is not seconds"),
        ("kernels='fast'", "kernels='fast' is not None, 'reference' or 'cmsis_nn'"),
        ("step=16", "TypeError: harness_sweep has no option 'step'; its options are kernels, step_bytes, seed,"),
    ],
)
def test_an_option_that_cannot_be_is_named_where_it_is_written(tmp_path: Path, option: str, told: str) -> None:
    """A step of 0 was a division by zero, called a bug of harness."""
    test = f"""
        def test_fits(harness_sweep):
            harness_sweep("m.tflite", {option})
        """
    out = _pytest(tmp_path, test).stdout
    assert told in out
    assert "test_models.py:3: " in out and "a bug" not in out and "pytest_plugin.py" not in out


def test_a_rig_is_chosen_by_name(tmp_path: Path) -> None:
    (tmp_path / "lab.yaml").write_text("rigs: [{name: a, board: host}, {name: b, board: nucleo-f746zg, probe: '12'}]\n")
    test = """
        def test_rig(harness_rig):
            assert (harness_rig.name, harness_rig.board) == ("b", "nucleo-f746zg")
        """
    assert "1 passed" in _pytest(tmp_path, test, "--harness-rig", "b").stdout
    assert "1 passed" in _pytest(tmp_path, test, "--harness-board", "nucleo-f746zg").stdout
    failed = _pytest(tmp_path, test, "--harness-rig", "c")
    assert 'the lab has no rig "c"; it has a, b' in failed.stdout
