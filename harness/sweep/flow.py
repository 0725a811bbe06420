"""The flow of a sweep, on one screen: it computes nothing itself."""

from __future__ import annotations

import logging
from collections.abc import Callable

from harness.errors import ExitCode, HarnessError, InternalError, was_interrupted
from harness.plan.arena import ArenaPlan
from harness.plan.shared import SharedPlan
from harness.reconcile import reconcile
from harness.record.journal import Journal, JournalEntry, remove_journal
from harness.record.schema import SweepRecord
from harness.record.store import write_record
from harness.sweep import evidence
from harness.sweep.agreement import require_agreement
from harness.sweep.certificate import certify
from harness.sweep.draft import Draft
from harness.sweep.measuring import measure_session
from harness.sweep.no_reuse import compare_without_reuse, require_comparable, require_no_overlap
from harness.sweep.reflash import ReflashBench
from harness.sweep.request import Progress, Strategy, SweepRequest
from harness.sweep.session import Session, open_session
from harness.sweep.soak import soak_arena_bytes, soak_session
from harness.sweep.trials import TrialSeries
from harness.units import safe_text
from harness.wire.messages import Capability

_LOG = logging.getLogger(__name__)

#: Fills a draft in; what goes wrong is raised.
Job = Callable[[SweepRequest, Progress, Draft], None]


def sweep_model(request: SweepRequest, progress: Progress) -> Draft:
    """Search the smallest arena of one model on one board. What goes wrong is in the draft's status and error, never an
    exception."""
    return _guarded(_sweep, request, progress)


def measure_model(request: SweepRequest, progress: Progress) -> Draft:
    """Time one model on one board, in an ample arena and in ``request.arena_bytes``, without a search."""
    return _guarded(_measure_only, request, progress)


def soak_model(request: SweepRequest, progress: Progress) -> Draft:
    """Run one model on one board as often as ``request.soak`` says; the first run that is not as the others ends it."""
    return _guarded(_soak, request, progress)


def _guarded(job: Job, request: SweepRequest, progress: Progress) -> Draft:
    draft = Draft.of(request)
    try:
        job(request, progress, draft)
    except Exception as exc:
        if was_interrupted(exc):
            raise KeyboardInterrupt from exc
        if isinstance(exc, HarnessError):
            _LOG.debug("the sweep of %s ended early", request.model_path, exc_info=True)
            draft.fail(exc)
            return draft
        _LOG.debug("not foreseen", exc_info=True)
        text = safe_text(f"{type(exc).__name__}: {exc}")
        draft.fail(
            InternalError(f"a bug of harness: {text}", remedy="run again with --debug and report what it prints")
        )
    return draft


def keep_record(draft: Draft) -> SweepRecord:
    """Write the draft's record, unless nothing was begun: model and board are known, and the request could be carried
    out. A full disk is an error of the draft."""
    record = draft.finish()
    if not draft.is_identified or (draft.exit_code is ExitCode.USAGE and draft.device is None):
        return record
    try:
        path = write_record(record, draft.request.results)
    except HarnessError as exc:
        draft.fail(exc)
        return draft.finish()
    if draft.journal:
        remove_journal(draft.journal)
    return draft.finish(record_path=path.as_posix())


def _sweep(request: SweepRequest, progress: Progress, draft: Draft) -> None:
    require_comparable(request)
    with (
        open_session(request, progress, draft) as session,
        Journal(request.results / "journal", session.identity, JournalEntry) as journal,
    ):
        series = TrialSeries(
            session.bench, journal, progress, session.deadline, request.step_bytes, session.predicted_bytes
        )
        try:
            if request.resume:
                series.resume()
            else:
                journal.clear()
            progress.stage("search")
            series.run_ample(session.ample_sizes(), session.observation.take)
            if request.strategy is Strategy.REFLASH:
                series.bench, series.predicted_bytes = ReflashBench(session), series.ample_bytes // 2
            result = series.search()
        finally:
            _keep_trials(series, session)
        _reconcile(session.plan, draft)
        if not result.is_monotonic:
            draft.warnings.append("the answers are not monotonic: a larger arena failed where a smaller one worked")
        _measure(session, series)
        if request.no_reuse and series.measured:
            digest = int(series.measured.output_digest, 16)
            draft.no_reuse = compare_without_reuse(session, series.ample_bytes, digest)
        if request.certify:
            draft.certificate = certify(session, series)
        draft.journal = journal.path
    require_no_overlap(request, draft.no_reuse)
    require_agreement(draft.reference, request.tolerance_steps)


def _measure(session: Session, series: TrialSeries) -> None:
    """Times, where the request wants them and the device can."""
    wanted = session.request.runs_on(session.timing) and session.hello.can(Capability.MEASURE)
    if wanted and series.measured:
        if session.request.strategy is Strategy.REFLASH:
            session.progress.stage("flash")
            session.restore_program()
        digest = int(series.measured.output_digest, 16)
        session.draft.timing = measure_session(session, series.ample_bytes, digest, series.result().min_bytes)


def _measure_only(request: SweepRequest, progress: Progress, draft: Draft) -> None:
    require_comparable(request)
    with open_session(request, progress, draft) as session:
        progress.stage("ample run")
        run, ample_bytes = session.run_ample()
        draft.measured, draft.reference = session.observation.take(run)
        digest = int(draft.measured.output_digest, 16)
        draft.timing = measure_session(session, ample_bytes, digest, request.arena_bytes)
        if request.no_reuse:
            draft.no_reuse = compare_without_reuse(session, ample_bytes, digest)
        draft.link = evidence.link_record(session.device.counts)
    require_no_overlap(request, draft.no_reuse)
    require_agreement(draft.reference, request.tolerance_steps)


def _soak(request: SweepRequest, progress: Progress, draft: Draft) -> None:
    with open_session(request, progress, draft) as session:
        arena_bytes = soak_arena_bytes(session)
        progress.stage("ample run")
        run, _ = session.run_ample()
        draft.measured, draft.reference = session.observation.take(run)
        try:
            soak_session(session, arena_bytes, int(draft.measured.output_digest, 16))
        finally:
            draft.link = evidence.link_record(session.device.counts)
    require_agreement(draft.reference, request.tolerance_steps)


def _keep_trials(series: TrialSeries, session: Session) -> None:
    draft = session.draft
    draft.measured, draft.reference = series.measured, series.reference
    draft.link = evidence.link_record(session.device.counts)
    draft.search = evidence.search_record(
        series.result(), flashes=session.flashes, ample_bytes=series.ample_bytes, resumed_trials=series.resumed
    )


def _reconcile(plan: ArenaPlan | SharedPlan | None, draft: Draft) -> None:
    if plan and draft.measured and draft.search and draft.device:
        measured = evidence.measured_arena(draft.measured, draft.search, draft.device)
        draft.reconciliation = reconcile(evidence.planned_arena(plan), measured).to_document()
