"""How a rig is opened."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.board.lab_file import RigEntry


@dataclass(frozen=True, slots=True)
class RigOptions:
    """``interpreter``: recording or preserve_all, for the host board (elsewhere it is part of the firmware).
    ``transcript`` is the file that the link's traffic is written to. ``rig``: which of the lab's entries; None: the
    only one that fits the board. ``save_to``: where a firmware that is not ours is kept before it is overwritten; None:
    nowhere. ``own_mark``: bytes that every firmware of ours has behind its vectors. ``rtt_address``: talk through the
    probe, by the RTT control block there, instead of a serial port. ``talks`` False: a board on the desk is only
    flashed, and its port is left to whoever has it."""

    interpreter: str = "recording"
    transcript: Path | None = None
    rig: RigEntry | None = None
    save_to: Path | None = None
    own_mark: bytes = b""
    rtt_address: int | None = None
    talks: bool = True
