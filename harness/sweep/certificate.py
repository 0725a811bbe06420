"""The certificate: the minimum proven in the form that is shipped, an arena whose size is a compile-time constant."""

from __future__ import annotations

from harness.errors import DeviceError
from harness.record.schema import CertificateRecord, StaticTrialRecord
from harness.sweep.reflash import run_static
from harness.sweep.session import Session
from harness.sweep.trials import TrialSeries
from harness.trial import Outcome, Trial
from harness.units import format_size


def certify(session: Session, series: TrialSeries) -> CertificateRecord:
    """Build and flash a static arena of the minimum, which must run, and of one step less, which must not. Raises
    DeviceError where either turns out otherwise."""
    result = series.result()
    assert result.min_bytes is not None and series.measured is not None, "certified is what a search has found"
    digest = int(series.measured.output_digest, 16)
    flashed_before = session.flashes
    works, build = _run_static(session, result.min_bytes, digest)
    if works.outcome is not Outcome.WORKS:
        raise _disproved(works, "works with a runtime arena of that size and not with a static one")
    below = result.min_bytes - result.step_bytes
    fails = None
    if below > 0:
        trial, build_below = _run_static(session, below, digest)
        if trial.outcome is Outcome.WORKS:
            raise _disproved(trial, "fails with a runtime arena of that size and works with a static one")
        fails = _static_record(trial, build_below)
    return CertificateRecord(_static_record(works, build), fails, session.flashes - flashed_before)


def _run_static(session: Session, arena_bytes: int, digest: int) -> tuple[Trial, str]:
    """(trial, build id) of a firmware with a static arena."""
    session.progress.stage(f"certify {format_size(arena_bytes)}")
    run, program = run_static(session, arena_bytes, digest, session.deadline)
    trial = run.trial
    session.progress.stage(f"certify {format_size(arena_bytes)}: {trial.outcome.value}")
    if trial.outcome is Outcome.ERROR:
        raise DeviceError(
            f"the static arena of {format_size(arena_bytes)} gave no answer: {trial.detail}", remedy="run again"
        )
    return trial, program.image.build_id


def _static_record(trial: Trial, build_id: str) -> StaticTrialRecord:
    reason = trial.reason.value if trial.reason else None
    return StaticTrialRecord(
        trial.arena_bytes, build_id, trial.outcome.value, reason, trial.detail, used_bytes=trial.used_bytes
    )


def _disproved(trial: Trial, what: str) -> DeviceError:
    return DeviceError(
        f"the minimum is not certified: the model {what} ({format_size(trial.arena_bytes)}: "
        f"{trial.reason.value if trial.reason else trial.outcome.value} {trial.detail})".replace(" )", ")"),
        remedy="something else than the arena's size decides: run again with --transcript, and report it",
        code="certificate.disproved",
    )
