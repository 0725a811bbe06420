"""``harness baseline``: the numbers that a lab has agreed on."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.errors import UsageError
from harness.units import safe_text

if TYPE_CHECKING:
    from harness.lab.baseline import BaselineStore, Change
    from harness.lab.baseline_update import Refusal
    from harness.lab.suite import Suite

_PATH = click.Path(path_type=Path)
_RESULTS = click.option(
    "--results", type=_PATH, default=Path("results"), show_default=True, help="Where runs are kept."
)


@click.group()
def baseline() -> None:
    """Show and update the baselines that harness regress compares with."""


@baseline.command()
@click.argument("suite", type=_PATH)
@click.option("--run", "run_path", type=_PATH, help="The run.json to take (default: the newest run of the suite).")
@click.option("--yes", is_flag=True, help="Write without asking.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@_RESULTS
def update(suite: Path, run_path: Path | None, yes: bool, as_json: bool, results: Path) -> int:
    """Take the numbers of a finished run as baselines, after showing what changes.

    Numbers of runs that are not comparable, or of another model file than the suite's is now, are refused.
    """
    from harness.lab.baseline_update import all_changes, latest_run, proposals
    from harness.lab.job import jobs_of
    from harness.lab.run_folder import read_run
    from harness.lab.suite import read_suite

    read = read_suite(suite)
    run = read_run(run_path) if run_path else latest_run(results / "lab", read.name, suite)
    if run.suite != read.name:
        raise UsageError(f"{run_path} is a run of suite {run.suite}, not of {read.name}", remedy="name another --run")
    store = _store(read, suite, results)
    found, refused = proposals(run, {job.model.name: job.model for job in jobs_of(read, suite)})
    changes = all_changes(store, found)
    if not as_json:
        _print_changes(changes, refused, run.run_id)
    if changes and not yes:
        _ask(len(changes))
    paths = [store.put(proposal.model, proposal.board, proposal.entry) for proposal in found] if changes else []
    if as_json:
        print(_document(changes, refused, paths))
    else:
        for path in dict.fromkeys(paths):
            print(f"wrote {path.as_posix()}")
    return 1 if refused and not found else 0


@baseline.command()
@click.argument("suite", type=_PATH)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@_RESULTS
def show(suite: Path, as_json: bool, results: Path) -> None:
    """The baselines of a suite's models and boards."""
    import msgspec

    from harness.lab.job import jobs_of
    from harness.lab.suite import read_suite

    read = read_suite(suite)
    store = _store(read, suite, results)
    pairs = dict.fromkeys((job.model.name, job.board) for job in jobs_of(read, suite) if job.board)
    files = [store.file(model, board) for model, board in pairs]
    if as_json:
        values = [msgspec.to_builtins(file) for file in files]
        print(json.dumps({"schema": "harness.baselines", "schema_version": 1, "baselines": values}, indent=1))
        return
    for file in files:
        if not file.entries:
            print(f"{file.model} on {file.board}: none")
        for entry in file.entries:
            conditions = entry.conditions
            under = ", ".join(filter(None, (conditions.kernels, conditions.tflm_commit[:12], conditions.toolchain)))
            print(f"{file.model} on {file.board} ({safe_text(under)}), updated {entry.updated}")
            for name, metric in entry.metrics.items():
                print(f"  {name:<20} {metric.value:>14,}")


def _store(suite: Suite, path: Path, results: Path) -> BaselineStore:
    from harness.lab.baseline import BaselineStore
    from harness.lab.suite import baselines_folder

    return BaselineStore(baselines_folder(suite, path, results))


def _print_changes(changes: list[Change], refused: list[Refusal], run_id: str) -> None:
    for refusal in refused:
        print(f"refused {safe_text(refusal.job_id)}: {safe_text(refusal.why, 400)}", file=sys.stderr)
    for change in changes:
        where = f"{safe_text(change.model)} on {change.board}: {change.metric}"
        if change.old is None:
            print(f"+ {where}  {change.new:,}")
        else:
            print(f"~ {where}  {change.old:,} -> {change.new:,}  ({change.new - change.old:+,})")
    print(f"{len(changes)} numbers change, from run {run_id}" if changes else "nothing changes")


def _ask(count: int) -> None:
    """Raises UsageError where nobody can answer, Abort on a no."""
    if not sys.stdin.isatty():
        raise UsageError(f"{count} numbers would change", remedy="look at them, then run again with --yes")
    click.confirm("write them?", abort=True)


def _document(changes: list[Change], refused: list[Refusal], paths: list[Path]) -> str:
    from dataclasses import asdict

    values: dict[str, Any] = {
        "schema": "harness.baseline_update",
        "schema_version": 1,
        "changes": [asdict(change) for change in changes],
        "refused": [asdict(refusal) for refusal in refused],
        "written": sorted({path.as_posix() for path in paths}),
    }
    return json.dumps(values, indent=1)
