"""200 jobs over 8 rigs: how much of the time the rigs are used, and what the scheduler itself costs.

The rigs are paced stand-ins, named so: each job takes the time that a board would need for flashing, booting and its
trials, and computes nothing. Dispatch, threads, judging, the run's folder (each line on disk) and the SQLite history
are those of ``harness regress``.
"""

from __future__ import annotations

import contextlib
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from result import Row, run

from harness.board.lab_file import RigEntry
from harness.lab.baseline import BaselineStore
from harness.lab.dispatch import JobState
from harness.lab.evaluation import Evaluator, given_up
from harness.lab.history.store import HistoryStore
from harness.lab.job import Job, jobs_of
from harness.lab.order import Order, Result
from harness.lab.regress import order_of
from harness.lab.run_folder import RunFolder, now_text
from harness.lab.scheduler import Plan, Scheduler
from harness.lab.suite import read_suite
from harness.record.lab_run import AttemptRecord, JobRecord, RunRecord
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

JOBS, RIGS = 200, 8
#: Seconds on a board: flashing 250 KiB, three boots, three trials of a small and of a large model.
SHORTEST_S, LONGEST_S = 0.4, 1.6
TRIALS = tuple(TrialRecord(size, "works") for size in (48544, 24272, 24256))
RECORD = SweepRecord(
    created="2026-01-01T00:00:00Z",
    harness_version="0",
    model=ModelIdentity("m.tflite", "ab" * 32, 1000),
    board="nucleo-f746zg",
    kernels="cmsis_nn",
    status="ok",
    measured=MeasuredRecord(48544, 24272),
    timing=TimingRecord("cycles", RunTimesRecord(48544, 1, 10, 10, *[1_000_000] * 5, 0.0, "00")),
    search=SearchRecord(24272, 24256, 16, TRIALS, 1, 48544),
    device=DeviceRecord("00" * 16, "aaa", "cmsis_nn", "plain", "ilp32", "cycles", 65536, 16),
)


class PacedRig:
    """Implements ``RigWorker``: waits as a board would."""

    def __init__(self, seed: int) -> None:
        self._source = random.Random(seed)
        self._stop = threading.Event()

    def run(self, order: Order, on_text: Callable[[str], None]) -> Result:
        seconds = self._source.uniform(SHORTEST_S, LONGEST_S)
        for stage in ("flash", "boot", "search"):
            on_text(stage)
            self._stop.wait(seconds / 3)
        record = msgspec.structs.replace(RECORD, board=order.board)
        return Result(exit_code=0, seconds=seconds, record=record)

    def stop(self) -> None:
        self._stop.set()


class Quiet:
    """Implements ``Watcher``."""

    def resumed(self, run_id: str, jobs: int) -> None: ...
    def noted(self, text: str) -> None: ...

    def begun(self, job: Job, rig: str, attempt: int) -> None: ...
    def told(self, job: Job, rig: str, text: str) -> None: ...
    def tried(self, job: Job, rig: str, attempt: AttemptRecord) -> None: ...
    def finished(self, record: JobRecord) -> None: ...
    def benched(self, rig: str, why: str) -> None: ...


def measure() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        jobs = _jobs(folder)
        store = stack.enter_context(contextlib.closing(HistoryStore.open(str(folder / "history.sqlite"))))
        run_folder = stack.enter_context(RunFolder.new(folder / "lab", "bench", "bench"))
        store.add_run(
            RunRecord(
                run_id="bench", suite="", suite_path="", harness_version="", started=now_text(), finished="", seconds=0
            )
        )

        def keep_job(record: JobRecord, result: Result | None) -> None:
            run_folder.keep_job(record)
            store.add_result("bench", record, result.record if result else None)

        scheduler = Scheduler(
            Plan(
                rigs=[
                    RigEntry(name=f"rig{number}", board="nucleo-f746zg", probe=str(number)) for number in range(RIGS)
                ],
                jobs=[JobState(job) for job in jobs],
                evaluator=Evaluator(
                    BaselineStore(folder), read_suite(folder / "suite.yaml").baselines, 2, store_past(store)
                ),
                order=lambda job, rig: order_of(job, rig, folder / "jobs", ()),
                open_worker=lambda rig: PacedRig(int(rig.probe)),
                keep_attempt=run_folder.keep_attempt,
                keep_job=keep_job,
                give_up=lambda state, why: given_up(state, why, 5, now_text()),
                watcher=Quiet(),
            )
        )
        cpu, started = time.process_time(), time.perf_counter()
        records = scheduler.run()
        wall, cpu = time.perf_counter() - started, time.process_time() - cpu
        assert len(records) == JOBS
        assert all(record.status.value == "passed" for record in records)
        busy = sum(rig.busy_s for rig in scheduler.rig_records())
    yield Row(f"lab: {JOBS} jobs on {RIGS} paced rigs (stand-ins)", wall, "s")
    yield Row("lab: rig utilisation", 100 * busy / (RIGS * wall), "%", 85, at_least=True)
    yield Row("lab: the scheduler's own work per job", 1000 * cpu / JOBS, "ms")


def store_past(store: HistoryStore) -> Callable[..., list[int | float]]:
    return lambda rig, job, metric, conditions: store.past_values(rig, job.model.name, metric, conditions)


def _jobs(folder: Path) -> list[Job]:
    (folder / "models").mkdir()
    for number in range(JOBS):
        (folder / "models" / f"m{number:03}.tflite").write_bytes(str(number).encode())
    path = folder / "suite.yaml"
    path.write_text(
        "name: bench\nmodels: [{path: 'models/*.tflite'}]\nboards: [nucleo-f746zg]\n"
        "measure: [arena_min_bytes, arena_used_bytes, invoke_cycles]\n"
    )
    return jobs_of(read_suite(path), path)


if __name__ == "__main__":
    run(measure)
