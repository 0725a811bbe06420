"""The measurement: run times in an ample arena and in the smallest one, time by operator, and the clock."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from harness.device.timing import (
    MeasuredClock,
    OperatorTimes,
    RunTimes,
    measure_clock,
    measure_operators,
    measure_runs,
    require_clock,
)
from harness.errors import DeviceError, HarnessError, UnfitModelError
from harness.model.state import is_stateful
from harness.record.schema import (
    ClockRecord,
    OperatorTimeRecord,
    ProfileRecord,
    RunTimesRecord,
    TimingRecord,
)
from harness.sweep.session import Session
from harness.trial import Outcome, Trial
from harness.units import format_size
from harness.wire import messages as wire

#: Timing kinds that are time on hardware.
_HARDWARE_TIMING = frozenset({"cycles", "systick"})


def measure_session(session: Session, ample_bytes: int, output_digest: int, min_bytes: int | None) -> TimingRecord:
    """Times in ``ample_bytes`` and, where it is known, in ``min_bytes``: one fresh boot each, both with the outputs of
    the ample run. Raises DeviceError for what cannot be trusted."""
    session.progress.stage("measure")
    ample = _times_in(session, ample_bytes, output_digest)
    device, deadline = session.device, session.deadline
    profile = measure_operators(device, deadline) if session.hello.can(wire.Capability.PROFILE) else None
    clock = _clock(session)
    minimum = _times_in(session, min_bytes, output_digest) if min_bytes is not None else None
    return TimingRecord(
        timing=session.timing,
        ample=ample,
        minimum=minimum,
        profile=_profile_record(profile, session) if profile else None,
        clock=ClockRecord(**dataclasses.asdict(clock)) if clock else None,
    )


def _times_in(session: Session, arena_bytes: int, output_digest: int) -> RunTimesRecord:
    session.progress.stage(f"measure in {format_size(arena_bytes)}")
    run = session.bench.run(arena_bytes, output_digest, session.deadline)
    if run.trial.outcome is not Outcome.WORKS:
        raise does_not_work(run.trial, arena_bytes == session.request.arena_bytes)
    request = session.request
    runs = request.runs_on(session.timing)
    stateful = is_stateful(session.model)
    times = measure_runs(session.device, request.warm_up, runs, session.deadline, reset_state=stateful)
    if times.first_deviation is not None and not stateful:
        raise DeviceError(
            f"run {times.first_deviation} of {times.runs} gave other outputs than the first, from the same inputs",
            remedy="memory is overwritten between runs: harness soak looks closer",
            code="device.outputs_change",
        )
    return _times_record(arena_bytes, times)


def does_not_work(trial: Trial, was_given: bool) -> HarnessError:
    """Why a size that was named, or that had worked, did not."""
    why = f"{trial.reason.value if trial.reason else 'error'} {trial.detail}".rstrip()
    arena = format_size(trial.arena_bytes)
    if was_given:
        return UnfitModelError(
            f"the model does not work in an arena of {arena}: {why}",
            remedy="harness sweep finds the smallest that works",
            code="trial.does_not_work",
        )
    return DeviceError(
        f"an arena of {arena} worked in its trial, and not when it was to be measured: {why}",
        remedy="the device is not repeatable: harness soak finds the first run that differs",
        code="device.not_repeatable",
    )


def _clock(session: Session) -> MeasuredClock | None:
    """None on the host board and on twins, whose counters are no clocks."""
    if session.timing not in _HARDWARE_TIMING or not session.hello.clock_hz:
        return None
    clock = measure_clock(session.device, session.deadline)
    require_clock(clock, session.hello.clock_hz, session.board.name)
    return clock


def _times_record(arena_bytes: int, times: RunTimes) -> RunTimesRecord:
    values = dataclasses.asdict(times)
    values["output_digest"] = f"{times.output_digest:016x}"
    return RunTimesRecord(arena_bytes=arena_bytes, **values)


def _profile_record(times: OperatorTimes, session: Session) -> ProfileRecord:
    firmware = session.program.firmware
    kernels = firmware.operator_kernels if firmware else {}
    names = [whole_name(row.name, kernels) for row in times.rows]
    rows = tuple(
        OperatorTimeRecord(name, row.count, kernels.get(name, "")) for name, row in zip(names, times.rows, strict=True)
    )
    return ProfileRecord(rows, times.invoke, times.unattributed, times.truncated)


def whole_name(tag: str, operators: Collection[str]) -> str:
    """The one operator of the model whose name begins with what the wire had room for."""
    if tag in operators:
        return tag
    longer = [name for name in operators if name.startswith(tag)]
    return longer[0] if len(longer) == 1 else tag
