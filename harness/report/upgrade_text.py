"""What a new TFLM changes, per model, in words and columns: what every report of a comparison shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harness.record.upgrade import ByteTerm, CycleTerm, UpgradeRecord
from harness.units import safe_text

COLUMNS = ("what", "before", "after", "difference", "why")
#: Told even where both are equal.
_TOTALS = frozenset({"arena_min_bytes", "arena_used_bytes"})


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a comparison, fit to print, in the order of ``COLUMNS``."""

    what: str
    before: str
    after: str
    difference: str
    why: str


def heading(record: UpgradeRecord) -> str:
    """``kws on nucleo-f746zg (cmsis_nn), TFLM 90b983c -> 8f6596d``."""
    before, after = (safe_text(version[-40:]) for version in (record.before, record.after))
    return f"{safe_text(record.model)} on {record.board} ({record.kernels}), TFLM {before} -> {after}"


def rows(record: UpgradeRecord) -> list[Row]:
    """What is equal with both is left out, but the minimum, arena_used_bytes() and Invoke."""
    return [*_byte_rows(record), *_cycle_rows(record)]


def remarks(record: UpgradeRecord) -> list[str]:
    """What the rows do not say."""
    if record.problem:
        return [f"cannot be compared: {safe_text(record.problem, 500)}"]
    if record.unexplained_bytes:
        return [f"{record.unexplained_bytes:+,} B are in no category: look at the two records"]
    if record.unexplained_bytes is None:
        return ["this board's run does not tell the categories: only the totals are compared"]
    return []


def lines(record: UpgradeRecord) -> list[str]:
    """The whole comparison as plain text."""
    told = [
        f"{row.what}: {row.before} -> {row.after}"
        + (f" ({row.difference})" if row.difference else "")
        + (f": {row.why}" if row.why else "")
        for row in rows(record)
    ]
    return [heading(record), *(f"  {line}" for line in (*told, *remarks(record)))]


def _byte_rows(record: UpgradeRecord) -> Iterator[Row]:
    for term in record.bytes:
        if term.difference or term.name in _TOTALS:
            yield Row(safe_text(term.name), *_bytes(term), safe_text(term.explanation))


def _cycle_rows(record: UpgradeRecord) -> Iterator[Row]:
    for term in record.cycles:
        if term.beyond_noise or term.name == "Invoke":
            yield Row(safe_text(term.name), *_cycles(term), "" if term.beyond_noise else "within the noise")


def _bytes(term: ByteTerm) -> tuple[str, str, str]:
    values = ["not told" if value is None else f"{value:,}" for value in (term.before, term.after)]
    return values[0], values[1], "" if term.difference is None else f"{term.difference:+,} B"


def _cycles(term: CycleTerm) -> tuple[str, str, str]:
    percent = f" ({100 * (term.after - term.before) / term.before:+.2f} %)" if term.before else ""
    return f"{term.before:,.0f}", f"{term.after:,.0f}", f"{term.after - term.before:+,.0f} ticks{percent}"
