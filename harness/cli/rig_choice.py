"""Which rig the options of a command mean: ``--rig``, ``--sim-fault`` and ``--pace``."""

from __future__ import annotations

from typing import Any

from harness.board.lab_file import RigEntry


def chosen_rig(board_name: str, options: dict[str, Any]) -> RigEntry | None:
    """None: the only rig with such a board. Raises UsageError for a rig or a fault that does not fit."""
    if not (options["rig_name"] or options["faults"] or options["pace"]):
        return None
    import msgspec

    from harness.board.catalogue import load_board
    from harness.board.fault_ranges import check_fault
    from harness.board.record import HardwareBoard
    from harness.errors import UsageError
    from harness.rig.opening import rig_for

    board = load_board(board_name, options["boards_dirs"])
    entry = rig_for(board, options["rig_name"], options["boards_dirs"])
    if not options["faults"] and not options["pace"]:
        return entry
    if not isinstance(board, HardwareBoard) or not board.is_simulated:
        twin = f"take --board sim:{board.name}, if it has one" if isinstance(board, HardwareBoard) else "it has no twin"
        raise UsageError(f"--sim-fault and --pace are for twins, {board.name} is none", remedy=twin)
    if entry and entry.is_remote:
        raise UsageError(
            f"--sim-fault and --pace do not reach {entry.name}: its twin runs at {entry.probe.removeprefix('remote:')}",
            remedy="give them to harness sim serve there",
            code="rig.remote_twin",
        )
    for text in options["faults"]:
        check_fault(text, board)
    entry = entry or RigEntry(name=board.name, board=board.name)
    return msgspec.structs.replace(entry, faults=tuple(options["faults"]), pace=options["pace"])
