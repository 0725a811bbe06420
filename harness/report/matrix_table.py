"""Several runs of the same models under varied choices, in one table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from harness.record.schema import SweepRecord
from harness.units import format_bytes, safe_text


def matrix_table(records: Sequence[SweepRecord]) -> Table:
    """A row for each record, a column for each key that was varied. Counts are of the smallest arena where there is
    one, else of the ample one."""
    keys = list(dict.fromkeys(key for record in records for key in record.variant))
    timing = next((record.timing.timing for record in records if record.timing), "")
    table = Table(box=None, padding=(0, 2), pad_edge=True)
    table.add_column("model")
    for key in keys:
        table.add_column(key)
    for name in ("used", "min", "Invoke, median " + timing if timing else "Invoke", "flash", "stack"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    for record in records:
        table.add_row(safe_text(record.model_name, 60), *(record.variant.get(k, "") for k in keys), *_cells(record))
    return table


def _cells(record: SweepRecord) -> tuple[str, ...]:
    def size(value: int | None) -> str:
        return "-" if value is None else format_bytes(value)

    times = (record.timing.minimum or record.timing.ample) if record.timing else None
    return (
        size(record.measured.used_bytes if record.measured else None),
        size(record.search.min_bytes if record.search else None),
        f"{times.median:,.0f}" if times else "-",
        size(record.environment.flash_bytes if record.environment else None),
        size(times.stack_used_bytes if times else None),
        "" if record.status == "ok" else f"{record.status} ({record.error.code})" if record.error else record.status,
    )
