"""One thing that the harness needs or could use, and whether it is here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class Status(str, Enum):
    OK = "ok"
    MISSING = "missing"
    WRONG = "wrong"  # here, but of another version than declared, or it does not load
    UNAVAILABLE = "unavailable"  # not made for this platform


class Kind(str, Enum):
    PYTHON = "python"
    PACKAGE = "package"
    PROGRAM = "program"
    LIBRARY = "library"
    BOARD = "board"
    PORT = "port"
    PROBE = "probe"


@dataclass(frozen=True, slots=True)
class Part:
    """``needed_for`` names the capability that fails without it; ``required`` parts decide the exit code."""

    kind: Kind
    name: str
    status: Status
    needed_for: str
    version: str = ""
    detail: str = ""
    remedy: str = ""
    required: bool = False

    @property
    def is_fatal(self) -> bool:
        return self.required and self.status in {Status.MISSING, Status.WRONG}


#: Capability → the ``needed_for`` of the parts that it stands on, the capabilities that it includes first.
CAPABILITIES: dict[str, tuple[str, ...]] = {
    "inspect, check and plan models": ("everything",),
    "sweep on the host board": ("everything", "the host board"),
    "compare with LiteRT": ("everything", "the reference backend"),
    "build firmware": ("everything", "building firmware"),
    "flash and measure boards": ("everything", "building firmware", "flashing boards"),
    "sweep on twins (sim:…)": ("everything", "building firmware", "flashing boards", "twins"),
    "draw pictures as PNG": ("everything", "PNG pictures"),
    "export a history as Parquet": ("everything", "Parquet"),
    "keep a history in PostgreSQL": ("everything", "PostgreSQL"),
}


def capability_gaps(parts: Iterable[Part]) -> dict[str, list[str]]:
    """Capability → the names of what is missing for it; an empty list means that it is there."""
    parts = list(parts)
    return {
        capability: sorted({part.name for part in parts if part.needed_for in needs and part.status is not Status.OK})
        for capability, needs in CAPABILITIES.items()
    }
