"""Which build of TFLM a plan is for, from the options, a board or a record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from harness.abi import abi_named
from harness.board.record import Board, HardwareBoard
from harness.cli.abi_record import ReportedBuild, read_reported_build
from harness.errors import UsageError
from harness.plan.fit import Place
from harness.plan.target import Interpreter, Kernels, target_for
from harness.whatif.questions import ChosenTarget

#: What the firmware of this tool takes beside the model's arena and the stack, at most.
FIRMWARE_DATA_BYTES = 6 * 1024


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
    places: tuple[Place, ...] = ()
    memories: tuple[Place, ...] = ()
    if isinstance(board, HardwareBoard):
        places = tuple(_place(board, name) for name in board.layout.arena)
        memories = tuple(_place(board, memory.name) for memory in board.rams)
    if reported is None:
        return ChosenTarget(target, abi_named(target.abi), places, memories)
    abi = reported.abi
    target = replace(target, abi="lp64" if abi.pointer_bytes == 8 else "ilp32", tflm_commit=abi.tflm_commit)
    return ChosenTarget(target, abi, places, memories)


def _reported(options: TargetOptions) -> ReportedBuild | None:
    if options.abi_from is None:
        return None
    if options.abi:
        raise UsageError("--abi-from already says the ABI", remedy="leave --abi away")
    return read_reported_build(options.abi_from)


def _known(values: type[Enum], text: str | None) -> str | None:
    """What a record says, if it is one of the values that a plan knows."""
    return text if text in {value.value for value in values} else None


def _place(board: HardwareBoard, name: str) -> Place:
    """A region of the board, less what stack and firmware data take where they share it."""
    parts = name.split("+")
    takes = []
    if board.layout.stack in parts:
        takes.append((board.layout.stack_bytes, "stack"))
    if board.layout.data in parts:
        takes.append((FIRMWARE_DATA_BYTES, "firmware data"))
    reserved = sum(size for size, _ in takes)
    return Place(name, board.region(name).size_bytes, reserved, ", ".join(what for _, what in takes))


def _board(options: TargetOptions) -> Board | None:
    if options.board is None:
        return None
    if options.core or options.abi:
        raise UsageError("--board already says core and ABI", remedy="give --board, or --core and --abi")
    from harness.board.catalogue import load_board

    return load_board(options.board, options.boards_dirs)
