"""What a benchmark says: rows of a figure, and the limit that it must keep where the project has set one."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """``limit`` is the largest value allowed (the smallest, for ``at_least``); None: told, not judged."""

    what: str
    value: float
    unit: str
    limit: float | None = None
    at_least: bool = False

    @property
    def is_kept(self) -> bool:
        if self.limit is None:
            return True
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def line(self) -> str:
        goal = "" if self.limit is None else f"  ({'≥' if self.at_least else '≤'} {self.limit:g})"
        verdict = "" if self.is_kept else "  MISSED"
        return f"{self.what:<58} {self.value:>12,.3f} {self.unit:<10}{goal}{verdict}"


def run(measure: Callable[[], Iterable[Row]]) -> None:
    """The main program of a benchmark: prints its rows (``--json``: one document); ends with 1 on a missed limit."""
    rows = []
    as_json = "--json" in sys.argv[1:]
    for row in measure():
        rows.append(row)
        if not as_json:
            print(row.line(), flush=True)
    if as_json:
        print(json.dumps([asdict(row) | {"kept": row.is_kept} for row in rows]))
    sys.exit(any(not row.is_kept for row in rows))


def peak_and_seconds(argv: list[str]) -> tuple[int, float, int]:
    """Run a program: (peak resident bytes, wall seconds, exit code)."""
    import time

    started = time.perf_counter()
    child = os.posix_spawn(
        argv[0], argv, dict(os.environ), file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    )
    _, status, usage = os.wait4(child, 0)
    kilobytes = usage.ru_maxrss // 1024 if sys.platform == "darwin" else usage.ru_maxrss
    return kilobytes * 1024, time.perf_counter() - started, os.waitstatus_to_exitcode(status)
