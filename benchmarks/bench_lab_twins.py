"""200 jobs over 8 paced twins, as ``harness regress`` runs them: how much of the time the rigs are used.

Firmware, pyOCD, protocol and scheduler are real; TFLM is the tests' fake: the benchmark is of the lab, and its models
are tiny. Paced twins take the time of a board: they mostly wait. Needs the cross compiler and the extra [sim].
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from result import Row, run

ROOT = Path(__file__).resolve().parent.parent
BOARD = "sim:nucleo-f446re"
JOBS, RIGS, MODELS = 200, 8, 4


def measure() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_lab(folder)
        environment = dict(os.environ, HARNESS_TFLM=library(folder), XDG_RUNTIME_DIR=str(folder))
        argv = [sys.executable, "-m", "harness", "regress", "suite.yaml", "--json"]
        started = time.perf_counter()
        done = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        wall = time.perf_counter() - started
        document = json.loads(done.stdout)
        assert done.returncode == 0, done.stderr[-2000:]
        jobs, rigs = document["jobs"], document["rigs"]
        assert len(jobs) == JOBS
        assert all(job["status"] == "passed" for job in jobs)
        span = document["seconds"]
        yield Row(f"{JOBS} jobs on {RIGS} paced twins, whole command", wall, "s")
        yield Row("rig utilisation", 100 * sum(rig["busy_s"] for rig in rigs) / (RIGS * span), "%", 85, at_least=True)


def write_lab(folder: Path) -> None:
    sys.path.insert(0, str(ROOT))
    from harness.model.builder import ModelBuilder, layers
    from harness.model.graph import TensorType

    for depth in range(1, MODELS + 1):
        builder = ModelBuilder(seed=1, description=f"chain of {depth}")
        value = builder.graph.input((1, 16), TensorType.INT8)
        for _ in range(depth):
            value = layers.fully_connected(builder.graph, value, 16)
        builder.graph.output(value)
        (folder / f"m{depth}.tflite").write_bytes(builder.finish())
    rigs = [{"name": f"twin{number}", "board": BOARD, "pace": True} for number in range(RIGS)]
    suite = {
        "name": "night",
        "models": [{"path": "*.tflite"}],
        "boards": [BOARD],
        "repeat": JOBS // MODELS,
        "measure": ["arena_min_bytes", "arena_used_bytes"],
        "baselines": {"folder": "baselines", "missing": "ignore"},
        "trial_timeout_s": 120,
    }
    (folder / "lab.yaml").write_text(json.dumps({"rigs": rigs}))
    (folder / "suite.yaml").write_text(json.dumps(suite))


def library(folder: Path) -> str:
    from tests.firmware.fake_tflm import build_fake_tflm

    return str(build_fake_tflm(folder / "fake-tflm", "cortex-m4+fp", "cmsis_nn"))


if __name__ == "__main__":
    run(measure)
