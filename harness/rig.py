"""Opening a rig: from a board to a probe that flashes and resets it, and the link that talks to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.board.record import Board
from harness.errors import ProbeError
from harness.link.protocol import Link
from harness.link.transcript import TranscribedLink
from harness.probe.protocol import Probe


@dataclass(frozen=True, slots=True)
class RigOptions:
    """``interpreter``: recording or preserve_all, for the host board (elsewhere it is part of the firmware).
    ``transcript`` is the file that the link's traffic is written to."""

    interpreter: str = "recording"
    transcript: Path | None = None


@dataclass(frozen=True, slots=True)
class OpenRig:
    """A board that is connected. ``close`` ends the link and then the probe."""

    board: Board
    probe: Probe
    link: Link

    def close(self) -> None:
        self.link.close()
        self.probe.close()


#: Opens one kind of board: probe and link. Both are closed by the rig.
Opener = Callable[[Board, RigOptions], tuple[Probe, Link]]


@contextmanager
def open_rig(board: Board, options: RigOptions) -> Iterator[OpenRig]:
    """The rig of a board, closed at the end. Raises ProbeError or LinkError when it cannot be opened."""
    opener = OPENERS.get(board.kind)
    if opener is None:
        raise ProbeError(
            f"no rig can be opened for boards of kind {board.kind}", remedy="take --board host", code="rig.unsupported"
        )
    probe, link = opener(board, options)
    rig = OpenRig(board, probe, TranscribedLink(link, options.transcript) if options.transcript else link)
    try:
        yield rig
    finally:
        rig.close()


def _open_host(_board: Board, options: RigOptions) -> tuple[Probe, Link]:
    from harness.link.serial_link import SerialLink
    from harness.sim.host.board import HostBoard

    probe = HostBoard(interpreter=options.interpreter.upper())
    try:
        return probe, SerialLink(probe.port)
    except BaseException:
        probe.close()
        raise


#: Kind of board → how it is opened.
OPENERS: dict[str, Opener] = {"host": _open_host}
