"""What a new TFLM changes, per model: for the terminal."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from harness.record.upgrade import ByteTerm, CycleTerm, UpgradeRecord
from harness.units import safe_text


def upgrade_report(records: tuple[UpgradeRecord, ...]) -> list[RenderableType]:
    """One table per model: what is equal with both is left out, but the minimum and arena_used_bytes()."""
    parts: list[RenderableType] = []
    for record in records:
        versions = f"TFLM {safe_text(record.before[-40:])} -> {safe_text(record.after[-40:])}"
        parts.append(Text(f"{safe_text(record.model)} on {record.board} ({record.kernels}), {versions}", style="bold"))
        if record.problem:
            parts.append(Text(f"  cannot be compared: {safe_text(record.problem, 500)}"))
            continue
        parts.append(_table(record))
        if record.unexplained_bytes:
            parts.append(Text(f"  {record.unexplained_bytes:+,} B are in no category: look at the two records"))
        elif record.unexplained_bytes is None:
            parts.append(Text("  this board's run does not tell the categories: only the totals are compared"))
    return parts


def _table(record: UpgradeRecord) -> Table:
    table = Table("what", box=None, pad_edge=False, header_style="bold")
    for column in ("before", "after", "difference"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("why", overflow="fold")
    totals = {"arena_min_bytes", "arena_used_bytes"}
    for term in record.bytes:
        if term.difference or term.name in totals:
            table.add_row(term.name, *_bytes(term), Text(safe_text(term.explanation)))
    for cycle in record.cycles:
        if cycle.beyond_noise or cycle.name == "Invoke":
            table.add_row(
                Text(safe_text(cycle.name)), *_cycles(cycle), "" if cycle.beyond_noise else "within the noise"
            )
    return table


def _bytes(term: ByteTerm) -> tuple[str, str, str]:
    values = ["not told" if value is None else f"{value:,}" for value in (term.before, term.after)]
    return values[0], values[1], "" if term.difference is None else f"{term.difference:+,} B"


def _cycles(term: CycleTerm) -> tuple[str, str, str]:
    percent = f" ({100 * (term.after - term.before) / term.before:+.2f} %)" if term.before else ""
    return f"{term.before:,.0f}", f"{term.after:,.0f}", f"{term.after - term.before:+,.0f} ticks{percent}"
