"""Which build of TFLM a plan is for, from the options, a board or a record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from harness.abi import Abi, abi_named
from harness.board.record import Board, HardwareBoard
from harness.cli.abi_record import ReportedBuild, read_reported_build
from harness.errors import UsageError
from harness.plan.fit import Place
from harness.plan.target import Interpreter, Kernels, PlanTarget, target_for

#: What the firmware of this tool takes beside the model's arena and the stack, at most.
FIRMWARE_DATA_BYTES = 6 * 1024


@dataclass(frozen=True, slots=True)
class ChosenTarget:
    """``abi`` holds the struct sizes to plan with; ``places`` the regions of the board, empty without one."""

    target: PlanTarget
    abi: Abi
    places: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class TargetOptions:
    """The options as given; None or empty where they were not."""

    board: str | None = None
    boards_dirs: Sequence[Path] = ()
    abi: str | None = None
    core: str | None = None
    kernels: str | None = None
    interpreter: str | None = None
    preserve_all_tensors: bool = False
    abi_from: Path | None = None


def choose_target(options: TargetOptions) -> ChosenTarget:
    """Raises UsageError where options contradict each other, UnknownBoardError for a board that does not exist."""
    board = _board(options)
    interpreter = options.interpreter
    if options.preserve_all_tensors:
        if interpreter not in (None, Interpreter.PRESERVE_ALL.value):
            raise UsageError(
                f"--preserve-all-tensors contradicts --interpreter {interpreter}", remedy="give one of the two"
            )
        interpreter = Interpreter.PRESERVE_ALL.value
    reported = _reported(options)
    core = options.core or (board.core if board else reported.core if reported else None)
    abi_name = options.abi or (board.abi if board else None)
    kernels = options.kernels or (_known(Kernels, reported.kernels) if reported else None)
    interpreter = interpreter or (_known(Interpreter, reported.interpreter) if reported else None)
    target = target_for(core, abi=abi_name, kernels=kernels, interpreter=interpreter)
    places = places_of(board) if isinstance(board, HardwareBoard) else ()
    if reported is None:
        return ChosenTarget(target, abi_named(target.abi), places)
    abi = reported.abi
    target = replace(target, abi="lp64" if abi.pointer_bytes == 8 else "ilp32", tflm_commit=abi.tflm_commit)
    return ChosenTarget(target, abi, places)


def _reported(options: TargetOptions) -> ReportedBuild | None:
    if options.abi_from is None:
        return None
    if options.abi:
        raise UsageError("--abi-from already says the ABI", remedy="leave --abi away")
    return read_reported_build(options.abi_from)


def _known(values: type[Enum], text: str | None) -> str | None:
    """What a record says, if it is one of the values that a plan knows."""
    return text if text in {value.value for value in values} else None


def places_of(board: HardwareBoard) -> tuple[Place, ...]:
    """Where the board's firmware can put an arena, in its order of preference, less stack and data where they share
    the region."""
    places = []
    for name in board.layout.arena:
        parts = name.split("+")
        takes = []
        if board.layout.stack in parts:
            takes.append((board.layout.stack_bytes, "stack"))
        if board.layout.data in parts:
            takes.append((FIRMWARE_DATA_BYTES, "firmware data"))
        reserved = sum(size for size, _ in takes)
        places.append(Place(name, board.region(name).size_bytes, reserved, ", ".join(what for _, what in takes)))
    return tuple(places)


def _board(options: TargetOptions) -> Board | None:
    if options.board is None:
        return None
    if options.core or options.abi:
        raise UsageError("--board already says core and ABI", remedy="give --board, or --core and --abi")
    from harness.board.catalogue import load_board

    return load_board(options.board, options.boards_dirs)
