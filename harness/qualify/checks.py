"""The checks of a qualification, each on an open session. A check says what it saw, passed or not."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable

from harness.board.record import HardwareBoard
from harness.deadline import Deadline
from harness.device.client import RebootedError, RefusedError, SilenceError, UnsupportedError
from harness.device.timing import measure_clock, require_clock, require_running_counter
from harness.device.verdict import describe_fault
from harness.errors import HarnessError
from harness.qualify.known_models import CORES, TFLM_COMMIT, KnownMinimum
from harness.qualify.record import CheckRecord
from harness.sweep.session import Session
from harness.trial import Outcome, Reason
from harness.wire import messages as wire

#: Lost requests per request that a line may show.
LINK_TOLERANCE = 0.001
_ANSWER_S = 10.0
_PING_BYTES = 224
_HARDWARE_TIMING = frozenset({"cycles", "systick"})


def passed(name: str, detail: str, **values: object) -> CheckRecord:
    return CheckRecord(name, "passed", detail, values)


def failed(name: str, detail: str, **values: object) -> CheckRecord:
    return CheckRecord(name, "failed", detail, values)


def not_applicable(name: str, why: str) -> CheckRecord:
    return CheckRecord(name, "not_applicable", why)


def guarded(name: str, check: Callable[[], CheckRecord]) -> CheckRecord:
    """The check's answer; an error is a failed check."""
    try:
        return check()
    except UnsupportedError as exc:
        return not_applicable(name, exc.message)
    except HarnessError as exc:
        return failed(name, exc.message, code=exc.code)


def id_code(session: Session) -> CheckRecord:
    """The chip's own number, read through the probe."""
    board = session.board
    if not isinstance(board, HardwareBoard):
        return not_applicable("id_code", "the host board has no chip")
    wanted = board.id_code
    data = session.rig.probe.read_memory(wanted.address, 4, Deadline.after(_ANSWER_S))
    found = int.from_bytes(data, "little") & wanted.mask
    detail = f"{found:#x} at {wanted.address:#010x}, the board file says {wanted.value:#x}"
    return (passed if found == wanted.value else failed)("id_code", detail, found=found, expected=wanted.value)


def flash(session: Session) -> CheckRecord:
    """Every byte of the image, read back once more and apart from the programming."""
    segments = session.program.image.segments
    if not segments:
        return not_applicable("flash", "the host board has no flash")
    deadline = Deadline.after(120)
    for address, data in segments:
        found = session.rig.probe.read_memory(address, len(data), deadline)
        if found != data:
            bad = next(i for i, (a, b) in enumerate(zip(found, data, strict=True)) if a != b)
            return failed("flash", f"{address + bad:#010x} holds {found[bad]:#04x}, written was {data[bad]:#04x}")
    size = sum(len(data) for _, data in segments)
    return passed("flash", f"{size:,} bytes read back as written", bytes=size, flashes=session.flashes)


def link(session: Session, size_bytes: int, progress: Callable[[str], None]) -> CheckRecord:
    """Random bytes there and back until ``size_bytes`` went each way."""
    counts, device = session.device.counts, session.device
    before = dataclasses.replace(counts)
    started, sent, told = time.monotonic(), 0, 0
    while sent < size_bytes:
        data = os.urandom(min(_PING_BYTES, size_bytes - sent))
        device.ping(data, Deadline.after(_ANSWER_S))
        sent += len(data)
        if sent - told >= size_bytes // 10:
            told = sent
            left = (time.monotonic() - started) / sent * (size_bytes - sent)
            progress(f"link: {sent:,} of {size_bytes:,} bytes, {left:.0f} s left")
    seconds = time.monotonic() - started
    requests = counts.requests - before.requests
    repeated = counts.retransmissions - before.retransmissions
    late = min(repeated, counts.stale - before.stale)  # answered twice: slow, not lost
    lost, damaged = repeated - late, counts.damaged - before.damaged
    detail = f"{lost} of {requests:,} requests lost, {late} late, {damaged} damaged, {sent:,} bytes each way"
    record = passed if lost <= LINK_TOLERANCE * requests else failed
    return record(
        "link",
        detail,
        bytes=sent,
        requests=requests,
        lost=lost,
        late=late,
        damaged=damaged,
        seconds=round(seconds, 3),
    )


def counter(session: Session) -> CheckRecord:
    """It advances; on hardware it runs as fast as the board file says."""
    deadline = Deadline.after(30)
    require_running_counter(session.device, deadline)
    if session.timing not in _HARDWARE_TIMING or not session.hello.clock_hz:
        return passed("counter", f"advances; counts {session.timing}, which are no clock", timing=session.timing)
    clock = measure_clock(session.device, deadline)
    require_clock(clock, session.hello.clock_hz, session.board.name)
    return passed("counter", f"{clock.hz / 1e6:.3f} MHz, by this computer's clock", hz=clock.hz)


def stack(session: Session) -> CheckRecord:
    """The painted stack shows a plausible high-water."""
    used = session.device.counters(Deadline.after(_ANSWER_S)).stack_used_bytes
    size = session.draft.environment.stack_bytes if session.draft.environment else None
    if used == wire.UNKNOWN_U32 or size is None:
        return not_applicable("stack", "the device does not tell its stack")
    detail = f"{used:,} of {size:,} bytes used since boot"
    return (passed if 0 < used < size else failed)("stack", detail, used_bytes=used, size_bytes=size)


#: Check → what is provoked → the kind of fault record that must be there afterwards.
SELF_TESTS = {
    "fault_record": (wire.SelfTest.FAULT, wire.FaultKind.USAGE),
    "watchdog": (wire.SelfTest.HANG, wire.FaultKind.WATCHDOG),
    "stack_guard": (wire.SelfTest.STACK, wire.FaultKind.STACK),
}


def self_test(session: Session, name: str) -> CheckRecord:
    """Provoke it on a fresh boot; the device must come up again by itself with the record of it."""
    provoked, expected = SELF_TESTS[name]
    bench, device = session.bench, session.device
    hello = bench.boot(Deadline.after(_ANSWER_S))
    if hello.fault_pending:
        device.fault(Deadline.after(_ANSWER_S))
    device.self_test(provoked, Deadline.after(_ANSWER_S))
    _await_reboot(session)
    fault = bench.fault_record(Deadline.after(_ANSWER_S))
    detail = describe_fault(fault) + bench.where(fault)
    return (passed if fault.kind is expected else failed)(name, detail, kind=fault.kind.name.lower(), pc=fault.pc)


def _await_reboot(session: Session) -> None:
    """Until the device does not know the session any more, or the time is over."""
    deadline = Deadline.after(_ANSWER_S)
    while not deadline.passed and not _has_rebooted(session, deadline):
        pass


def _has_rebooted(session: Session, deadline: Deadline) -> bool:
    try:
        session.device.ping(b"", deadline.sooner(2.0))
    except (RebootedError, RefusedError):
        return True
    except SilenceError:
        pass
    return False


def known_minimum(session: Session, known: KnownMinimum) -> CheckRecord:
    """The known size works with the known use, and 16 bytes less do not."""
    name = f"minimum of {known.name}"
    hello = session.hello
    core = session.board.core
    if hello.tflm_commit != TFLM_COMMIT or core not in CORES or hello.interpreter is not wire.InterpreterKind.PLAIN:
        return not_applicable(name, f"known for TFLM {TFLM_COMMIT[:12]} on {' and '.join(sorted(CORES))} only")
    run, _ = session.run_ample()
    assert run.report is not None
    works = session.bench.run(known.min_bytes, run.report.output_digest, Deadline.after(60)).trial
    below = session.bench.run(known.min_bytes - 16, run.report.output_digest, Deadline.after(60)).trial
    detail = (
        f"{known.min_bytes:,} bytes: {works.outcome.value}, {works.used_bytes} used (known {known.used_bytes}); "
        f"{below.arena_bytes:,} bytes: {below.reason.value if below.reason else below.outcome.value}"
    )
    right = works.outcome is Outcome.WORKS and abs((works.used_bytes or 0) - known.used_bytes) < 16
    fails = below.outcome is Outcome.TOO_SMALL and below.reason is not Reason.LINK_LOST
    return (passed if right and fails else failed)(name, detail, min_bytes=known.min_bytes, used_bytes=works.used_bytes)
