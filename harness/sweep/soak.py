"""The soak: a model run very often in one arena. Each chunk is a fresh boot; what a chunk ended is on disk."""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass, field

from harness.deadline import Deadline
from harness.device.client import RebootedError, SilenceError
from harness.device.verdict import describe_fault
from harness.errors import HarnessError, LinkError, UsageError
from harness.model.state import is_stateful
from harness.record.journal import Journal
from harness.record.schema import SoakChunkRecord, SoakDeviationRecord, SoakRecord
from harness.sweep.arena_gap import ArenaGap
from harness.sweep.constancy import (
    STACK_ALLOWANCE_BYTES,
    Counts,
    Deviation,
    Expected,
    deviation_of_burst,
    deviation_of_chunk,
)
from harness.sweep.measuring import does_not_work
from harness.sweep.session import Session
from harness.trial import Outcome, Reason, Trial
from harness.units import align_up, counted, format_size
from harness.wire import messages as wire

#: Runs of one request: as many counts as the firmware keeps (session.cc, kSamples), so that each can be looked at.
_BURST_RUNS = 64
#: The runs that open a boot, the same in each.
_OPENING_RUNS = 8
#: One boot lasts about this long, and there are at least so many boots.
_CHUNK_S = 10.0
_LEAST_BOOTS = 8
#: Part of the time for one trial that a burst may take.
_BURST_SHARE = 0.25
#: Kinds of count that are the same for the same work, within the allowed spread; this computer's time is not.
_STEADY = frozenset({"cycles", "systick", "instructions"})


class _Deviated(Exception):
    def __init__(self, deviation: Deviation) -> None:
        super().__init__(deviation.detail)
        self.deviation = deviation


@dataclass(slots=True)
class Soak:
    """``chunks`` are those that ended, of this run and of earlier ones; their runs are counted from 0."""

    session: Session
    journal: Journal[SoakChunkRecord]
    arena_bytes: int
    ample_digest: int
    chunks: list[SoakChunkRecord] = field(default_factory=list)
    counts: Counts = field(default_factory=lambda: Counts(None))
    deviation: Deviation | None = None
    resumed_runs: int = 0
    _started_s: float = field(default_factory=time.monotonic)

    def run(self) -> None:
        """Until the asked runs or minutes are done, or something changes."""
        try:
            while not self.is_done:
                self._tell()
                chunk = _Boot(self, self.runs).run()
                deviation = deviation_of_chunk(chunk, self.chunks[0]) if self.chunks else None
                if deviation:
                    raise _Deviated(deviation)
                self.journal.append(chunk)
                self._take(chunk)
        except _Deviated as stop:
            self.deviation = stop.deviation

    def resume(self) -> None:
        for chunk in self.journal.entries():
            self._take(chunk)
        self.resumed_runs = self.runs

    @property
    def runs(self) -> int:
        return sum(chunk.runs for chunk in self.chunks)

    @property
    def seconds(self) -> float:
        return sum(chunk.seconds for chunk in self.chunks)

    @property
    def is_done(self) -> bool:
        spec = self.session.request.soak
        return self.runs >= spec.runs if spec.runs is not None else self.seconds >= 60 * spec.minutes

    @property
    def keeps_state(self) -> bool:
        """Whether outputs depend on earlier runs even when the model's state is reset."""
        return any(chunk.keeps_state for chunk in self.chunks)

    def runs_left(self) -> int | None:
        """In this chunk: at most that share of all runs; None where minutes count."""
        runs = self.session.request.soak.runs
        return None if runs is None else min(runs - self.runs, -(-runs // _LEAST_BOOTS))

    def chunk_s(self) -> float:
        spec = self.session.request.soak
        if spec.runs is not None:
            return _CHUNK_S
        return max(0.1, min(_CHUNK_S, 60 * spec.minutes / _LEAST_BOOTS, 60 * spec.minutes - self.seconds))

    def _take(self, chunk: SoakChunkRecord) -> None:
        self.chunks.append(chunk)
        self.counts.take(chunk.min_count, chunk.max_count)

    def _tell(self) -> None:
        spec = self.session.request.soak
        if spec.runs is not None:
            done, of = self.runs / spec.runs, f"{self.runs:,} of {spec.runs:,} runs"
        else:
            done, of = self.seconds / (60 * spec.minutes), f"{self.runs:,} runs, {self.seconds / 60:.1f} minutes"
        boots = counted(len(self.chunks), "boot")
        left = f", {_duration(self.seconds * (1 - done) / done)} left" if done > 0 else ""
        self.session.progress.stage(f"soak in {format_size(self.arena_bytes)}: {of}, {boots}{left}")

    def record(self) -> SoakRecord:
        first = self.chunks[0] if self.chunks else None
        spec = self.session.request.soak
        return SoakRecord(
            verdict=self._verdict(),
            arena_bytes=self.arena_bytes,
            runs=self.runs,
            boots=len(self.chunks),
            restarts=sum(chunk.restarted for chunk in self.chunks),
            seconds=round(self.seconds, 3),
            timing=self.session.timing,
            min_count=self.counts.lowest,
            max_count=self.counts.highest,
            allowed_spread_percent=self.counts.spread_percent,
            allowed_stack_bytes=STACK_ALLOWANCE_BYTES,
            output_digest=first.output_digest if first else "",
            used_bytes=first.used_bytes if first else None,
            stack_used_bytes=max((c.stack_used_bytes for c in self.chunks if c.stack_used_bytes), default=None),
            guards=_all_intact(chunk.guards for chunk in self.chunks),
            fill=_all_intact(chunk.fill for chunk in self.chunks),
            stateful=is_stateful(self.session.model),
            resumed_runs=self.resumed_runs,
            asked_runs=spec.runs,
            asked_minutes=spec.minutes if spec.runs is None else None,
            deviation=_deviation_record(self.deviation) if self.deviation else None,
        )

    def _verdict(self) -> str:
        if self.deviation:
            return "unstable"
        if not self.is_done:
            return "unfinished"
        return "stateful" if self.keeps_state else "constant"


class _Boot:
    """One fresh boot: the trial, bursts of runs, and a reset of the model's state within it."""

    def __init__(self, soak: Soak, first_run: int) -> None:
        self.soak = soak
        self.session = soak.session
        self.first_run = first_run
        self.runs = 0
        self.used_bytes = wire.UNKNOWN_U32
        self.stack_used_bytes: int | None = None
        self.low = 0
        self.high = 0
        self.keeps_state = soak.keeps_state
        self.stateful = is_stateful(self.session.model)

    def run(self) -> SoakChunkRecord:
        started = time.monotonic()
        trial, report = self._begin()
        self.used_bytes = report.used_bytes
        gap = ArenaGap.after_trial(self.session, report, self.soak.arena_bytes)
        opening = self._burst(self._opening_runs(trial))
        self.stack_used_bytes = opening.stack_used_bytes
        last = opening
        per_run_s = (time.monotonic() - started) / (self.runs + 1)
        until = started + self.soak.chunk_s()
        while (runs := self._next_runs(per_run_s)) and time.monotonic() < until:
            before = time.monotonic()
            last = self._burst(runs)
            per_run_s = (time.monotonic() - before) / runs
        restarted = self._restart()
        if gap and not gap.is_unchanged():
            raise _Deviated(self._somewhere("fill", "the free bytes between head and tail were written to"))
        return SoakChunkRecord(
            first_run=self.first_run,
            runs=self.runs,
            seconds=round(time.monotonic() - started, 4),
            output_digest=f"{report.output_digest:016x}",
            opening_digest=f"{opening.output_digest:016x}",
            opening_deviation=_known(opening.first_deviation),
            keeps_state=self.keeps_state,
            min_count=self.low,
            max_count=self.high,
            used_bytes=_known(last.used_bytes),
            stack_used_bytes=_known(last.stack_used_bytes),
            guards="intact" if last.guard is wire.GuardState.INTACT else "not_checked",
            fill="intact" if gap else "not_checked",
            restarted=restarted,
        )

    def _deadline(self) -> Deadline:
        return Deadline.after(self.session.request.trial_timeout_s)

    def _begin(self) -> tuple[Trial, wire.TrialReport]:
        """The boot's first run. In the soak's first boot a failure is the size's, later it is a deviation."""
        session = self.session
        boot_time = Deadline.after(3 * (session.request.trial_timeout_s + 10))
        run = session.bench.run(self.soak.arena_bytes, self.soak.ample_digest, boot_time)
        trial = run.trial
        if trial.reason is Reason.LINK_LOST:
            raise LinkError(f"the link was lost: {trial.detail}", remedy="check cable and port; the soak is resumable")
        if trial.outcome is Outcome.WORKS and run.report:
            return trial, run.report
        if not self.soak.chunks:
            raise does_not_work(trial, was_given=True)
        what = trial.reason.value if trial.reason else "device"
        raise _Deviated(
            Deviation(what, self.first_run, self.first_run, f"a fresh boot failed: {trial.detail}", run.fault)
        )

    def _opening_runs(self, trial: Trial) -> int:
        slow = trial.seconds * _OPENING_RUNS > _BURST_SHARE * self.session.request.trial_timeout_s
        left = self.soak.runs_left()
        return min(1 if slow else _OPENING_RUNS, left if left is not None else _OPENING_RUNS)

    def _next_runs(self, per_run_s: float) -> int:
        budget_s = _BURST_SHARE * self.session.request.trial_timeout_s
        runs = max(1, min(_BURST_RUNS, int(budget_s / max(per_run_s, 1e-6))))
        left = self.soak.runs_left()
        return runs if left is None else min(runs, left - self.runs)

    def _burst(self, runs: int) -> wire.MeasureReport:
        at = self.first_run + self.runs
        warm_up = self.session.request.warm_up if self.runs == 0 else 0
        report = self._measured(warm_up, runs, at)
        if self.stateful and not self.keeps_state:
            self.keeps_state = report.first_deviation != wire.UNKNOWN_U32 or self._differs(report)
        digest = None if self.keeps_state else self.soak.ample_digest
        expected = Expected(digest, self.used_bytes, self.stack_used_bytes)
        counts = self.soak.counts
        samples = []
        if not counts.allows(report.min_cycles, report.max_cycles) and report.stored:
            samples = self.session.device.cycles(self._deadline())
        deviation = deviation_of_burst(report, at, expected, counts, samples)
        if deviation:
            raise _Deviated(deviation)
        counts.take(report.min_cycles, report.max_cycles)
        self.low = min(self.low or report.min_cycles, report.min_cycles)
        self.high = max(self.high, report.max_cycles)
        self.runs += report.runs
        return report

    def _differs(self, report: wire.MeasureReport) -> bool:
        return report.output_digest != self.soak.ample_digest

    def _measured(self, warm_up: int, runs: int, at: int) -> wire.MeasureReport:
        """The burst's report; what stops it is a deviation, unless it is the link."""
        device, bench = self.session.device, self.session.bench
        try:
            return device.measure(warm_up, runs, self._deadline(), reset_state=self.stateful)
        except RebootedError:
            fault = bench.fault_record(Deadline.after(10))
            what = "reset" if fault.kind is wire.FaultKind.NONE else "fault"
            detail = describe_fault(fault) + bench.where(fault)
            raise _Deviated(Deviation(what, at, at + runs - 1, detail, fault)) from None
        except SilenceError as silence:
            if silence.stage is None:
                raise
            bench.boot(Deadline.after(10))  # LinkError here: the link is dead, not the model
            raise _Deviated(Deviation("timeout", at, at + runs - 1, silence.message)) from None

    def _restart(self) -> bool:
        """Reset the model's state in this boot, and run once more."""
        if not self.session.device.restart(self._deadline()):
            raise _Deviated(self._somewhere("restart", "MicroInterpreter::Reset returned an error"))
        report = self._measured(0, 1, self.first_run + self.runs)
        if not self.keeps_state and self._differs(report):
            detail = (
                f"outputs {report.output_digest:016x} after a reset of the state, {self.soak.ample_digest:016x} before"
            )
            raise _Deviated(self._somewhere("restart", detail))
        return True

    def _somewhere(self, what: str, detail: str) -> Deviation:
        return Deviation(what, self.first_run, self.first_run + self.runs - 1, detail)


def soak_session(session: Session, arena_bytes: int, ample_digest: int) -> None:
    """Soak as the request says; the record is in the draft whatever ends it. Raises HarnessError at a deviation."""
    identity = {**session.identity, "job": "soak", "arena": arena_bytes, "warm_up": session.request.warm_up}
    with Journal(session.request.results / "journal", identity, SoakChunkRecord) as journal:
        soak = Soak(session, journal, arena_bytes, ample_digest)
        soak.counts.spread_percent = session.request.soak.spread_percent if session.timing in _STEADY else None
        if session.request.resume:
            soak.resume()
        else:
            journal.clear()
        try:
            soak.run()
        finally:
            session.draft.soak = soak.record()
        if soak.deviation is None:
            session.draft.journal = journal.path
            return
    raise _unstable(soak.deviation)


def soak_arena_bytes(session: Session) -> int:
    """The size to soak in: as asked, else the smallest that the plan says works."""
    asked = session.request.arena_bytes
    if asked is not None:
        return asked
    if session.plan is None:
        raise UsageError(
            "there is no plan of this model, so no size to soak in",
            remedy="name one with --arena-bytes; harness sweep finds the smallest",
            code="soak.no_size",
        )
    return align_up(session.plan.min_exact_bytes, 16)


def _unstable(deviation: Deviation) -> HarnessError:
    runs = f"run {deviation.first_run:,}"
    if deviation.last_run != deviation.first_run:
        runs = f"one of the runs {deviation.first_run:,} … {deviation.last_run:,}"
    return HarnessError(
        f"not constant: {deviation.what} in {runs}: {deviation.detail}",
        remedy="see soak.deviation in the record; a larger --arena-bytes and --kernels reference tell whether the "
        "arena or a kernel is at fault",
        code=f"soak.{deviation.what}",
    )


def _deviation_record(deviation: Deviation) -> SoakDeviationRecord:
    fault = None
    if deviation.fault is not None:
        values = dataclasses.asdict(deviation.fault)
        fault = {**values, "kind": deviation.fault.kind.name.lower(), "stage": deviation.fault.stage.name.lower()}
    return SoakDeviationRecord(deviation.what, deviation.first_run, deviation.last_run, deviation.detail, fault)


def _all_intact(states: object) -> str:
    found = set(states)  # type: ignore[call-overload]
    return "intact" if found == {"intact"} else "not_checked"


def _known(value: int) -> int | None:
    return None if value == wire.UNKNOWN_U32 else value


def _duration(seconds: float) -> str:
    return (
        f"{seconds:.0f} s"
        if seconds < 90
        else f"{seconds / 60:.0f} min"
        if seconds < 5400
        else f"{seconds / 3600:.1f} h"
    )
