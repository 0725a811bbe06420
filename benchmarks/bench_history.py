"""A history of 100,000 results: how long it takes to write, to load into pandas, and to answer ``harness history``."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pandas
from result import Row, run

from harness.lab.history import load
from harness.lab.history.store import HistoryStore
from harness.record.lab_run import ConditionsRecord, JobRecord, JobStatus, RunRecord
from harness.record.schema import (
    DeviceRecord,
    MeasuredRecord,
    ModelIdentity,
    RunTimesRecord,
    SearchRecord,
    SweepRecord,
    TimingRecord,
    TrialRecord,
)

RESULTS = 100_000
MODELS, BOARDS, COMMITS = 50, 4, 20
JOB = JobRecord(
    id="", model="", model_path="", model_sha256="ab" * 32, board="", kernels="cmsis_nn", status=JobStatus.PASSED
)
SWEEP = SweepRecord(
    created="2026-01-01T00:00:00Z",
    harness_version="0",
    model=ModelIdentity("m.tflite", "ab" * 32, 1000),
    board="nucleo-f746zg",
    kernels="cmsis_nn",
    status="ok",
    plan={"arena": {"min_bytes": 24272, "used_bytes": 24272}},
)
TRIALS = tuple(TrialRecord(size, "works") for size in (48544, 24272, 24256))


def fill(store: HistoryStore) -> None:
    """Made-up results, as a lab with 50 models on 4 boards leaves them in 500 nights."""
    for number in range(RESULTS):
        night, at = divmod(number, MODELS * BOARDS)
        commit = f"{night * COMMITS * MODELS * BOARDS // RESULTS:040d}"
        run_id = f"run-{night}"
        if at == 0:
            store.add_run(
                RunRecord(
                    run_id=run_id,
                    suite="s",
                    suite_path="",
                    harness_version="0",
                    started=_time(night),
                    finished="",
                    seconds=1,
                )
            )
        conditions = ConditionsRecord(kernels="cmsis_nn", tflm_commit=commit, timing="cycles", clock_hz=216_000_000)
        model, board = f"model{at // BOARDS}", f"board{at % BOARDS}"
        job = msgspec.structs.replace(
            JOB,
            id=f"{model}/{board}",
            model=model,
            board=board,
            rig=board,
            conditions=conditions,
            finished=_time(night),
        )
        sweep = msgspec.structs.replace(
            SWEEP,
            measured=MeasuredRecord(48544, 24272),
            timing=_timing(1_000_000 + (number * 7919) % 5000),
            search=SearchRecord(24272 + 16 * (night > 250), 24256, 16, TRIALS, 1, 48544),
            device=DeviceRecord("00" * 16, commit, "cmsis_nn", "plain", "ilp32", "cycles", 65536, 16),
        )
        store.add_result(run_id, job, sweep)


def _timing(cycles: int) -> TimingRecord:
    return TimingRecord("cycles", RunTimesRecord(48544, 1, 10, 10, cycles, cycles, cycles, cycles, cycles, 0.0, "00"))


def _time(night: int) -> str:
    return (pandas.Timestamp("2025-01-01") + pandas.Timedelta(days=night)).strftime("%Y-%m-%dT%H:%M:%SZ")


def measure() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "history.sqlite"
        with contextlib.closing(HistoryStore.open(str(place))) as store:
            store.database.query("PRAGMA synchronous=OFF")  # filling it is not what is measured
            started = time.perf_counter()
            with _one_transaction(store):
                fill(store)
            yield Row("history: write results with trials", RESULTS / (time.perf_counter() - started), "1/s")
        yield Row("history: size for 100,000 results", place.stat().st_size / 1e6, "MB")
        yield Row("history: load 100,000 results into pandas", _best(lambda: _load(place)), "s", 1.0)
        argv = [sys.executable, "-m", "harness", "history", "model7", "--plot", "--history", str(place)]
        yield Row("harness history MODEL --plot", _best(lambda: _command(argv)), "s", 0.3)
        yield Row("harness history: list of models", _best(lambda: _command(argv[:4] + argv[6:])), "s", 0.3)


@contextlib.contextmanager
def _one_transaction(store: HistoryStore) -> Iterator[None]:
    """Filling in one go: a night's run commits each job."""
    database = store.database
    own = database.transaction
    with own():
        database.transaction = contextlib.nullcontext  # type: ignore[method-assign]
        yield
        database.transaction = own  # type: ignore[method-assign]


def _load(place: Path) -> None:
    frame = load(place)
    assert len(frame) == RESULTS
    assert frame.arena_min_bytes.iloc[-1] == 24288


def _command(argv: list[str]) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert "model7" in done.stdout


def _best(act: object, times: int = 5) -> float:
    assert callable(act)
    seconds = []
    for _ in range(times):
        started = time.perf_counter()
        act()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


if __name__ == "__main__":
    run(measure)
