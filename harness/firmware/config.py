"""What a firmware is to be."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class Interpreter(str, Enum):
    """Which of TFLM's interpreters runs the model; the values are those of HARNESS_INTERPRETER."""

    PLAIN = "plain"
    RECORDING = "recording"
    PRESERVE_ALL = "preserve_all"

    @property
    def number(self) -> int:
        return list(Interpreter).index(self)


class Transport(str, Enum):
    """How the firmware talks to the host."""

    UART = "uart"
    RTT = "rtt"


@dataclass(frozen=True, slots=True)
class FirmwareConfig:
    """``capacity_bytes`` is the arena's size in the image; with ``static_arena`` the only size it runs with.

    ``arena_region`` is a memory of the board or contiguous ones joined by ``+``; empty: the first of the board's
    places that is large enough. ``optimise`` is for the harness's own sources: TFLM comes compiled. ``inputs`` are
    baked into flash, one per model input, empty bytes: none. ``caches`` False leaves the core's caches, the flash
    accelerator and the prefetch off.
    """

    capacity_bytes: int
    static_arena: bool = False
    arena_region: str = ""
    interpreter: Interpreter = Interpreter.PLAIN
    transport: Transport = Transport.UART
    optimise: str = "-Os"
    stack_bytes: int | None = None
    watchdog_s: int = 120
    caches: bool = True
    inputs: tuple[bytes, ...] = field(default=(), repr=False)
