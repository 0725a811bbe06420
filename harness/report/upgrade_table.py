"""What a new TFLM changes, per model: for the terminal."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from harness.record.upgrade import UpgradeRecord
from harness.report.upgrade_text import COLUMNS, heading, remarks, rows


def upgrade_report(records: tuple[UpgradeRecord, ...]) -> list[RenderableType]:
    """One table per model."""
    parts: list[RenderableType] = []
    for record in records:
        parts.append(Text(heading(record), style="bold"))
        if not record.problem:
            parts.append(_table(record))
        parts += [Text(f"  {remark}") for remark in remarks(record)]
    return parts


def _table(record: UpgradeRecord) -> Table:
    first, *numbers, last = COLUMNS
    table = Table(first, box=None, pad_edge=False, header_style="bold")
    for column in numbers:
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column(last, overflow="fold")
    for row in rows(record):
        table.add_row(Text(row.what), row.before, row.after, row.difference, Text(row.why))
    return table
