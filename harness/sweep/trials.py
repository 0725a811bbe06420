"""The trials of one sweep: first the ample run, then what the search asks for, each journalled when it has ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Protocol

from harness.deadline import Deadline
from harness.device.bench import TrialRun
from harness.device.client import Device
from harness.errors import DeviceError
from harness.record.journal import Journal, JournalEntry
from harness.record.schema import MeasuredRecord, ReferenceRecord
from harness.search import SearchResult, SearchSpec, next_arena_bytes, result_of
from harness.sweep.ample import ample_failure, search_failure, tflm_log
from harness.sweep.evidence import trial_from_record, trial_record
from harness.sweep.request import Progress
from harness.trial import Outcome, Reason, Trial

#: Called after the ample run has worked, in the same boot: what the device tells, and the comparison of its outputs.
Observe = Callable[[TrialRun], tuple[MeasuredRecord, ReferenceRecord | None]]


class TrialRunner(Protocol):
    """Runs one trial on a fresh boot: a Bench, or one that flashes first."""

    @property
    def device(self) -> Device: ...

    def run(self, arena_bytes: int, ample_digest: int | None, deadline: Deadline) -> TrialRun: ...


@dataclass(slots=True)
class TrialSeries:
    """``trials`` in order; after the ample run ``measured``, ``reference`` and ``ample_bytes`` are set."""

    bench: TrialRunner
    journal: Journal[JournalEntry]
    progress: Progress
    deadline: Deadline
    step_bytes: int
    predicted_bytes: int
    trials: list[Trial] = field(default_factory=list)
    measured: MeasuredRecord | None = None
    reference: ReferenceRecord | None = None
    ample_bytes: int = 0
    resumed: int = 0

    def resume(self) -> None:
        """Take over what an earlier run finished; nothing when its ample run did not end."""
        entries = self.journal.entries()
        ample = next((entry for entry in entries if entry.measured), None)
        if ample is None or ample.measured is None:
            return
        self.measured, self.reference = ample.measured, ample.reference
        self.ample_bytes = ample.trial.arena_bytes
        rest = [entry.trial for entry in entries if entry is not ample]
        kept = [ample.trial, *(trial for trial in rest if trial.outcome != Outcome.ERROR.value)]
        self.trials = [trial_from_record(record) for record in kept]
        self.resumed = len(self.trials)

    def run_ample(self, sizes: Iterable[int], observe: Observe) -> None:
        """Raises the reason when the model does not run. A size that was not ample after all counts as too small."""
        if self.measured is not None:
            return
        failed: list[Trial] = []
        for size in sizes:
            run = self._run(size, None)
            if run.trial.outcome is Outcome.WORKS:
                self.measured, self.reference = observe(run)
                self.ample_bytes = size
                self.journal.append(JournalEntry(trial_record(run.trial), self.measured, self.reference))
                self.progress.trial(run.trial, len(self.trials) + 1)
                self.trials = [run.trial]
                for trial in failed:
                    self._keep(replace(trial, outcome=Outcome.TOO_SMALL))
                return
            failed.append(run.trial)
            self._tell(run.trial)
            if run.trial.reason is not Reason.ALLOC_FAILED:
                break
        raise ample_failure(run, tflm_log(self.bench.device, self.deadline) if run.report else "")

    @property
    def spec(self) -> SearchSpec:
        return SearchSpec(self.ample_bytes, self.predicted_bytes, self.step_bytes)

    def search(self) -> SearchResult:
        """Raises LinkError or DeviceError where a trial ended without evidence."""
        assert self.measured is not None, "the ample run comes first"
        digest = int(self.measured.output_digest, 16)
        while (size := next_arena_bytes(self.trials, self.spec)) is not None:
            run = self._run(size, digest)
            if run.trial.outcome is Outcome.ERROR:
                self._tell(run.trial)
                raise search_failure(run.trial)
            self.journal.append(JournalEntry(trial_record(run.trial)))
            self._tell(run.trial)
        return self.result()

    def result(self) -> SearchResult:
        return result_of(self.trials, self.spec)

    def _keep(self, trial: Trial) -> None:
        self.journal.append(JournalEntry(trial_record(trial)))
        self.trials.append(trial)

    def _run(self, size: int, digest: int | None) -> TrialRun:
        self._require_time()
        run = self.bench.run(size, digest, self.deadline)
        if run.trial.reason in {Reason.TIMEOUT, Reason.LINK_LOST}:
            self._require_time()  # the sweep's end, not the trial's: no evidence
        return run

    def _tell(self, trial: Trial) -> None:
        """Only what is on disk is told as done: whoever saw it can kill the process and lose nothing."""
        self.trials.append(trial)
        self.progress.trial(trial, len(self.trials))

    def _require_time(self) -> None:
        if self.deadline.passed:
            raise DeviceError(
                "the sweep did not end in the time it was given",
                remedy="allow more with --timeout and run again: it goes on from the trials that ended",
                code="sweep.timeout",
            )
