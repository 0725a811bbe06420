"""Ctrl-C in the middle of something that must be whole."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Ctrl-C waits until the block has ended, then it is raised."""
    held: list[int] = []
    try:
        before = signal.signal(signal.SIGINT, lambda number, _frame: held.append(number))
    except ValueError:  # not the main thread: Ctrl-C does not reach it
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if held:
            raise KeyboardInterrupt
