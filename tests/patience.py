"""How long tests wait. A deadline in a test is for what hangs, never for what is slow: no machine is so loaded that it
takes this long, and one that works goes on at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from harness.deadline import Deadline

PATIENCE_S = 600.0
_LOOK_EVERY_S = 0.01


def patient() -> Deadline:
    return Deadline.after(PATIENCE_S)


def wait_until(holds: Callable[[], bool], what: str) -> None:
    """Returns as soon as ``holds``; AssertionError with ``what`` when it never does."""
    deadline = patient()
    while not holds():
        assert not deadline.passed, f"waited {PATIENCE_S:g} s in vain: {what}"
        threading.Event().wait(_LOOK_EVERY_S)
