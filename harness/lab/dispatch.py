"""Which job runs next on which rig. Thread-safe, no clocks, no processes: rigs ask, jobs come back.

A job goes to a rig of its board (or to the rig that it names); a job that failed for the rig's sake goes to another one
first. A rig with too many such failures in a row is benched with its reason; jobs that no rig is left for are blocked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from harness.board.lab_file import RigEntry
from harness.lab.job import Job
from harness.record.lab_run import AttemptRecord


@dataclass(slots=True)
class RigState:
    """A rig during a run. ``failures`` counts infrastructure errors in a row."""

    entry: RigEntry
    failures: int = 0
    benched: str = ""


@dataclass(slots=True)
class JobState:
    """A job that has not ended. ``attempts`` are in order, those of a resumed run among them."""

    job: Job
    attempts: list[AttemptRecord] = field(default_factory=list)

    def tried_on(self, rig: str) -> bool:
        return any(attempt.rig == rig for attempt in self.attempts)


def fits(job: Job, rig: RigEntry) -> bool:
    """Whether the job may run on the rig."""
    return job.rig == rig.name if job.rig else job.board == rig.board


class Dispatch:
    """The open jobs of a run and the rigs that take them."""

    def __init__(
        self,
        rigs: Sequence[RigEntry],
        jobs: Sequence[JobState],
        *,
        bench_after: int,
        on_blocked: Callable[[JobState, str], None],
    ) -> None:
        self.rigs = {rig.name: RigState(rig) for rig in rigs}
        self._bench_after = bench_after
        self._on_blocked = on_blocked
        self._open = list(jobs)
        self._running = 0
        self._closed = ""
        self._changed = threading.Condition()

    def take(self, rig: str) -> JobState | None:
        """The next job for the rig, waiting for one that may come back; None when there is nothing left for it."""
        with self._changed:
            while True:
                state = self.rigs[rig]
                if self._closed or state.benched:
                    return None
                found = self._choose(state)
                if found is not None:
                    self._open.remove(found)
                    self._running += 1
                    return found
                if not self._running and not self._mine(state):
                    return None
                self._changed.wait()

    def finished(self, rig: str, *, infrastructure_error: str = "") -> None:
        """A job that ``take`` gave has ended for good."""
        with self._changed:
            self._running -= 1
            self._note(rig, infrastructure_error)

    def again(self, rig: str, job: JobState, *, infrastructure_error: str = "") -> None:
        """A job that ``take`` gave is to be tried again."""
        with self._changed:
            self._running -= 1
            self._open.insert(0, job)
            self._note(rig, infrastructure_error)

    def close(self, why: str) -> None:
        """Hand out nothing more; what is open is blocked."""
        with self._changed:
            self._closed = why
            self._block([(job, why) for job in self._open])
            self._changed.notify_all()

    def abandon(self) -> None:
        """Hand out nothing more; what is open stays open, for the run that goes on from this one."""
        with self._changed:
            self._closed = "stopped"
            self._open.clear()
            self._changed.notify_all()

    def _note(self, rig: str, infrastructure_error: str) -> None:
        state = self.rigs[rig]
        state.failures = state.failures + 1 if infrastructure_error else 0
        if state.failures >= self._bench_after and not state.benched:
            state.benched = f"{state.failures} errors in a row, the last: {infrastructure_error}"
            self._block_orphans()
        if self._closed:
            self._block([(job, self._closed) for job in self._open])
        self._changed.notify_all()

    def _choose(self, state: RigState) -> JobState | None:
        """Jobs that this rig has not failed come first, those with the fewest other rigs before the rest."""
        mine = self._mine(state)
        fresh = [job for job in mine if not job.tried_on(state.entry.name)]
        stale = [job for job in mine if job not in fresh and not self._others(job, state)]
        candidates = fresh or stale
        return min(candidates, key=lambda job: len(self._others(job, state)), default=None)

    def _mine(self, state: RigState) -> list[JobState]:
        return [job for job in self._open if fits(job.job, state.entry)]

    def _others(self, job: JobState, state: RigState) -> list[RigState]:
        """Rigs in service, other than ``state``, that the job fits and has not failed on."""
        return [
            rig
            for rig in self.rigs.values()
            if rig is not state and not rig.benched and fits(job.job, rig.entry) and not job.tried_on(rig.entry.name)
        ]

    def _block_orphans(self) -> None:
        orphans = []
        for job in self._open:
            rigs = [rig for rig in self.rigs.values() if fits(job.job, rig.entry)]
            if rigs and all(rig.benched for rig in rigs):
                orphans.append((job, f"every rig for it is benched: {rigs[0].entry.name}: {rigs[0].benched}"))
        self._block(orphans)

    def _block(self, jobs: list[tuple[JobState, str]]) -> None:
        for job, why in jobs:
            self._open.remove(job)
            self._on_blocked(job, why)
