"""Progress on stderr: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import logging
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from rich.console import Console
from rich.text import Text

from harness.trial import Trial
from harness.units import format_bytes, safe_text

_LOG = logging.getLogger(__name__)


class TerminalProgress:
    """Implements ``Progress`` of the sweep. ``total`` models are counted through by ``begin``."""

    def __init__(self, total: int) -> None:
        self._console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        self._total = total
        self._status: Any = None
        self._prefix = ""

    def begin(self, number: int, path: str) -> AbstractContextManager[Any]:
        """Around model ``number`` (from 1)."""
        self._prefix = f"[{number}/{self._total}] {safe_text(path, 60)}"
        if not sys.stderr.isatty():
            self._status = None
            return nullcontext()
        self._status = self._console.status(Text(self._prefix))
        context: AbstractContextManager[Any] = self._status
        return context

    def stage(self, text: str) -> None:
        self._show(f"{self._prefix}: {text}")

    def trial(self, trial: Trial, number: int) -> None:
        outcome = trial.outcome.value + (f" ({trial.reason.value})" if trial.reason else "")
        self._show(f"{self._prefix}: trial {number}: {format_bytes(trial.arena_bytes)} B {outcome}")

    def device_text(self, text: str) -> None:
        _LOG.info("device: %s", text)

    def _show(self, line: str) -> None:
        if self._status is not None:
            self._status.update(Text(line))
        else:
            self._console.print(Text(line), soft_wrap=True)
