"""What is plugged in, as entries for lab.yaml: probe and serial port paired by USB serial number, never by order."""

from __future__ import annotations

from dataclasses import dataclass

from harness.board.catalogue import list_boards
from harness.board.lab_file import RigEntry
from harness.board.record import HardwareBoard
from harness.link.ports import SerialPort, list_ports
from harness.probe.attached import AttachedProbe, attached_probes
from harness.rig.pairing import is_board_of, normalised_serial


@dataclass(frozen=True, slots=True)
class Discovery:
    """``entries`` can go into lab.yaml; ``questions`` say what a person has to decide."""

    probes: tuple[AttachedProbe, ...]
    ports: tuple[SerialPort, ...]
    entries: tuple[RigEntry, ...]
    questions: tuple[str, ...]


def discover() -> Discovery:
    """Looks, opens nothing. Raises ProbeError when the probes cannot be listed."""
    boards = [board for board in list_boards() if isinstance(board, HardwareBoard) and board.kind == "hardware"]
    return propose(attached_probes(), list_ports(), boards)


def propose(probes: tuple[AttachedProbe, ...], ports: tuple[SerialPort, ...], boards: list[HardwareBoard]) -> Discovery:
    """An entry for each probe whose board is known."""
    entries: list[RigEntry] = []
    questions: list[str] = []
    for probe in probes:
        fitting = [board for board in boards if is_board_of(probe, board)]
        if len(fitting) != 1:
            which = ", ".join(board.name for board in fitting) or "none of the catalogue"
            questions.append(f"{probe.title}: which board is it on? pyOCD's table fits {which}")
            continue
        mine = [port for port in ports if _belongs(port, probe)]
        if len(mine) != 1 and not probe.uid.startswith("sim"):
            there = ", ".join(port.device for port in mine) or "none"
            questions.append(f"{probe.title}: which serial port is its UART? with its serial number: {there}")
        is_twin = probe.uid.startswith("sim")  # which has no other probe than its own
        entries.append(
            RigEntry(
                name=_unused_name(fitting[0].name, entries),
                board=("sim:" if is_twin else "") + fitting[0].name,
                probe="" if is_twin else probe.uid,
                port=f"usb:{mine[0].usb_serial}" if len(mine) == 1 else "",
            )
        )
    return Discovery(probes, ports, tuple(entries), tuple(questions))


def _belongs(port: SerialPort, probe: AttachedProbe) -> bool:
    return bool(port.usb_serial) and normalised_serial(port.usb_serial) == normalised_serial(probe.uid)


def _unused_name(board: str, entries: list[RigEntry]) -> str:
    taken = {entry.name for entry in entries}
    return next(name for n in range(1, len(entries) + 2) if (name := f"{board}-{n}") not in taken)
