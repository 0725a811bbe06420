"""Ctrl-C, and SIGTERM as a service manager or a CI system sends it: both end a command in the same orderly way."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_Handler = Callable[[int, FrameType | None], Any]


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """SIGTERM raises KeyboardInterrupt within the block."""
    with _handled((signal.SIGTERM,), signal.default_int_handler):
        yield


@contextmanager
def interrupts_held() -> Iterator[None]:
    """In the middle of something that must be whole both wait until the block has ended."""
    held: list[int] = []
    try:
        with _handled((signal.SIGINT, signal.SIGTERM), lambda number, _frame: held.append(number)):
            yield
    finally:
        for number in held[:1]:
            signal.raise_signal(number)


@contextmanager
def _handled(numbers: tuple[signal.Signals, ...], handler: _Handler) -> Iterator[None]:
    """Outside the main thread nothing changes: signals do not reach it. Nor for those that whoever started the program
    has ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = [(number, signal.getsignal(number)) for number in numbers]
    taken = [(number, former) for number, former in before if former is not signal.SIG_IGN]
    for number, _ in taken:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, former in taken:
            signal.signal(number, former)
