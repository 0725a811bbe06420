"""Finds board files, reads them strictly, and derives the twins."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from harness.board.checks import check_board
from harness.board.record import Board, Family, HardwareBoard
from harness.board.strict_yaml import load_yaml
from harness.errors import ConfigError, ProbeError, UsageError
from harness.paths import boards_dir
from harness.units import quoted

#: Families whose clock tree, flash controller and UART the digital twin models.
MODELLED_FAMILIES = frozenset({Family.STM32F4, Family.STM32F7, Family.STM32L4, Family.NRF52})

SIM_PREFIX = "sim:"


class BoardFileError(ConfigError):
    """A board file does not say what it must."""

    default_code = "board.invalid"


class UnknownBoardError(ProbeError):
    """No board of that name in the catalogue."""

    default_code = "board.unknown"


def read_board(path: Path) -> Board:
    """One board file → its record. Raises BoardFileError with file and key."""
    try:
        values = load_yaml(path, BoardFileError)
        kind = values.get("kind") if isinstance(values, dict) else None
        record: type[Board] = Board if kind == "host" else HardwareBoard
        board = msgspec.convert(values, record, strict=True)
        check_board(board)
    except (msgspec.ValidationError, ValueError) as exc:
        raise BoardFileError(
            f"{path}: {exc}",
            remedy="docs/adding-a-board.md describes every key; harness boards --schema prints a schema for editors",
        ) from exc
    if board.kind == "sim":
        raise BoardFileError(f"{path}: kind sim is derived", remedy="write kind: hardware; the twin follows from it")
    if board.name != path.stem:
        raise BoardFileError(
            f"{path}: the board calls itself {quoted(board.name)}", remedy=f"name the file {board.name}.yaml"
        )
    return board


def twin_of(board: HardwareBoard) -> HardwareBoard:
    """The emulated board with the same numbers."""
    return msgspec.structs.replace(board, name=SIM_PREFIX + board.name, kind="sim")


def board_files(extra_dirs: Iterable[Path] = ()) -> dict[str, Path]:
    """Board name → file; a user's folder wins over the catalogue's."""
    files: dict[str, Path] = {}
    for folder in [boards_dir(), *extra_dirs]:
        if not folder.is_dir():
            raise ConfigError(f"no folder {folder}", remedy="name a folder with board files", code="board.no_folder")
        files.update({path.stem: path for path in sorted(folder.glob("*.yaml"))})
    return files


def list_boards(extra_dirs: Iterable[Path] = ()) -> list[Board]:
    """Every board: the host, hardware by name, then the twins of the modelled ones."""
    boards = [read_board(path) for path in board_files(extra_dirs).values()]
    boards.sort(key=lambda board: (board.kind != "host", board.name))
    return boards + list(_twins(boards))


def load_board(name: str, extra_dirs: Iterable[Path] = ()) -> Board:
    """The board that ``--board NAME`` means. Raises UnknownBoardError with the nearest names."""
    files = board_files(extra_dirs)
    base = name.removeprefix(SIM_PREFIX)
    if base in files:
        board = read_board(files[base])
        if name == base:
            return board
        if isinstance(board, HardwareBoard) and board.family in MODELLED_FAMILIES:
            return twin_of(board)
        raise UnknownBoardError(
            f"there is no twin of {quoted(base)}",
            remedy=f"twins exist for the families {', '.join(sorted(f.value for f in MODELLED_FAMILIES))}",
        )
    near = difflib.get_close_matches(base, files, n=3, cutoff=0.4)
    prefix = SIM_PREFIX if name.startswith(SIM_PREFIX) else ""
    raise UnknownBoardError(
        f"no board is called {quoted(name)}" + (f"; near: {', '.join(prefix + one for one in near)}" if near else ""),
        remedy="harness boards lists them; --boards-dir names a folder with your own",
    )


def load_hardware_board(name: str, extra_dirs: Iterable[Path] = ()) -> HardwareBoard:
    """As ``load_board``, for what needs a chip (firmware, flashing)."""
    board = load_board(name, extra_dirs)
    if isinstance(board, HardwareBoard):
        return board
    raise UsageError(
        f"board {quoted(name)} has no firmware: it runs TFLM's interpreter on this computer",
        remedy="name a hardware board or a twin: harness boards",
        code="board.no_firmware",
    )


def board_schema() -> dict[str, Any]:
    """JSON schema of a board file, for editors."""
    return msgspec.json.schema(HardwareBoard)


def _twins(boards: Iterable[Board]) -> Iterator[HardwareBoard]:
    for board in boards:
        if isinstance(board, HardwareBoard) and board.family in MODELLED_FAMILIES:
            yield twin_of(board)
