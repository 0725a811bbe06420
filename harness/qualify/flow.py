"""The flow of a qualification: for each known model a session; in the first one the board itself is looked at."""

from __future__ import annotations

import dataclasses
import time
from datetime import datetime, timezone

from harness import __version__
from harness.errors import HarnessError
from harness.qualify import checks
from harness.qualify.known_models import known_minima, write_model
from harness.qualify.record import CheckRecord, QualificationRecord
from harness.sweep.draft import Draft
from harness.sweep.request import Progress, SweepRequest
from harness.sweep.session import Session, open_session


def qualify(request: SweepRequest, progress: Progress, *, rig: str, link_bytes: int) -> QualificationRecord:
    """All checks on ``request.board``, whose ``model_path`` is not used. What goes wrong is a failed check."""
    started = time.monotonic()
    found: list[CheckRecord] = []
    first = Draft.of(request)
    for number, known in enumerate(known_minima(_kernels(request))):
        path = write_model(known, request.results / "qualify-models")
        one = dataclasses.replace(request, model_path=path)
        draft = Draft.of(one)
        try:
            with open_session(one, progress, draft) as session:
                if number == 0:
                    first = draft
                    found += _board_checks(session, progress, link_bytes)
                progress.stage(f"minimum of {known.name}")
                name = f"minimum of {known.name}"
                found.append(checks.guarded(name, lambda: checks.known_minimum(session, known)))  # noqa: B023
        except HarnessError as exc:
            found.append(checks.failed("session", exc.message, code=exc.code, model=known.name))
            break
    qualified = _is_qualified(found)
    return QualificationRecord(
        created=datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        harness_version=__version__,
        board=request.board,
        rig=rig,
        kernels=first.kernels,
        qualified=qualified,
        evidence=_label(request.board, qualified),
        checks=tuple(found),
        device=first.device,
        environment=first.environment,
        seconds=round(time.monotonic() - started, 3),
    )


def _kernels(request: SweepRequest) -> str:
    if request.kernels:
        return request.kernels
    return "reference" if request.board == "host" else "cmsis_nn"


def _board_checks(session: Session, progress: Progress, link_bytes: int) -> list[CheckRecord]:
    def run(name: str, check: object) -> CheckRecord:
        progress.stage(name)
        return checks.guarded(name, check)  # type: ignore[arg-type]

    return [
        run("id_code", lambda: checks.id_code(session)),
        run("flash", lambda: checks.flash(session)),
        run("link", lambda: checks.link(session, link_bytes, progress.stage)),
        run("counter", lambda: checks.counter(session)),
        run("stack", lambda: checks.stack(session)),
        *(run(name, lambda name=name: checks.self_test(session, name)) for name in checks.SELF_TESTS),
    ]


def _is_qualified(found: list[CheckRecord]) -> bool:
    """No check failed, and known models were found again: without them the numbers were not looked at."""
    minima = [check for check in found if check.name.startswith("minimum of ")]
    return all(check.status != "failed" for check in found) and any(check.status == "passed" for check in minima)


def _label(board: str, qualified: bool) -> str:
    if not qualified or board == "host":
        return "none"
    return "twin" if board.startswith("sim:") else "silicon"
