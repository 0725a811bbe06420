"""Scheduling with fake rigs: each keeps the state that it would have (dead, flaky, busy), and does what it says."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from harness.board.lab_file import RigEntry
from harness.deadline import Deadline
from harness.lab.baseline import BaselineStore
from harness.lab.dispatch import JobState
from harness.lab.evaluation import Evaluator, given_up
from harness.lab.job import Job, jobs_of
from harness.lab.order import Order, Result
from harness.lab.regress import order_of
from harness.lab.scheduler import Plan, Scheduler
from harness.lab.suite import read_suite
from harness.record.lab_run import AttemptRecord, JobRecord, JobStatus, MetricStatus, RigRecord
from harness.record.schema import ErrorRecord
from harness.report.junit import junit_xml
from harness.report.lab_table import run_report
from tests.lab import samples
from tests.patience import PATIENCE_S

BOARD = "nucleo-f746zg"
DEAD = Result(exit_code=5, seconds=0.1, error=ErrorRecord("probe.gone", "the probe is gone", "plug it in"))
SILENT = Result(exit_code=6, seconds=0.1, error=ErrorRecord("link.silent", "no answer", "check the cable"))
UNFIT = Result(exit_code=1, seconds=0.1, error=ErrorRecord("model.unfit", "no kernel for X", "leave X out"))
DIFFER = Result(exit_code=1, seconds=0.1, error=ErrorRecord("outputs.differ", "by 3 steps", "allow more"))
HANGS = Result(exit_code=6, seconds=0.1, error=ErrorRecord("trial.timeout", "Invoke does not end", "other input"))
BUILD = Result(exit_code=4, seconds=0.1, error=ErrorRecord("build.failed", "undefined reference", "look"))
BUSY = Result(exit_code=5, seconds=0.0, error=ErrorRecord("rig.busy", "held by pid 7 for 3 s", "wait"))
GOOD = Result(exit_code=0, seconds=0.1, record=samples.sweep())


@dataclass(slots=True)
class FakeRig:
    """Implements ``RigWorker``. ``script`` says what comes of the next orders; after it, ``then``."""

    script: list[Result] = field(default_factory=list)
    then: Result = GOOD
    by_model: dict[str, Result] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)
    running: bool = False
    stopped: bool = False
    gate: threading.Barrier | None = None

    def run(self, order: Order, on_text: Callable[[str], None]) -> Result:
        assert not self.running, "two jobs at once on one rig"
        self.running = True
        try:
            on_text("flash")
            if self.gate is not None:
                self.gate.wait(timeout=PATIENCE_S)
            self.seen.append(order.job_id)
            if self.script:
                return self.script.pop(0)
            return self.by_model.get(Path(order.model_path).stem, self.then)
        finally:
            self.running = False

    def stop(self) -> None:
        self.stopped = True


class Silent:
    """Implements ``Watcher``; keeps the benched."""

    def __init__(self) -> None:
        self.benched_rigs: list[str] = []
        self.finished_jobs: list[str] = []

    def resumed(self, run_id: str, jobs: int) -> None: ...

    def noted(self, text: str) -> None: ...

    def begun(self, job: Job, rig: str, attempt: int) -> None: ...

    def told(self, job: Job, rig: str, text: str) -> None: ...

    def tried(self, job: Job, rig: str, attempt: AttemptRecord) -> None: ...

    def finished(self, record: JobRecord) -> None:
        self.finished_jobs.append(record.id)

    def benched(self, rig: str, why: str) -> None:
        assert why
        self.benched_rigs.append(rig)


@dataclass(slots=True)
class Outcome:
    jobs: dict[str, JobRecord]
    rigs: dict[str, RigRecord]
    watcher: Silent

    def statuses(self) -> dict[str, str]:
        return {name: job.status.value for name, job in self.jobs.items()}


def _jobs(folder: Path, count: int, boards: str = BOARD) -> list[Job]:
    for number in range(count):
        (folder / f"m{number}.tflite").write_bytes(bytes([number]))
    path = folder / "suite.yaml"
    path.write_text(f"name: s\nmodels: [{{path: 'm*.tflite'}}]\nboards: [{boards}]\n")
    return jobs_of(read_suite(path), path)


def _run(
    folder: Path,
    rigs: dict[str, FakeRig],
    *,
    jobs: Sequence[Job] | None = None,
    count: int = 6,
    boards: dict[str, str] | None = None,
    retries: int = 2,
    bench_after: int = 3,
    deadline: Deadline | None = None,
    lease_timeout_s: float = 60.0,
    keep_attempt: Callable[[str, AttemptRecord], None] = lambda *_: None,
) -> Outcome:
    watcher = Silent()
    entries = [RigEntry(name=name, board=(boards or {}).get(name, BOARD), probe=f"uid-{name}") for name in rigs]
    suite = read_suite(folder / "suite.yaml") if jobs else None
    jobs = _jobs(folder, count) if jobs is None else jobs
    settings = (suite or read_suite(folder / "suite.yaml")).baselines
    scheduler = Scheduler(
        Plan(
            rigs=entries,
            jobs=[JobState(job) for job in jobs],
            evaluator=Evaluator(BaselineStore(folder / "baselines"), settings, retries, lambda *_: ()),
            order=lambda job, rig: order_of(job, rig, folder / "jobs", ()),
            open_worker=lambda rig: rigs[rig.name],
            keep_attempt=keep_attempt,
            keep_job=lambda *_: None,
            give_up=lambda state, why: given_up(state, why, 5, "2026-01-01T00:00:00Z"),
            watcher=watcher,
            bench_after=bench_after,
            deadline=deadline or Deadline.never(),
            lease_timeout_s=lease_timeout_s,
        )
    )
    records = scheduler.run()
    assert len({record.id for record in records}) == len(records)
    return Outcome(
        {record.model: record for record in records}, {rig.name: rig for rig in scheduler.rig_records()}, watcher
    )


def test_every_job_passes_once(tmp_path: Path) -> None:
    rigs = {"left": FakeRig(), "right": FakeRig()}
    done = _run(tmp_path, rigs)
    assert set(done.statuses().values()) == {"passed"}
    assert len(rigs["left"].seen) + len(rigs["right"].seen) == 6
    assert all(rig.stopped for rig in rigs.values() if rig.seen)
    assert done.rigs["left"].jobs + done.rigs["right"].jobs == 6


def test_rigs_work_at_the_same_time(tmp_path: Path) -> None:
    # each rig waits inside its job until both are in one: passes only when they overlap
    gate = threading.Barrier(2)
    done = _run(tmp_path, {"left": FakeRig(gate=gate), "right": FakeRig(gate=gate)}, count=2)
    assert set(done.statuses().values()) == {"passed"}


def test_a_dead_rig_is_benched_and_its_jobs_go_to_its_twin(tmp_path: Path) -> None:
    rigs = {"left": FakeRig(then=DEAD), "right": FakeRig()}
    done = _run(tmp_path, rigs, count=8)
    assert set(done.statuses().values()) <= {"passed", "flaky"}
    assert len(rigs["right"].seen) == 8
    assert len(rigs["left"].seen) <= 3
    for job in done.jobs.values():
        if job.status is JobStatus.FLAKY:
            assert job.reason == "attempt 1 on left: probe.gone: the probe is gone"
            assert [attempt.rig for attempt in job.attempts] == ["left", "right"]


def test_a_benched_rig_says_why(tmp_path: Path) -> None:
    done = _run(tmp_path, {"left": FakeRig(then=DEAD)}, count=5)
    assert done.rigs["left"].benched == "3 errors in a row, the last: probe.gone: the probe is gone"
    assert done.watcher.benched_rigs == ["left"]
    # what was tried has its own error, the rest was not begun
    assert done.statuses() == {"m0": "error", "m1": "error", "m2": "error", "m3": "blocked", "m4": "blocked"}
    assert "every rig for it is benched: left" in done.jobs["m4"].reason
    assert [attempt.rig for attempt in done.jobs["m0"].attempts] == ["left"]
    assert done.jobs["m0"].reason.startswith("probe.gone: the probe is gone; not tried again: every rig")
    assert done.jobs["m0"].exit_code == done.jobs["m4"].exit_code == 5


def test_errors_that_are_not_in_a_row_bench_nobody(tmp_path: Path) -> None:
    done = _run(tmp_path, {"left": FakeRig(script=[SILENT, GOOD] * 3)}, count=6)
    assert done.rigs["left"].benched == ""
    assert sorted(done.statuses().values()) == ["flaky"] * 3 + ["passed"] * 3


def test_retries_are_bounded_and_all_recorded(tmp_path: Path) -> None:
    done = _run(tmp_path, {"left": FakeRig(then=SILENT)}, count=1, bench_after=10)
    job = done.jobs["m0"]
    assert job.status is JobStatus.ERROR
    assert [(attempt.number, attempt.rig, attempt.status) for attempt in job.attempts] == [
        (1, "left", "error"),
        (2, "left", "error"),
        (3, "left", "error"),
    ]
    assert job.exit_code == 6
    assert job.reason == "link.silent: no answer"


@pytest.mark.parametrize(
    ("result", "status", "exit_code"),
    [(UNFIT, "failed", 1), (DIFFER, "failed", 1), (HANGS, "failed", 1), (BUILD, "error", 4)],
)
def test_what_would_be_the_same_again_is_not_tried_again(
    tmp_path: Path, result: Result, status: str, exit_code: int
) -> None:
    rig = FakeRig(by_model={"m1": result})
    done = _run(tmp_path, {"left": rig}, count=3, bench_after=1)
    assert done.statuses() == {"m0": "passed", "m1": status, "m2": "passed"}
    assert len(rig.seen) == 3
    assert done.jobs["m1"].exit_code == exit_code


def test_a_rig_held_by_another_run_is_waited_for_and_not_blamed(tmp_path: Path) -> None:
    rig = FakeRig(script=[BUSY])
    done = _run(tmp_path, {"left": rig}, count=1, bench_after=1)
    assert done.statuses() == {"m0": "passed"}
    assert done.jobs["m0"].attempts[0].number == 1
    assert len(rig.seen) == 2


def test_the_wait_for_a_held_rig_ends(tmp_path: Path) -> None:
    done = _run(tmp_path, {"left": FakeRig(then=BUSY)}, count=1, lease_timeout_s=0.0)
    assert done.statuses() == {"m0": "blocked"}
    assert "held by another process" in done.jobs["m0"].reason


def test_after_the_time_is_over_nothing_is_begun(tmp_path: Path) -> None:
    done = _run(tmp_path, {"left": FakeRig(gate=threading.Barrier(1))}, count=3, deadline=Deadline.after(-1))
    assert len(done.jobs) == 3
    assert all(job.status in {JobStatus.BLOCKED, JobStatus.PASSED} for job in done.jobs.values())
    blocked = [job for job in done.jobs.values() if job.status is JobStatus.BLOCKED]
    assert all("--max-minutes" in job.reason for job in blocked)


def test_a_job_for_one_rig_runs_nowhere_else(tmp_path: Path) -> None:
    jobs = _jobs(tmp_path, 4, boards="{rig: right}")
    rigs = {"left": FakeRig(), "right": FakeRig()}
    done = _run(tmp_path, rigs, jobs=jobs)
    assert set(done.statuses().values()) == {"passed"}
    assert (len(rigs["left"].seen), len(rigs["right"].seen)) == (0, 4)


def test_jobs_go_to_rigs_of_their_board(tmp_path: Path) -> None:
    jobs = _jobs(tmp_path, 3, boards=f"{BOARD}, nrf52840dk")
    rigs = {"left": FakeRig(), "nordic": FakeRig()}
    _run(tmp_path, rigs, jobs=jobs, boards={"nordic": "nrf52840dk"})
    assert all("nrf52840dk" in job for job in rigs["nordic"].seen)
    assert len(rigs["nordic"].seen) == len(rigs["left"].seen) == 3


def test_jobs_of_a_comparison_miss_no_baseline(tmp_path: Path) -> None:
    """They are not held against one, and each of their numbers was told as having none."""
    _jobs(tmp_path, 1)
    path = tmp_path / "suite.yaml"
    jobs = jobs_of(read_suite(path), path, tflm=("old", "new"))
    outcome = _run(tmp_path, {"left": FakeRig()}, jobs=jobs)
    assert outcome.rigs["left"].jobs == 2
    assert {metric.status for job in outcome.jobs.values() for metric in job.metrics} == {MetricStatus.PASSED}


def test_an_error_on_this_side_ends_the_run_and_stops_the_workers(tmp_path: Path) -> None:
    def full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    rigs = {"left": FakeRig(), "right": FakeRig()}
    with pytest.raises(OSError, match="No space left"):
        _run(tmp_path, rigs, count=4, keep_attempt=full_disk)
    assert all(rig.stopped for rig in rigs.values() if rig.seen)
    assert sum(len(rig.seen) for rig in rigs.values()) <= 2


def test_the_remedy_of_an_error_goes_along_to_text_and_junit(tmp_path: Path) -> None:
    attempt = AttemptRecord(
        number=1, rig="left", status="error", started="", seconds=1.0, error=DEAD.error, exit_code=5
    )
    (job,) = _jobs(tmp_path, 1)
    ended = given_up(JobState(job, [attempt]), "no time", 1, "")
    assert ended.remedy == "plug it in"
    run = samples.run(ended)
    text = StringIO()
    out = Console(file=text, width=200)
    for part in run_report(run, "run.json"):
        out.print(part)
    assert "plug it in" in text.getvalue()
    assert "the probe is gone; not tried again: no time\nplug it in" in junit_xml(run).decode()
