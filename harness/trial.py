"""One arena size on one fresh boot, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Outcome(str, Enum):
    """WORKS: AllocateTensors and Invoke succeeded and the outputs equal those of the ample run."""

    WORKS = "works"
    TOO_SMALL = "too_small"
    ERROR = "error"


class Reason(str, Enum):
    """Why a trial did not work. Only seen at a size below one that worked do they mean *too small*."""

    ALLOC_FAILED = "alloc_failed"  # AllocateTensors returned an error
    HALTED = "halted"  # a TFLM check stopped the program
    FAULT = "fault"  # hard fault, bus fault, SIGSEGV
    TIMEOUT = "timeout"  # no answer in time, the link alive
    RESET = "reset"  # the device rebooted without a fault record
    WRONG_OUTPUT = "wrong_output"  # OK, but the outputs differ from the ample run's
    INVOKE_FAILED = "invoke_failed"  # Invoke returned an error
    GUARD_OVERRUN = "guard_overrun"  # bytes outside the arena under test were written
    LINK_LOST = "link_lost"  # infrastructure: never evidence about the arena


@dataclass(frozen=True, slots=True)
class Trial:
    """``arena_bytes`` was tried from a 16-aligned base on a fresh boot. ``detail`` is TFLM's or the fault's text."""

    arena_bytes: int
    outcome: Outcome
    reason: Reason | None = None
    detail: str = ""
    used_bytes: int | None = None
    output_digest: str = ""
    seconds: float = 0.0
    attempts: int = 1
