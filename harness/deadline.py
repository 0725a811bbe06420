"""Deadlines: every wait has one, and it is handed down, never renewed on the way."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadline:
    """A point on the monotonic clock; ``Deadline.never()`` is for waits that a caller above bounds."""

    at_s: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        return cls(time.monotonic() + seconds)

    @classmethod
    def never(cls) -> Deadline:
        return cls(math.inf)

    @property
    def remaining_s(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self.at_s - time.monotonic())

    @property
    def passed(self) -> bool:
        return time.monotonic() >= self.at_s

    def sooner(self, seconds: float) -> Deadline:
        """This deadline, or one ``seconds`` from now, whichever comes first."""
        return Deadline(min(self.at_s, time.monotonic() + seconds))
