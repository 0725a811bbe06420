"""Opening a rig: from a board to a probe that flashes and resets it, and the link that talks to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from harness.board.fault_ranges import check_fault
from harness.board.lab_file import RigEntry, find_lab
from harness.board.record import Board, HardwareBoard
from harness.errors import ProbeError, UsageError
from harness.link.protocol import Link
from harness.link.serial_link import SerialLink
from harness.link.transcript import TranscribedLink
from harness.probe.protocol import Probe
from harness.rig.options import RigOptions


@dataclass(frozen=True, slots=True)
class OpenRig:
    """A board that is connected; ``line`` is the serial port under ``link``. ``close`` ends link, then probe."""

    board: Board
    probe: Probe
    link: Link
    line: SerialLink | None = None

    def close(self) -> None:
        try:
            self.link.close()
        finally:
            self.probe.close()


#: Opens one kind of board: probe and link. Both are closed by the rig.
Opener = Callable[[Board, RigOptions], tuple[Probe, Link]]


@contextmanager
def open_rig(board: Board, options: RigOptions) -> Iterator[OpenRig]:
    """The rig of a board, closed at the end. Raises ProbeError or LinkError when it cannot be opened."""
    probe, link = OPENERS[board.kind](board, options)
    line = link if isinstance(link, SerialLink) else None
    rig = OpenRig(board, probe, TranscribedLink(link, options.transcript) if options.transcript else link, line)
    try:
        yield rig
    finally:
        rig.close()


def rig_for(board: Board, name: str | None = None, boards_dirs: Iterable[Path] | None = None) -> RigEntry | None:
    """The lab's entry for the board, or the one of this name; None where no lab file tells. ``boards_dirs``: as for
    `find_lab`.

    Raises UsageError when several entries have such a board, or the named one has another.
    """
    lab = find_lab(boards_dirs=boards_dirs)
    if lab is None:
        if name is not None:
            raise UsageError(
                f"there is no lab.yaml that could have a rig {name}",
                remedy="harness lab discover proposes one",
                code="lab.missing",
            )
        return None
    if name is not None:
        entry = lab.rig(name)
        if entry.board != board.name:
            raise UsageError(
                f"rig {name} has a {entry.board}, asked for was {board.name}",
                remedy="name the board that is on the rig",
            )
        return entry
    fitting = [entry for entry in lab.rigs if entry.board == board.name]
    if len(fitting) > 1:
        raise UsageError(
            f"{len(fitting)} rigs have a {board.name}: {', '.join(entry.name for entry in fitting)}",
            remedy="say which: --rig NAME",
            code="rig.ambiguous",
        )
    return fitting[0] if fitting else None


def require_rig(board: Board, entry: RigEntry | None = None) -> None:
    """Look whether a board on the desk is there, and whether a twin's faults can act, before minutes are spent on its
    firmware: what ``open_rig`` would say after them. Raises ProbeError, UsageError."""
    if board.kind == "host":
        return
    entry = entry or rig_for(board)
    for fault in entry.faults if entry else ():
        check_fault(fault, _with_chip(board))
    if board.kind == "hardware":
        from harness.rig.hardware import probe_uid

        probe_uid(_with_chip(board), entry)


def _open_host(_board: Board, options: RigOptions) -> tuple[Probe, Link]:
    from harness.sim.host.board import HostBoard

    probe = HostBoard(interpreter=options.interpreter.upper())
    try:
        return probe, SerialLink(probe.port)
    except BaseException:
        probe.close()
        raise


def _open_hardware(board: Board, options: RigOptions) -> tuple[Probe, Link]:
    from harness.rig.hardware import open_hardware

    return open_hardware(_with_chip(board), _on_a_rig(board, options))


def _open_twin(board: Board, options: RigOptions) -> tuple[Probe, Link]:
    from harness.rig.twin import open_twin

    return open_twin(_with_chip(board), _on_a_rig(board, options))


def _on_a_rig(board: Board, options: RigOptions) -> RigOptions:
    return options if options.rig else replace(options, rig=rig_for(board))


def _with_chip(board: Board) -> HardwareBoard:
    if isinstance(board, HardwareBoard):
        return board
    raise ProbeError(f"{board.name} has no chip to open a rig for", remedy="take --board host", code="rig.unsupported")


#: Kind of board → how it is opened.
OPENERS: dict[str, Opener] = {"host": _open_host, "hardware": _open_hardware, "sim": _open_twin}
