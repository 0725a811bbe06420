"""The desk of this process: which twins are plugged in.

``HARNESS_SIM_BOARDS`` (names of boards, comma-separated) plugs in twins for tools that know nothing of harness; harness
itself calls `plug`. A twin is built when it is first asked for and lives until it is unplugged or the process ends.
"""

from __future__ import annotations

import atexit
import os
import threading
from pathlib import Path

from harness.board.catalogue import load_hardware_board
from harness.board.record import HardwareBoard
from harness.sim.twin import Twin

BOARDS_VARIABLE = "HARNESS_SIM_BOARDS"
#: A folder in which the flash of each twin is kept from one process to the next.
STATE_VARIABLE = "HARNESS_SIM_STATE"

_lock = threading.RLock()
_twins: dict[str, Twin] = {}
_unplugged: set[str] = set()


def unique_id(board: HardwareBoard, number: int = 1) -> str:
    """The probe's unique id. The number stands in front: pyOCD takes any part of an id for a match."""
    return f"sim{number}-{board.base_name}"


def plug(board: HardwareBoard, *, number: int = 1, twin: Twin | None = None, pace: bool = False) -> str:
    """Put a twin of the board on the desk, where it is not there yet. Returns its probe's unique id."""
    uid = unique_id(board, number)
    with _lock:
        _unplugged.discard(uid)
        if uid not in _twins:
            _twins[uid] = twin or Twin(board, pace=pace)
            _load_state(uid)
    return uid


def unplug(uid: str) -> None:
    """Pull the twin's cable and throw it away."""
    with _lock:
        twin = _twins.pop(uid, None)
        _unplugged.add(uid)
    if twin is not None:
        _save_state(uid, twin)
        twin.close()


def plugged() -> dict[str, HardwareBoard]:
    """Unique id → board, for every twin on the desk; builds none."""
    found = {uid: twin.board for uid, twin in _twins.items()}
    counts: dict[str, int] = {}
    for name in os.environ.get(BOARDS_VARIABLE, "").split(","):
        if not name.strip():
            continue
        board = load_hardware_board("sim:" + name.strip().removeprefix("sim:"))
        counts[board.base_name] = counts.get(board.base_name, 0) + 1
        uid = unique_id(board, counts[board.base_name])
        if uid not in _unplugged:
            found.setdefault(uid, board)
    return found


def twin(uid: str) -> Twin:
    """The twin behind a unique id, built now if need be. Raises KeyError when nothing of that id is plugged in."""
    with _lock:
        if uid not in _twins:
            board = plugged()[uid]
            _twins[uid] = Twin(board)
            _load_state(uid)
        return _twins[uid]


def kept_flash(board: HardwareBoard) -> Path | None:
    """Where a twin of the board finds what an earlier process left in its flash; None where none is kept."""
    return _state_file(unique_id(board))


def _state_file(uid: str) -> Path | None:
    folder = os.environ.get(STATE_VARIABLE)
    return Path(folder) / f"{uid}.flash" if folder else None


def _load_state(uid: str) -> None:
    path = _state_file(uid)
    if path is None or not path.is_file():
        return
    with _twins[uid].turn() as chip:
        data = path.read_bytes()[: chip.flash.size]
        chip.flash.view[: len(data)] = data
        chip.core.engine.code_changed()
    _twins[uid].assert_reset(True)
    _twins[uid].assert_reset(False)


def _save_state(uid: str, kept: Twin) -> None:
    path = _state_file(uid)
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".new")
    temporary.write_bytes(bytes(kept.chip.flash.view))
    temporary.replace(path)


@atexit.register
def _clear() -> None:
    """An engine thread that outlives the interpreter would crash it."""
    for uid in list(_twins):
        unplug(uid)
