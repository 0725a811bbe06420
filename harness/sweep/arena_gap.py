"""The free bytes between head and tail: setting up may use them, running must not. Read through the probe."""

from __future__ import annotations

from dataclasses import dataclass

from harness.board.record import HardwareBoard
from harness.deadline import Deadline
from harness.sweep.session import Session
from harness.wire import messages as wire

#: Read at each end of the gap at most: an overrun of a neighbour begins there.
_MOST_BYTES = 1024
_READ_S = 10.0


@dataclass(frozen=True, slots=True)
class ArenaGap:
    """``parts`` are (address, bytes as they were after the trial)."""

    session: Session
    parts: tuple[tuple[int, bytes], ...]

    @classmethod
    def after_trial(cls, session: Session, report: wire.TrialReport, arena_bytes: int) -> ArenaGap | None:
        """None where nobody tells where head and tail end, or where the probe cannot see what the core wrote (a data
        cache in between)."""
        ends = _ends(session, report)
        base = session.hello.base_address
        if ends is None or base == wire.UNKNOWN_U64 or _is_cached(session, base):
            return None
        head_bytes, tail_bytes = ends
        begin, end = base + head_bytes, base + arena_bytes - tail_bytes
        size = end - begin
        if size < 4:
            return None
        first = min(size, _MOST_BYTES)
        last = min(size - first, _MOST_BYTES)
        spans = [(begin, first), (end - last, last)] if last else [(begin, first)]
        return cls(session, tuple((address, _read(session, address, length)) for address, length in spans))

    def is_unchanged(self) -> bool:
        return all(_read(self.session, address, len(data)) == data for address, data in self.parts)


def _ends(session: Session, report: wire.TrialReport) -> tuple[int, int] | None:
    """(head, tail) in bytes: as the device tells, else as an exact plan says whose sum is what was used."""
    if wire.UNKNOWN_U32 not in {report.head_bytes, report.tail_bytes}:
        return report.head_bytes, report.tail_bytes
    plan = session.plan
    if plan is None or plan.head_bytes + plan.tail_bytes != report.used_bytes:
        return None
    return plan.head_bytes, plan.tail_bytes


def _is_cached(session: Session, address: int) -> bool:
    board = session.board
    if not isinstance(board, HardwareBoard):
        return True
    inside = [memory for memory in board.memories if memory.address <= address < memory.end]
    return board.caches.data and any(memory.cached for memory in inside)


def _read(session: Session, address: int, size: int) -> bytes:
    return session.rig.probe.read_memory(address, size, Deadline.after(_READ_S))
