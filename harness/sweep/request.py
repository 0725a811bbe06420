"""What a sweep is asked to do, and how it tells what it does."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Protocol

from harness.board.lab_file import RigEntry
from harness.inputs import InputChoice
from harness.trial import Trial


class Strategy(str, Enum):
    """GUIDED: one flash, the search starts at the plan, each trial is a reset. REFLASH: the naive way, kept to compare
    with: no plan, and a firmware built and flashed for every size."""

    GUIDED = "guided"
    REFLASH = "reflash"


@dataclass(frozen=True, slots=True)
class BuildChoice:
    """How a firmware is built; the host board has none. ``arena_region`` empty: the first of the board's places that
    is large enough. ``optimise`` is for the harness's own sources: TFLM comes compiled."""

    arena_region: str = ""
    optimise: str = "Os"
    caches: bool = True


#: How much larger than its minimum an arena is recommended to be, when nothing is said.
DEFAULT_HEADROOM = 1.1

#: Timed runs when nothing is said.
DEFAULT_RUNS = 10


@dataclass(frozen=True, slots=True)
class SoakSpec:
    """How long to soak: ``runs``, or ``minutes`` where ``runs`` is None. ``spread_percent``: how far the counts of two
    runs may be apart."""

    runs: int | None = None
    minutes: float = 0.0
    spread_percent: float = 1.0


@dataclass(frozen=True, slots=True)
class SweepRequest:
    """One model on one board. ``timeout_s`` bounds the whole sweep, ``trial_timeout_s`` one trial. ``check`` False goes
    on with a model that the checks refuse. ``kernels`` and ``interpreter`` None: the board's own; a chip gets the plain
    interpreter, which is the one that is shipped, the host board the recording one. ``results`` is the folder of
    records and journals. ``rig`` None: the only one with such a board. ``save_foreign``: keep a firmware that is not
    ours before it is overwritten. ``build`` says how a firmware is built. ``runs`` timed Invokes follow ``warm_up``
    untimed ones; 0: none. ``certify`` proves the minimum in firmwares whose arena is a constant. ``arena_bytes``:
    what a measurement without a search takes for the smallest arena, and a soak runs in. ``variant`` names what of a
    matrix this run is, for the record. ``transport`` rtt: talk through the probe, without a UART.
    ``tolerance_steps``: outputs that differ from a reference's by more end the run as failed; None: they are told.
    ``headroom`` is the factor from the minimum to the arena that is recommended. ``no_reuse``: compare the outputs with
    those of a firmware that reuses no memory. ``others`` are models that share the arena with the first, set up and run
    after it in this order."""

    model_path: Path
    board: str
    boards_dirs: tuple[Path, ...] = ()
    kernels: str | None = None
    interpreter: str | None = None
    inputs: InputChoice = field(default_factory=InputChoice)
    step_bytes: int = 16
    timeout_s: float = 600.0
    trial_timeout_s: float = 20.0
    check: bool = True
    reference: bool = True
    resume: bool = True
    results: Path = Path("results")
    transcript: Path | None = None
    rig: RigEntry | None = None
    save_foreign: bool = True
    build: BuildChoice = field(default_factory=BuildChoice)
    strategy: Strategy = Strategy.GUIDED
    warm_up: int = 1
    runs: int | None = None
    certify: bool = False
    arena_bytes: int | None = None
    transport: str = "uart"
    no_reuse: bool = False
    others: tuple[Path, ...] = ()
    variant: tuple[tuple[str, str], ...] = ()
    tolerance_steps: float | None = None
    headroom: float = DEFAULT_HEADROOM
    soak: SoakSpec = field(default_factory=SoakSpec)

    def runs_on(self, timing: str) -> int:
        """Timed runs: as asked; by default some on a chip or twin, none on the host board, whose times say nothing
        about a chip."""
        if self.runs is not None:
            return self.runs
        return 0 if timing == "host_ns" else DEFAULT_RUNS


class Progress(Protocol):
    """Told as things happen; must not raise."""

    def stage(self, text: str) -> None:
        """What is done now: ``check``, ``plan``, ``flash`` …"""

    def trial(self, trial: Trial, number: int) -> None:
        """Trial ``number`` (from 1) has ended."""

    def device_text(self, text: str) -> None:
        """A line that the device printed; already safe to show."""


class SilentProgress:
    """For those who do not watch."""

    def stage(self, text: str) -> None:
        pass

    def trial(self, trial: Trial, number: int) -> None:
        pass

    def device_text(self, text: str) -> None:
        pass
