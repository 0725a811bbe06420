"""What changes for one model between two TFLM libraries: bytes per category and operator, cycles per operator."""

from __future__ import annotations

import msgspec


class ByteTerm(msgspec.Struct, frozen=True, kw_only=True):
    """One number with both libraries. ``explanation`` says where a difference comes from, as far as it can be told.
    None: this library's run does not tell it."""

    name: str
    before: int | None
    after: int | None
    explanation: str = ""

    @property
    def difference(self) -> int | None:
        return None if self.before is None or self.after is None else self.after - self.before


class CycleTerm(msgspec.Struct, frozen=True, kw_only=True):
    """``name`` is an operator, or Invoke. ``beyond_noise``: more than the spread of the timed runs."""

    name: str
    before: float
    after: float
    beyond_noise: bool


class UpgradeRecord(msgspec.Struct, frozen=True, kw_only=True):
    """``before`` and ``after`` are TFLM commits, or the libraries' folders where none is known. ``unexplained_bytes``
    is what is left of the difference in arena_used_bytes() after its categories."""

    model: str
    board: str
    kernels: str
    before: str
    after: str
    bytes: tuple[ByteTerm, ...] = ()
    cycles: tuple[CycleTerm, ...] = ()
    unexplained_bytes: int | None = None
    problem: str = ""
