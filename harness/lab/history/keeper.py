"""The history of a run that does not depend on it: what goes wrong with the database becomes a note, never an error."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.errors import HarnessError
from harness.lab.history.store import HistoryStore
from harness.lab.metrics import Number


class HistoryKeeper:
    """``where`` is a path or database URL, "" for none. Told once, by ``tell`` and in ``notes``, when the database
    cannot be opened, read or written: from then on it is left alone, and ``later`` says how to make up for it. A night
    must not be lost: the run's own folder holds everything. Close it."""

    def __init__(self, where: str, later: str, tell: Callable[[str], None]) -> None:
        self.notes: list[str] = []
        self._later = later
        self._tell = tell
        self._store: HistoryStore | None = None
        if where:
            try:
                self._store = HistoryStore.open(where)
            except HarnessError as exc:
                self._give_up(exc)

    def keep(self, add: Callable[[HistoryStore], None]) -> None:
        """Let ``add`` write."""
        if self._store is not None:
            try:
                add(self._store)
            except HarnessError as exc:
                self._give_up(exc)

    def past(self, ask: Callable[[HistoryStore], Sequence[Number]]) -> Sequence[Number]:
        """What ``ask`` reads; nothing without a history."""
        if self._store is not None:
            try:
                return ask(self._store)
            except HarnessError as exc:
                self._give_up(exc)
        return ()

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

    def _give_up(self, exc: HarnessError) -> None:
        self.close()
        remedy = f" ({exc.remedy})" if exc.remedy else ""
        self.notes.append(f"{exc.message}{remedy}: the run goes on without it; later: {self._later}")
        self._tell(self.notes[-1])
