"""Outside estimates of the arena (other tools, rules of thumb) against measured minima."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import Any

from harness.bounded_file import read_bounded
from harness.errors import UsageError
from harness.units import quoted

COLUMNS = ("tool", "model", "bytes")
OPTIONAL_COLUMNS = ("board", "kernels")


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a tool says that a model needs. ``board`` and ``kernels`` are empty when the tool does not say."""

    tool: str
    model: str
    estimated_bytes: int
    board: str = ""
    kernels: str = ""


@dataclass(frozen=True, slots=True)
class MeasuredMinimum:
    """A bisected minimum. ``model`` is the file name. Sizes above ``largest_failing_bytes`` and below ``min_bytes``
    were not tried: there the truth is not known. ``record`` says where it stands; two that differ in nothing else are
    one minimum, measured twice."""

    model: str
    sha256: str
    board: str
    kernels: str
    min_bytes: int
    largest_failing_bytes: int | None = None
    record: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Comparison:
    """One estimate against one measured minimum."""

    estimate: Estimate
    minimum: MeasuredMinimum

    @property
    def error_bytes(self) -> int:
        """Positive: the estimate asks for too much. Negative: an arena of that size does not work. 0 also for an
        estimate within the step of the search."""
        failing = self.minimum.largest_failing_bytes
        if failing is not None and failing < self.estimate.estimated_bytes <= self.minimum.min_bytes:
            return 0
        return self.estimate.estimated_bytes - self.minimum.min_bytes

    @property
    def error_percent(self) -> float:
        return 100.0 * self.error_bytes / self.minimum.min_bytes


@dataclass(frozen=True, slots=True)
class ToolErrors:
    """The errors of one tool over ``count`` comparisons. Under-estimates are counted apart: they fail on the device,
    while an over-estimate only wastes memory."""

    tool: str
    count: int
    exact: int
    mean_abs_percent: float
    median_abs_percent: float
    worst: Comparison
    under_estimates: int
    worst_under: Comparison | None


@dataclass(frozen=True, slots=True)
class EstimateReport:
    """``unmatched`` estimates are for models of which no minimum was measured."""

    tools: tuple[ToolErrors, ...]
    comparisons: tuple[Comparison, ...]
    unmatched: tuple[Estimate, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "tools": [
                {
                    "tool": entry.tool,
                    "count": entry.count,
                    "exact": entry.exact,
                    "mean_abs_percent": round(entry.mean_abs_percent, 3),
                    "median_abs_percent": round(entry.median_abs_percent, 3),
                    "worst": _comparison_dict(entry.worst),
                    "under_estimates": entry.under_estimates,
                    "worst_under": _comparison_dict(entry.worst_under) if entry.worst_under else None,
                }
                for entry in self.tools
            ],
            "comparisons": [_comparison_dict(comparison) for comparison in self.comparisons],
            "unmatched": [
                {"tool": entry.tool, "model": entry.model, "bytes": entry.estimated_bytes} for entry in self.unmatched
            ],
        }


def _comparison_dict(comparison: Comparison) -> dict[str, Any]:
    minimum = comparison.minimum
    return {
        "tool": comparison.estimate.tool,
        "model": minimum.model,
        "board": minimum.board,
        "kernels": minimum.kernels,
        "record": minimum.record,
        "estimated_bytes": comparison.estimate.estimated_bytes,
        "min_bytes": minimum.min_bytes,
        "error_bytes": comparison.error_bytes,
        "error_percent": round(comparison.error_percent, 3),
    }


def read_estimates(path: Path) -> list[Estimate]:
    """Read a CSV with the columns tool, model, bytes and, where wanted, board and kernels."""
    try:
        with io.StringIO(read_bounded(path).decode("utf-8-sig"), newline="") as stream:
            reader = csv.DictReader(stream, strict=True)
            names = [name.strip() for name in reader.fieldnames or ()]
            reader.fieldnames = names
            missing = [name for name in COLUMNS if name not in names]
            if missing:
                found = ", ".join(quoted(name) for name in names) or "none"
                raise UsageError(
                    f"{path}: no column {' and no column '.join(missing)}; found: {found}",
                    remedy="the first line names the columns: tool,model,bytes (and, if known, board,kernels)",
                )
            return [_estimate(path, reader.line_num, row) for row in reader]
    except OSError as exc:
        raise UsageError(f"{path}: {exc.strerror or exc}", remedy="give the path of a CSV file") from exc
    except (UnicodeDecodeError, csv.Error) as exc:
        raise UsageError(f"{path}: not a CSV text file: {exc}", remedy="save it as UTF-8 CSV") from exc


def _estimate(path: Path, line: int, row: dict[str | None, Any]) -> Estimate:
    if None in row:  # 12,936 without quotes would be read as 12
        raise UsageError(
            f"{path}, line {line}: more cells than columns",
            remedy="write whole bytes without separator (12936), and texts with a comma in double quotes",
        )

    def cell(name: str) -> str:
        return (row.get(name) or "").strip()

    text = cell("bytes").replace("_", "")
    if not (text.isascii() and text.isdigit()):
        raise UsageError(
            f"{path}, line {line}: {quoted(cell('bytes'))} is not a number of bytes",
            remedy="write whole bytes without unit or separator: 12936",
        )
    if not cell("tool") or not cell("model"):
        raise UsageError(f"{path}, line {line}: tool or model is empty", remedy="each line names both")
    return Estimate(cell("tool"), cell("model"), int(text), cell("board"), cell("kernels"))


def compare_estimates(estimates: Sequence[Estimate], minima: Sequence[MeasuredMinimum]) -> EstimateReport:
    """Hold each estimate against every measured minimum of its model (by file name, stem or sha256) that its board and
    kernels do not exclude; against each once, however many records say it."""
    minima = list(dict.fromkeys(minima))
    comparisons: list[Comparison] = []
    unmatched: list[Estimate] = []
    for estimate in estimates:
        matching = [Comparison(estimate, minimum) for minimum in minima if _matches(estimate, minimum)]
        comparisons.extend(matching)
        if not matching:
            unmatched.append(estimate)
    tools = dict.fromkeys(comparison.estimate.tool for comparison in comparisons)
    errors = tuple(_errors(tool, [c for c in comparisons if c.estimate.tool == tool]) for tool in tools)
    return EstimateReport(errors, tuple(comparisons), tuple(unmatched))


def _matches(estimate: Estimate, minimum: MeasuredMinimum) -> bool:
    name = Path(estimate.model.replace("\\", "/")).name
    same_model = name in (minimum.model, Path(minimum.model).stem) or estimate.model == minimum.sha256
    same_board = estimate.board in ("", minimum.board)
    return same_model and same_board and estimate.kernels in ("", minimum.kernels)


def _errors(tool: str, comparisons: Sequence[Comparison]) -> ToolErrors:
    absolute = [abs(comparison.error_percent) for comparison in comparisons]
    under = [comparison for comparison in comparisons if comparison.error_bytes < 0]
    return ToolErrors(
        tool=tool,
        count=len(comparisons),
        exact=sum(comparison.error_bytes == 0 for comparison in comparisons),
        mean_abs_percent=fmean(absolute),
        median_abs_percent=median(absolute),
        worst=max(comparisons, key=lambda comparison: abs(comparison.error_percent)),
        under_estimates=len(under),
        worst_under=min(under, key=lambda comparison: comparison.error_percent, default=None),
    )
