"""The naive way to a minimum, kept to compare with: a firmware built and flashed for every size."""

from __future__ import annotations

from harness.deadline import Deadline
from harness.device.bench import TrialRun
from harness.device.client import Device
from harness.sweep.image import CrossFirmware, Program
from harness.sweep.session import Session, bench_for


class ReflashBench:
    """Runs a trial of a size in a firmware that has an arena of just that size. Counts its flashes in the session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def device(self) -> Device:
        return self._session.device

    def run(self, arena_bytes: int, ample_digest: int | None, deadline: Deadline) -> TrialRun:
        """Build, flash, boot, one trial."""
        run, _ = run_static(self._session, arena_bytes, ample_digest, deadline)
        return run


def run_static(
    session: Session, arena_bytes: int, ample_digest: int | None, deadline: Deadline
) -> tuple[TrialRun, Program]:
    """One trial in a firmware whose arena is a constant, in the region of the session's own."""
    firmware, first = session.firmware, session.program.firmware
    assert isinstance(firmware, CrossFirmware) and first is not None, "refused where the sweep began"
    session.progress.stage("build")
    program = firmware.static_program(session.model, arena_bytes, first.arena_region, session.others)
    session.progress.stage("flash")
    session.flashes += session.rig.probe.flash(program.image, deadline)
    bench = bench_for(session.rig, session.device, program, session.inputs, session.request)
    return bench.run(arena_bytes, ample_digest, deadline), program
