"""The errors of outside estimates, for a person."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from harness.estimates import Comparison, EstimateReport
from harness.units import format_bytes, safe_text


def estimate_blocks(report: EstimateReport) -> Iterator[RenderableType]:
    """The table per tool, the single comparisons, and what could not be compared."""
    yield Text("\nEstimates against measured minima", style="bold")
    table = Table("tool", box=None, padding=(0, 2))
    for name in ("n", "exact", "mean |error|", "median |error|", "worst", "too small", "worst too small"):
        table.add_column(name, justify="right", no_wrap=True)
    for entry in report.tools:
        table.add_row(
            Text(safe_text(entry.tool, 60)),
            str(entry.count),
            str(entry.exact),
            f"{entry.mean_abs_percent:.1f}%",
            f"{entry.median_abs_percent:.1f}%",
            Text(_short(entry.worst)),
            str(entry.under_estimates),
            Text(_short(entry.worst_under) if entry.worst_under else "-"),
        )
    yield table
    if any(entry.under_estimates for entry in report.tools):
        yield Text("  too small: an arena of that size does not work", style="yellow")
    yield _comparisons(report)
    for estimate in report.unmatched:
        yield Text(f"  not measured: {safe_text(estimate.model, 100)} ({safe_text(estimate.tool, 60)})")


def _comparisons(report: EstimateReport) -> Table:
    table = Table("model", "board", "kernels", "tool", box=None, padding=(0, 2))
    for name in ("estimate", "measured min", "error"):
        table.add_column(name, justify="right", no_wrap=True)
    for entry in report.comparisons:
        minimum = entry.minimum
        names = (minimum.model, minimum.board, minimum.kernels, entry.estimate.tool)
        sizes = (format_bytes(entry.estimate.estimated_bytes), format_bytes(minimum.min_bytes))
        table.add_row(*(Text(safe_text(name, 60)) for name in names), *sizes, f"{entry.error_percent:+.1f}%")
    return table


def _short(comparison: Comparison) -> str:
    return f"{comparison.error_percent:+.1f}% {safe_text(comparison.minimum.model, 40)}"
