"""A lab of four twins, two of them served on TCP by other processes: six models, a dead probe, a lossy line, a
regression, and a kill -9 in the middle. Firmware, pyOCD and protocol are real; TFLM is the fake of the firmware tests.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import xmlschema

from harness.lab.history import load
from harness.lab.run_folder import read_journal
from harness.model.builder import ModelBuilder, layers
from harness.model.graph import TensorType
from tests.firmware.fake_tflm import build_fake_tflm
from tests.patience import PATIENCE_S
from tests.processes import Signalled

BOARD = "sim:nucleo-f446re"
HARNESS = [sys.executable, "-m", "harness"]
SCHEMA = Path(__file__).resolve().parents[1] / "report" / "junit.xsd"
pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("unicorn") is None, reason="the extra [sim] is not installed"),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="pseudo-terminals, and /proc to know when to kill"),
]


def _model(depth: int) -> bytes:
    """A chain of ``depth`` fully connected layers of 16 int8 values."""
    builder = ModelBuilder(seed=1, description=f"chain of {depth}")
    value = builder.graph.input((1, 16), TensorType.INT8)
    for _ in range(depth):
        value = layers.fully_connected(builder.graph, value, 16)
    builder.graph.output(value)
    return builder.finish()


@pytest.fixture(scope="module")
def fake_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("arm-none-eabi-g++") is None:
        pytest.skip("arm-none-eabi-g++ is not installed: harness doctor names the packages")
    return build_fake_tflm(tmp_path_factory.mktemp("fake-tflm"), "cortex-m4+fp", "cmsis_nn")


@pytest.fixture
def served() -> Iterator[list[dict[str, Any]]]:
    """Two twins in processes of their own, one by RFC 2217 and one by a plain socket."""
    command = [*HARNESS, "sim", "serve", "--board", "nucleo-f446re", "--json"]
    processes = [subprocess.Popen([*command, *extra], stdout=subprocess.PIPE, text=True) for extra in ([], ["--raw"])]
    try:
        yield [json.loads(process.stdout.readline()) for process in processes if process.stdout]
    finally:
        for process in processes:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=PATIENCE_S)


@pytest.fixture
def lab(tmp_path: Path, served: list[dict[str, Any]]) -> Path:
    """The folder of a lab: models m1 … m6, suite, rigs. m6 is for the rig far1 alone."""
    for depth in range(1, 7):
        (tmp_path / f"m{depth}.tflite").write_bytes(_model(depth))
    rigs = [
        {"name": "lossy", "board": BOARD, "faults": ["drop=997"]},
        {"name": "far1", "board": BOARD, "probe": served[0]["probe"], "port": served[0]["port"]},
        {"name": "dead", "board": BOARD, "faults": ["probe-busy"]},
        {"name": "far2", "board": BOARD, "probe": served[1]["probe"], "port": served[1]["port"]},
    ]
    (tmp_path / "lab.yaml").write_text(json.dumps({"rigs": rigs}))
    models = [{"path": f"m{depth}.tflite", "boards": [BOARD]} for depth in range(1, 6)]
    suite = {
        "name": "night",
        "models": [*models, {"path": "m6.tflite", "boards": ["far1"]}],
        "boards": [BOARD, {"rig": "far1"}],
        "measure": ["arena_min_bytes", "arena_used_bytes"],
        "bench_after": 1,
        "trial_timeout_s": 60,
        "baselines": {"folder": "baselines", "missing": "fail"},
    }
    (tmp_path / "suite.yaml").write_text(json.dumps(suite))
    return tmp_path


@pytest.fixture
def environment(fake_library: Path, tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "HARNESS_HISTORY"}
    # rigs of other runs of these tests have the same names
    return kept | {"HARNESS_TFLM": str(fake_library), "XDG_STATE_HOME": str(tmp_path / "state")}


def _harness(lab: Path, environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    argv = [*HARNESS, *arguments]
    return subprocess.run(
        argv, cwd=lab, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


def test_a_night_with_faults_ends_with_the_right_statuses(lab: Path, environment: dict[str, str]) -> None:
    healthy = lab / "healthy.yaml"
    entries = json.loads((lab / "lab.yaml").read_text())["rigs"]
    healthy.write_text(json.dumps({"rigs": [entry for entry in entries if "faults" not in entry]}))
    suite = (lab / "suite.yaml").read_text()
    (lab / "first.yaml").write_text(suite.replace('"missing": "fail"', '"missing": "ignore"'))
    first = _harness(lab, environment, "regress", "first.yaml", "--lab", "healthy.yaml", "--json")
    assert first.returncode == 0, first.stdout + first.stderr
    assert _harness(lab, environment, "baseline", "update", "first.yaml", "--yes").returncode == 0
    assert len(list((lab / "baselines").glob("*.json"))) == 6

    (lab / "m6.tflite").write_bytes(_model(8))  # somebody made the model larger
    finished = _killed_after_two(lab, environment)
    assert len(finished) >= 2

    done = _harness(lab, environment, "regress", "suite.yaml", "--json", "--junit-xml", "junit.xml")
    run = json.loads(done.stdout)
    jobs = {job["model"]: job for job in run["jobs"]}
    assert done.returncode == 1
    assert run["resumed_jobs"] == len(finished)
    for name, job in jobs.items():
        rigs = [attempt["rig"] for attempt in job["attempts"]]
        expected = "failed" if name == "m6" else "flaky" if "dead" in rigs else "passed"
        assert (name, job["status"]) == (name, expected), job
        if "dead" in rigs:
            assert rigs[0] == "dead" and job["rig"] != "dead"
            assert "probe.busy" in job["reason"]
    assert "arena_min_bytes" in jobs["m6"]["reason"]
    assert jobs["m6"]["rig"] == "far1"
    assert {rig["name"]: bool(rig["benched"]) for rig in run["rigs"] if rig["name"] != "dead"} == {
        "lossy": False,
        "far1": False,
        "far2": False,
    }
    # what was finished before the kill was neither run again nor told again
    told = [line for line in done.stderr.splitlines() if line.startswith("[")]
    assert len(told) == 6 - len(finished)
    assert not any(f" {job} " in line for line in told for job in finished)
    xmlschema.XMLSchema(SCHEMA).validate((lab / "junit.xml").read_text())
    frame = load(lab / "results" / "history.sqlite")
    assert len(frame[frame.run_id == run["run_id"]]) == 6
    assert set(frame.timing) == {"instructions"}


def _killed_after_two(lab: Path, environment: dict[str, str]) -> set[str]:
    """Start a run and kill it after its second job; the ids of the jobs that were finished."""
    killed = Signalled(
        signal.SIGKILL,
        "run.jsonl",
        '"type":"job"',
        2,
        lab / "children",
        "regress",
        "suite.yaml",
        cwd=lab,
        env=environment,
        timeout=PATIENCE_S,
    )
    assert killed.done.returncode == -signal.SIGKILL, killed.done.stderr
    (journal,) = [
        path
        for path in (lab / "results" / "lab").glob("*-night-*/run.jsonl")
        if not path.with_name("run.json").exists()
    ]
    past = read_journal(journal)
    assert past is not None
    return set(past.finished)
