"""Runs jobs in parallel over the rigs: one thread per rig, one job at a time on each, results as they come."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from harness.board.lab_file import RigEntry
from harness.deadline import Deadline
from harness.lab.dispatch import Dispatch, JobState
from harness.lab.evaluation import Blame, Evaluator, blame
from harness.lab.job import Job
from harness.lab.order import Order, Result
from harness.lab.rig_worker import RigWorker
from harness.lab.run_folder import now_text
from harness.record.lab_run import AttemptRecord, JobRecord, RigRecord

#: How long a rig that another process holds is left alone before it is asked again.
_BUSY_POLL_S = 1.0


class Watcher(Protocol):
    """Told as things happen, from several threads; must not raise."""

    def resumed(self, run_id: str, jobs: int) -> None:
        """The run goes on from an earlier one that has finished so many jobs."""

    def noted(self, text: str) -> None:
        """Something that the run goes on without; it is among the notes of its record too."""

    def begun(self, job: Job, rig: str, attempt: int) -> None: ...

    def told(self, job: Job, rig: str, text: str) -> None: ...

    def tried(self, job: Job, rig: str, attempt: AttemptRecord) -> None:
        """An attempt failed and the job is tried again."""

    def finished(self, record: JobRecord) -> None: ...

    def benched(self, rig: str, why: str) -> None: ...


@dataclass(slots=True)
class _Usage:
    jobs: int = 0
    attempts: int = 0
    busy_s: float = 0.0


@dataclass(slots=True)
class Plan:
    """What a run is made of. ``keep_attempt`` and ``keep_job`` put things on disk; ``about_to_run``
    is called with a job's id before its rig gets it, and may wait; ``lease_timeout_s`` bounds the wait
    for a rig that another process holds; after ``deadline`` no job is begun."""

    rigs: Sequence[RigEntry]
    jobs: Sequence[JobState]
    evaluator: Evaluator
    order: Callable[[Job, RigEntry], Order]
    open_worker: Callable[[RigEntry], RigWorker]
    keep_attempt: Callable[[str, AttemptRecord], None]
    keep_job: Callable[[JobRecord, Result | None], None]
    give_up: Callable[[JobState, str], JobRecord]
    watcher: Watcher
    about_to_run: Callable[[str], None] = lambda _job_id: None
    bench_after: int = 3
    deadline: Deadline = field(default_factory=Deadline.never)
    lease_timeout_s: float = 3600.0


class Scheduler:
    """One run. ``run`` returns when every job has ended or is blocked."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._records: list[JobRecord] = []
        self._keeping = threading.RLock()
        self._usage = {rig.name: _Usage() for rig in plan.rigs}
        self._workers: dict[str, RigWorker] = {}
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        self._dispatch = Dispatch(plan.rigs, plan.jobs, bench_after=plan.bench_after, on_blocked=self._block)

    def run(self) -> list[JobRecord]:
        """Raises what went wrong on this side: a full disk, Ctrl-C. Workers are stopped then; nothing kept is lost."""
        threads = [
            threading.Thread(target=self._serve, args=(rig,), name=f"rig {rig.name}", daemon=True)
            for rig in self._plan.rigs
        ]
        try:
            for thread in threads:
                thread.start()
            while any(thread.is_alive() for thread in threads):
                for thread in threads:
                    thread.join(timeout=0.1)
                if self._plan.deadline.passed:
                    self._dispatch.close("the time of the run was over (--max-minutes)")
        except BaseException:
            self._halt()
            for thread in threads:
                thread.join(timeout=5)
            raise
        if self._failure is not None:
            raise self._failure
        return self._records

    def rig_records(self) -> tuple[RigRecord, ...]:
        """What each rig did so far."""
        return tuple(
            RigRecord(
                name=rig.name,
                board=rig.board,
                probe_uid=rig.probe,
                jobs=self._usage[rig.name].jobs,
                attempts=self._usage[rig.name].attempts,
                busy_s=round(self._usage[rig.name].busy_s, 3),
                benched=self._dispatch.rigs[rig.name].benched,
            )
            for rig in self._plan.rigs
        )

    def _serve(self, rig: RigEntry) -> None:
        """One rig's thread."""
        worker: RigWorker | None = None
        try:
            while not self._stop.is_set():
                state = self._dispatch.take(rig.name)
                if state is None:
                    break
                if worker is None:
                    worker = self._workers[rig.name] = self._plan.open_worker(rig)
                self._carry_out(state, rig, worker)
        except BaseException as exc:
            self._failure = self._failure or exc
            self._halt()
        finally:
            if worker is not None:
                worker.stop()
            if self._dispatch.rigs[rig.name].benched:
                self._plan.watcher.benched(rig.name, self._dispatch.rigs[rig.name].benched)

    def _carry_out(self, state: JobState, rig: RigEntry, worker: RigWorker) -> None:
        plan, job, started = self._plan, state.job, now_text()
        plan.watcher.begun(job, rig.name, len(state.attempts) + 1)
        begun = time.monotonic()
        result = self._result(job, rig, worker)
        usage = self._usage[rig.name]
        usage.busy_s += time.monotonic() - begun
        usage.attempts += 1
        if self._stop.is_set():
            return
        if result is None:
            self._dispatch.finished(rig.name)
            self._block(state, f"rig {rig.name} was held by another process for {plan.lease_timeout_s:g} s")
            return
        with self._keeping:
            verdict = plan.evaluator.evaluate(state, rig, result, started, now_text())
            plan.keep_attempt(job.id, verdict.attempt)
            state.attempts.append(verdict.attempt)
            if verdict.record is not None:
                self._keep(verdict.record, result)
        if verdict.record is None:
            plan.watcher.tried(job, rig.name, verdict.attempt)
            self._dispatch.again(rig.name, state, infrastructure_error=verdict.rig_error)
        else:
            usage.jobs += 1
            self._dispatch.finished(rig.name, infrastructure_error=verdict.rig_error)

    def _result(self, job: Job, rig: RigEntry, worker: RigWorker) -> Result | None:
        """None where another process held the rig all the time."""
        order = self._plan.order(job, rig)
        self._plan.about_to_run(job.id)
        lease = Deadline.after(self._plan.lease_timeout_s)
        while True:
            result = worker.run(order, lambda text: self._plan.watcher.told(job, rig.name, text))
            if result.error is None or blame(result.error, result.exit_code) is not Blame.BUSY:
                return result
            self._plan.watcher.told(job, rig.name, f"waits: {result.error.message}")
            if lease.passed or self._stop.wait(min(_BUSY_POLL_S, lease.remaining_s)):
                return None

    def _keep(self, record: JobRecord, result: Result | None) -> None:
        self._plan.keep_job(record, result)
        self._records.append(record)
        self._plan.watcher.finished(record)

    def _block(self, state: JobState, why: str) -> None:
        with self._keeping:
            self._keep(self._plan.give_up(state, why), None)

    def _halt(self) -> None:
        self._stop.set()
        for worker in list(self._workers.values()):
            worker.stop()
        self._dispatch.abandon()
