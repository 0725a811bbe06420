"""``harness reconcile``: plan against measurement, byte for byte; other tools' estimates against measured minima."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from harness.errors import ExitCode, UsageError
from harness.estimates import EstimateReport, MeasuredMinimum, compare_estimates, read_estimates
from harness.model.graph import Model
from harness.reconcile import PlannedArena, Reconciliation
from harness.record.schema import DeviceRecord, SweepRecord
from harness.units import safe_text


@dataclass(frozen=True, slots=True)
class Reconciled:
    """One record; ``result`` is None where there is nothing to compare, and ``reason`` says why."""

    path: Path
    record: SweepRecord
    result: Reconciliation | None
    reason: str = ""


@click.command()
@click.argument("records", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RECORD...")
@click.option(
    "--estimates",
    type=click.Path(path_type=Path),
    metavar="CSV",
    help="Outside estimates (columns tool, model, bytes; also board, kernels): their errors against the minima.",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Plan this model anew, with the struct sizes that the device reported, in place of the plan in its records.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def reconcile(records: tuple[Path, ...], estimates: Path | None, models: tuple[Path, ...], as_json: bool) -> int:
    """Hold the plan in each RECORD against what was measured, term by term.

    RECORD is a record of harness sweep, what harness sweep --json printed, or a folder of them. Every byte of
    difference is explained, or counted as unexplained; with unexplained bytes the exit code is 1.
    """
    named = _models(models)
    reconciled = [_reconcile(path, record, named.get(record.model.sha256)) for path, record in _read(records)]
    if not reconciled:
        raise UsageError("no records there", remedy="harness sweep makes them, in results/")
    unused = named.keys() - {entry.record.model.sha256 for entry in reconciled}
    if unused:
        names = ", ".join(sorted(safe_text(named[sha256].path) for sha256 in unused))
        raise UsageError(f"no record is of {names} (by sha256)", remedy="name the very file that was swept")
    report = _estimate_errors(estimates, reconciled) if estimates is not None else None
    if as_json:
        click.echo(json.dumps(_document(reconciled, report)))
    else:
        _print(reconciled, report)
    disagree = any(entry.result is not None and not entry.result.agrees for entry in reconciled)
    return ExitCode.RESULT_BAD if disagree else ExitCode.DONE


def _read(paths: Sequence[Path]) -> Iterator[tuple[Path, SweepRecord]]:
    """The records named, and those in folders."""
    from harness.record.store import read_records

    for path in paths:
        for file in sorted(path.glob("*.json")) if path.is_dir() else [path]:
            yield from ((file, record) for record in read_records(file))


def _models(paths: Sequence[Path]) -> dict[str, Model]:
    """Models by sha256."""
    from harness.model.reader import read_model

    return {model.sha256: model for model in map(read_model, paths)}


def _reconcile(path: Path, record: SweepRecord, model: Model | None) -> Reconciled:
    from harness.reconcile import reconcile as compare
    from harness.sweep.evidence import measured_arena

    if record.measured is None or record.search is None or record.device is None:
        why = f": {record.error.message.splitlines()[0]}" if record.error and record.error.message else ""
        return Reconciled(path, record, None, f"nothing was measured ({record.status}{why})")
    if record.plan is None:
        return Reconciled(path, record, None, "the record holds no plan")
    try:
        planned = _planned_anew(record.plan, record.device, model) if model else PlannedArena.from_document(record.plan)
    except (KeyError, TypeError, AttributeError, ValueError) as exc:
        raise UsageError(f"{path}: the plan in it is damaged: {exc}", remedy="take another record") from exc
    return Reconciled(path, record, compare(planned, measured_arena(record.measured, record.search, record.device)))


def _planned_anew(document: Mapping[str, Any], device: DeviceRecord, model: Model) -> PlannedArena:
    """The plan that this version makes for the record's target, with the sizes that the device reported."""
    from harness.abi import abi_reported
    from harness.plan.arena import plan_arena
    from harness.plan.target import target_for
    from harness.sweep.evidence import planned_arena

    was = document["target"]
    target = target_for(was["core"], abi=was["abi"], kernels=was["kernels"], interpreter=was["interpreter"])
    abi = abi_reported(device.struct_sizes, device.tflm_commit) if device.struct_sizes else None
    planned = planned_arena(plan_arena(model, target, abi=abi))
    return replace(planned, struct_sizes=device.struct_sizes) if abi else planned


def _estimate_errors(path: Path, reconciled: Sequence[Reconciled]) -> EstimateReport:
    """Raises UsageError when no estimate is for a measured model."""
    minima = [
        MeasuredMinimum(
            record.model_name,
            record.model.sha256,
            record.board,
            record.kernels,
            record.search.min_bytes,
            record.search.largest_failing_bytes,
            str(entry.path),
        )
        for entry in reconciled
        for record in (entry.record,)
        if record.search is not None and record.search.min_bytes is not None
    ]
    report = compare_estimates(read_estimates(path), minima)
    if not report.comparisons:
        measured = ", ".join(sorted({safe_text(minimum.model, 60) for minimum in minima})) or "none"
        raise UsageError(
            f"{path} has no estimate for a model with a measured minimum; measured: {measured}",
            remedy="the column model holds file names; give the records of those models",
        )
    return report


def _document(reconciled: Sequence[Reconciled], report: EstimateReport | None) -> dict[str, Any]:
    return {
        "schema": "harness.reconcile",
        "schema_version": 1,
        "records": [
            {
                "record": str(entry.path),
                "model": {"path": entry.record.model.path, "sha256": entry.record.model.sha256},
                "board": entry.record.board,
                "kernels": entry.record.kernels,
                "reconciliation": entry.result.to_document() if entry.result else None,
                "reason": entry.reason,
            }
            for entry in reconciled
        ],
        "unexplained_bytes": sum(entry.result.unexplained_bytes for entry in reconciled if entry.result),
        "estimates": report.to_dict() if report else None,
    }


def _print(reconciled: Sequence[Reconciled], report: EstimateReport | None) -> None:
    from rich.text import Text

    from harness.cli.console import stdout_console
    from harness.report.arena_snippet import arena_snippet
    from harness.report.estimate_table import estimate_blocks
    from harness.report.sweep_table import terms_table

    console = stdout_console()
    for entry in reconciled:
        variant = "".join(f", {key} {value}" for key, value in entry.record.variant.items() if key != "kernels")
        title = f"{entry.record.model.path} on {entry.record.board}, {entry.record.kernels} kernels{variant}"
        console.print(Text(safe_text(title, 4096), style="bold"), soft_wrap=True)
        console.print(Text(f"  {safe_text(str(entry.path), 4096)}"), soft_wrap=True)
        if entry.result is None:
            console.print(Text(f"  {safe_text(entry.reason, 400)}"), soft_wrap=True)
            continue
        console.print(terms_table(entry.result.to_document()))
        style = "green" if entry.result.agrees else "bold red"
        console.print(Text(f"  unexplained: {entry.result.unexplained_bytes:,} bytes", style=style))
        for line in entry.result.advice:
            console.print(Text(f"  look at: {safe_text(line, 400)}"), soft_wrap=True)
        for line in arena_snippet(entry.record):
            console.print(Text(f"  {line}"), soft_wrap=True)
    if report is not None:
        for block in estimate_blocks(report):
            console.print(block, soft_wrap=isinstance(block, Text))
