"""A lab run: suite in, judged and recorded jobs out. The flow on one screen; it computes nothing itself."""

from __future__ import annotations

import itertools
import os
import platform
import socket
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from harness import __version__
from harness.board.catalogue import SIM_PREFIX, UnknownBoardError, load_board
from harness.board.lab_file import Lab, RigEntry, find_lab
from harness.deadline import Deadline
from harness.errors import ExitCode, UsageError
from harness.lab.baseline import BaselineStore
from harness.lab.build_ahead import BuildAhead
from harness.lab.dispatch import JobState, fits
from harness.lab.evaluation import Evaluator, PastValues, planned_record
from harness.lab.history.importing import add_jobs
from harness.lab.history.keeper import HistoryKeeper
from harness.lab.job import Job, jobs_of
from harness.lab.metrics import METRICS, Kind, Number
from harness.lab.order import Order, Result
from harness.lab.rig_worker import ProcessWorker
from harness.lab.run_folder import RESUME_WITHIN_S, RunFolder, damaged_journals, identity_of, now_text
from harness.lab.scheduler import Plan, Scheduler, Watcher
from harness.lab.selection import Expression, Shard
from harness.lab.suite import Suite, SuiteError, baselines_folder, read_suite
from harness.lab.upgrade import upgrades
from harness.record.lab_run import ConditionsRecord, JobRecord, JobStatus, RigRecord, RunRecord
from harness.units import quoted

#: Rigs of the host board where no lab file says otherwise: it is only a process, but it uses a core.
_MAX_HOST_RIGS = 4


@dataclass(frozen=True, slots=True)
class RegressRequest:
    """``history`` is a path or database URL, "" for none. ``resume``: go on from an unfinished run of the same suite;
    ``resume_within_s`` is how old it may be. ``lease_timeout_s``: how long to wait for a rig that another process has.
    ``tflm`` names the libraries of an upgrade run. ``coordinator``: address of a labgrid coordinator whose places are
    rigs too."""

    suite_path: Path
    lab_path: Path | None = None
    results: Path = Path("results")
    history: str = ""
    boards_dirs: tuple[Path, ...] = ()
    expression: Expression | None = None
    shard: Shard | None = None
    repeat: int | None = None
    max_minutes: float | None = None
    resume: bool = True
    resume_within_s: float = RESUME_WITHIN_S
    lease_timeout_s: float = 3600.0
    tflm: tuple[str, ...] = ()
    coordinator: str = ""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a request comes down to, before anything runs. ``guessed``: names of the rigs that no lab file lists."""

    request: RegressRequest
    suite: Suite
    jobs: tuple[Job, ...]
    rigs: tuple[RigEntry, ...]
    baselines: BaselineStore
    guessed: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()


def prepare(request: RegressRequest) -> Prepared:
    """Read the suite and the lab, choose the jobs. Raises ConfigError, UsageError."""
    suite = read_suite(request.suite_path)
    _require_boards(suite, request)
    jobs = jobs_of(suite, request.suite_path, repeat=request.repeat, tflm=request.tflm)
    if request.expression:
        jobs = [job for job in jobs if request.expression.matches(job.words)]
    if request.shard:
        jobs = request.shard.take(jobs, key=lambda job: job.id)
    if not jobs and not request.shard:
        raise UsageError("no job is selected", remedy="harness regress SUITE --list shows all", code="suite.empty")
    baselines = BaselineStore(baselines_folder(suite, request.suite_path, request.results))
    lab = find_lab(request.lab_path, request.boards_dirs)
    of_baselines = _unchecked_limits(suite) if request.tflm else _absent_folder(suite, baselines)
    notes = (*_absent_rigs(suite, request, lab), *of_baselines)
    rigs = rigs_for(lab, jobs)
    guessed = frozenset(rig.name for rig in rigs if lab is None or rig not in lab.rigs)
    return Prepared(request, suite, tuple(jobs), rigs, baselines, guessed, notes)


def _require_boards(suite: Suite, request: RegressRequest) -> None:
    """Raises SuiteError for a board that the catalogue does not have, with the nearest names."""
    try:
        for target in suite.targets:
            if target.board:
                load_board(target.board, request.boards_dirs)
    except UnknownBoardError as exc:
        raise SuiteError(f"{request.suite_path}: boards: {exc.message}", remedy=exc.remedy) from exc


def _absent_rigs(suite: Suite, request: RegressRequest, lab: Lab | None) -> tuple[str, ...]:
    """A note for each rig that the suite names and this lab does not have: another lab's, or misspelt. The places of a
    coordinator are not known yet."""
    if request.coordinator:
        return ()
    names = [rig.name for rig in lab.rigs] if lab else []
    has = f"it has {', '.join(names)}" if lab else "there is no lab.yaml"
    wanted = dict.fromkeys(target.rig for target in suite.targets if target.rig and target.rig not in names)
    return tuple(f"boards of the suite: this lab has no rig {quoted(rig)}; {has}" for rig in wanted)


def _absent_folder(suite: Suite, baselines: BaselineStore) -> tuple[str, ...]:
    """A note where the suite names a folder of baselines that is not there: before the first run, or misspelt. A suite
    that ignores baselines may do without, unless a limit speaks of one."""
    if not suite.baselines.folder or baselines.folder.is_dir():
        return ()
    if suite.baselines.missing == "ignore" and not _relative_limits(suite):
        return ()
    return (f"baselines.folder of the suite: there is no {baselines.folder.as_posix()}",)


def _unchecked_limits(suite: Suite) -> tuple[str, ...]:
    """A note where a comparison of TFLM libraries leaves limits out: it has no baselines."""
    limits = _relative_limits(suite)
    return (f"limits against baselines are not checked with --vary: {', '.join(limits)}",) if limits else ()


def _relative_limits(suite: Suite) -> list[str]:
    limits = [limit for model in suite.models for limit in suite.limits_of(model)]
    return list(dict.fromkeys(limit.text for limit in limits if limit.relative))


@contextmanager
def with_places(prepared: Prepared) -> Iterator[Prepared]:
    """The same with the free places of the labgrid coordinator, acquired until the context ends."""
    if not prepared.request.coordinator:
        yield prepared
        return
    from harness.lab.labgrid_places import acquired_rigs

    with acquired_rigs(
        prepared.request.coordinator, lambda rig: any(fits(job, rig) for job in prepared.jobs)
    ) as places:
        taken = {place.board for place in places.rigs}
        # a rig that no lab file lists is guessed from the boards: a place is better than a guess
        own = [rig for rig in prepared.rigs if rig.name not in prepared.guessed or rig.board not in taken]
        yield replace(prepared, rigs=(*own, *places.rigs), notes=(*prepared.notes, *places.notes))


def rigs_for(lab: Lab | None, jobs: Sequence[Job]) -> tuple[RigEntry, ...]:
    """The rigs that some job fits. Without a lab file: the host, several times, and one rig of each other board. With
    one, what it lists; the host and the twins are on every computer, so one of each that it does not list is added."""
    boards = dict.fromkeys(job.board for job in jobs if job.board)
    if lab is not None:
        listed = {rig.board for rig in lab.rigs}
        names = {rig.name for rig in lab.rigs}
        own = [rig for rig in lab.rigs if any(fits(job, rig) for job in jobs)]
        implicit = [board for board in boards if board not in listed and _needs_no_desk(board)]
        return (*own, *(RigEntry(name=_free_name(board, names), board=board) for board in implicit))
    rigs: list[RigEntry] = []
    for board in boards:
        wanted = sum(job.board == board for job in jobs)
        count = min(_MAX_HOST_RIGS, os.cpu_count() or 1, wanted) if board == "host" else 1
        stem = board.replace(":", "-")
        rigs += [
            RigEntry(name=stem if count == 1 else f"{stem}-{number}", board=board) for number in range(1, count + 1)
        ]
    return tuple(rigs)


def _needs_no_desk(board: str) -> bool:
    """Whether the board is made on demand, on any computer."""
    return board == "host" or board.startswith(SIM_PREFIX)


def _free_name(board: str, taken: Collection[str]) -> str:
    """A rig's name after its board that the lab has not given to another."""
    stem = board.replace(":", "-")
    names = itertools.chain((stem,), (f"{stem}-{number}" for number in itertools.count(2)))
    return next(name for name in names if name not in taken)


def regress(prepared: Prepared, watcher: Watcher) -> tuple[RunRecord, Path]:
    """Run what is prepared; the record and where it was written."""
    request = prepared.request
    runs = request.results / "lab"
    identity = identity_of(request.suite_path.read_bytes(), prepared.jobs, prepared.rigs)
    folder = RunFolder.unfinished(runs, identity, request.resume_within_s) if request.resume else None
    with folder or RunFolder.new(runs, prepared.suite.name, identity) as held:
        if request.resume:
            damage = _damage(held, damaged_journals(runs, prepared.suite.name, request.resume_within_s))
            prepared = replace(prepared, notes=(*prepared.notes, *damage))
            for note in damage:
                watcher.noted(note)
        later = f"harness history --import {held.path.as_posix()}"
        with closing(HistoryKeeper(request.history, later, watcher.noted)) as history:
            record = _run(prepared, held, history, watcher)
        return record, held.finish(record)


def _damage(folder: RunFolder, journals: Sequence[Path]) -> list[str]:
    """A note for each journal that cannot be read, or not as a whole: what it held is done again."""
    notes = [
        f"{journal.as_posix()} is damaged from its first line on: nothing can go on from it" for journal in journals
    ]
    if lines := folder.past.damaged:
        where = f"{(folder.path / 'run.jsonl').as_posix()}, line {', '.join(map(str, lines))}"
        notes.append(f"{where}, is damaged: what it held is done again")
    return notes


def _run(prepared: Prepared, folder: RunFolder, history: HistoryKeeper, watcher: Watcher) -> RunRecord:
    request, started = prepared.request, time.monotonic()
    begun = _run_record(prepared, folder, (), (), 0.0)
    history.keep(lambda store: store.add_run(begun))
    resumed = [folder.past.finished[job.id] for job in prepared.jobs if job.id in folder.past.finished]
    open_jobs = [job for job in prepared.jobs if job.id not in folder.past.finished]
    done = [*resumed]
    if resumed:
        watcher.resumed(folder.run_id, len(resumed))

    def keep_job(record: JobRecord, result: Result | None) -> None:
        folder.keep_job(record)
        if result is not None:
            history.keep(lambda store: store.add_result(folder.run_id, record, result.record))
        else:  # it was given up: what was measured before is in its record
            history.keep(lambda store: add_jobs(store, folder.run_id, [record]))

    # a kill may have come between the folder's line and the history's row
    history.keep(lambda store: add_jobs(store, folder.run_id, resumed))

    runnable: list[Job] = []
    for job in open_jobs:
        hopeless = _hopeless(job, prepared.rigs)
        if hopeless is None:
            runnable.append(job)
        else:
            keep_job(hopeless, None)
            watcher.finished(hopeless)
            done.append(hopeless)
    ahead = build_ahead(prepared, folder, runnable)
    evaluator = Evaluator(prepared.baselines, prepared.suite.baselines, prepared.suite.retries, _past(history))
    scheduler = Scheduler(
        Plan(
            rigs=prepared.rigs,
            jobs=[JobState(job, list(folder.past.attempts.get(job.id, ()))) for job in runnable],
            evaluator=evaluator,
            order=lambda job, rig: order_of(job, rig, folder.job_folder(job), request.boards_dirs),
            open_worker=lambda rig: ProcessWorker(rig.name),
            keep_attempt=folder.keep_attempt,
            keep_job=keep_job,
            give_up=lambda state, why: evaluator.give_up(state, why, _blocked_code(why), prepared.rigs, now_text()),
            watcher=watcher,
            about_to_run=ahead.take_over,
            bench_after=prepared.suite.bench_after,
            deadline=Deadline.after(request.max_minutes * 60) if request.max_minutes else Deadline.never(),
            lease_timeout_s=request.lease_timeout_s,
        )
    )
    ahead.start()
    try:
        done += scheduler.run()
    finally:
        ahead.stop()
    seconds = time.monotonic() - started
    record = _run_record(prepared, folder, done, scheduler.rig_records(), seconds, resumed=len(resumed))
    changes = upgrades(record.jobs, request.tflm) if request.tflm else ()
    return msgspec.structs.replace(record, notes=(*prepared.notes, *history.notes), upgrades=changes)


def build_ahead(prepared: Prepared, folder: RunFolder, jobs: Sequence[Job]) -> BuildAhead:
    """The images that the run will need, one order each: repeats share one. The host board needs none."""
    orders: dict[tuple[str, str, str, str], Order] = {}
    for job in jobs:
        rig = next(rig for rig in prepared.rigs if fits(job, rig))
        if rig.board != "host":
            order = order_of(job, rig, folder.job_folder(job), prepared.request.boards_dirs)
            key = (job.model.sha256, rig.board, job.kernels, job.tflm)
            orders.setdefault(key, msgspec.structs.replace(order, build_only=True))
    return BuildAhead(list(orders.values()), lambda: ProcessWorker("build"))


def order_of(job: Job, rig: RigEntry, folder: Path, boards_dirs: Sequence[Path]) -> Order:
    return Order(
        job_id=job.id,
        model_path=str(job.model.path),
        board=rig.board,
        rig=rig,
        kernels=job.kernels,
        tflm=job.tflm,
        seed=job.seed,
        fill=job.entry.fill,
        inputs=job.entry.inputs,
        step_bytes=job.step_bytes,
        runs=job.runs,
        certify=job.certify and rig.board != "host",
        tolerance_steps=job.tolerance_steps,
        # what each category takes is told by the recording interpreter only
        interpreter="recording" if job.tflm else "",
        timeout_s=job.timeout_s,
        trial_timeout_s=job.trial_timeout_s,
        results=str(folder),
        boards_dirs=tuple(map(str, boards_dirs)),
    )


def _hopeless(job: Job, rigs: Sequence[RigEntry]) -> JobRecord | None:
    """The end of a job that cannot run: its model is not there, or not the pinned one, or no rig fits."""
    if job.model.problem and not job.model.sha256:
        return _ended(job, JobStatus.ERROR, job.model.problem, int(ExitCode.USAGE))
    if job.model.problem:
        return _ended(job, JobStatus.FAILED, job.model.problem, int(ExitCode.RESULT_BAD))
    if job.tflm and job.board == "host":
        return _ended(job, JobStatus.SKIPPED, "the host board has one TFLM, that of the package tflite-micro", 0)
    if not any(fits(job, rig) for rig in rigs):
        wanted = f"no rig is called {job.rig}" if job.rig else f"no rig has a {job.board}"
        return _ended(job, JobStatus.SKIPPED, wanted, 0)
    return None


def _ended(job: Job, status: JobStatus, reason: str, exit_code: int) -> JobRecord:
    record = planned_record(job)
    return msgspec.structs.replace(record, status=status, reason=reason, exit_code=exit_code, finished=now_text())


def _blocked_code(why: str) -> int:
    return int(ExitCode.RESULT_BAD if "--max-minutes" in why else ExitCode.PROBE)


def _past(history: HistoryKeeper) -> PastValues:
    """A rig's earlier times, where there is a history; bytes need none, they are exact."""

    def values(rig: str, job: Job, metric: str, conditions: ConditionsRecord) -> Sequence[Number]:
        if METRICS[metric].kind is not Kind.TIMING:
            return ()
        model = job.model
        return history.past(lambda store: store.past_values(rig, model.name, model.sha256, metric, conditions))

    return values


def _run_record(
    prepared: Prepared,
    folder: RunFolder,
    jobs: Sequence[JobRecord],
    rigs: tuple[RigRecord, ...],
    seconds: float,
    resumed: int = 0,
) -> RunRecord:
    order = {job.id: at for at, job in enumerate(prepared.jobs)}
    return RunRecord(
        run_id=folder.run_id,
        suite=prepared.suite.name,
        suite_path=prepared.request.suite_path.as_posix(),
        suite_file=prepared.request.suite_path.resolve().as_posix(),
        harness_version=__version__,
        started=folder.past.begin.started,
        finished=now_text(),
        seconds=round(seconds, 3),
        resumed_jobs=resumed,
        host=socket.gethostname(),
        platform=platform.platform(),
        python=platform.python_version(),
        rigs=rigs,
        jobs=tuple(sorted(jobs, key=lambda job: order[job.id])),
        exit_code=exit_code_of(jobs),
    )


def exit_code_of(jobs: Sequence[JobRecord]) -> int:
    """The highest code of the jobs; where nothing at all could run for want of rigs, that of a missing board."""
    if jobs and all(job.status is JobStatus.SKIPPED for job in jobs):
        return int(ExitCode.PROBE)
    return max((job.exit_code for job in jobs), default=0)
