"""Ctrl-C, and SIGTERM as a service manager or a CI system sends it: both end a command in the same orderly way."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_Handler = Callable[[int, FrameType | None], Any]


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """SIGTERM raises KeyboardInterrupt within the block, unless whoever started the command has it ignored."""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_IGN:
        yield
        return
    with _handled((signal.SIGTERM,), signal.default_int_handler):
        yield


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Ctrl-C in the middle of something that must be whole: it waits until the block has ended, then it is raised."""
    held: list[int] = []
    try:
        with _handled((signal.SIGINT, signal.SIGTERM), lambda number, _frame: held.append(number)):
            yield
    finally:
        if held:
            raise KeyboardInterrupt


@contextmanager
def _handled(numbers: tuple[signal.Signals, ...], handler: _Handler) -> Iterator[None]:
    """Outside the main thread nothing changes: signals do not reach it."""
    try:
        before = [(number, signal.signal(number, handler)) for number in numbers]
    except ValueError:
        yield
        return
    try:
        yield
    finally:
        for number, former in before:
            signal.signal(number, former)
