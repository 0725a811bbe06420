"""``harness regress``: a suite of models over the rigs of a lab, against limits and baselines."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.finite import FiniteRange
from harness.errors import HarnessError, UsageError
from harness.units import counted, safe_text

if TYPE_CHECKING:
    from harness.lab.job import Job
    from harness.lab.regress import Prepared, RegressRequest
    from harness.record.lab_run import AttemptRecord, JobRecord, RunRecord

_PATH = click.Path(path_type=Path)
_HISTORY = "history.sqlite"
#: GitLab's name for a code quality report.
_QUALITY = Path("gl-code-quality-report.json")


@click.command()
@click.argument("suite", type=_PATH, required=False)
@click.option(
    "-k", "expression", metavar="EXPR", help="Only jobs whose words match: 'kws and not cmsis_nn', 'tag:smoke'."
)
@click.option("--list", "only_list", is_flag=True, help="List the jobs and the rigs; run nothing.")
@click.option("--shard", metavar="I/N", help="Only part I of N.")
@click.option("--repeat", type=click.IntRange(1, 1000), help="Run each job so many times.")
@click.option("--max-minutes", type=FiniteRange(min=0.01), help="Begin no job after this time.")
@click.option("--lab", "lab_path", type=_PATH, help="The lab file (default: lab.yaml here or in the config folder).")
@click.option("--boards-dir", "boards_dirs", multiple=True, type=_PATH, help="Your own boards.")
@click.option("--results", type=_PATH, default=Path("results"), show_default=True, help="Where runs are kept.")
@click.option("--history", metavar="PATH|URL|none", help="History database (default: history.sqlite in the results).")
@click.option("--fresh", is_flag=True, help="Do not go on from an unfinished run.")
@click.option("--vary", metavar="tflm=A,B", help="Run the suite with two TFLM libraries and explain what changed.")
@click.option("--junit-xml", type=_PATH, help="Write JUnit XML to this file.")
@click.option("--markdown", "markdown_path", type=_PATH, help="Write a summary in Markdown to this file.")
@click.option("--ci", type=click.Choice(["github", "gitlab"]), help="Annotations for this CI system.")
@click.option("--schema", is_flag=True, help="Print the JSON schema of a suite file, for editors.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def regress(suite: Path | None, schema: bool, only_list: bool, as_json: bool, **options: Any) -> int:
    """Run a suite of models over the rigs of a lab, and hold every number against its limits and its baseline.

    Jobs run in parallel, one at a time on each rig. A run that was killed goes on where it was.
    """
    from harness.lab.regress import prepare, regress, with_places
    from harness.lab.suite import suite_schema

    if schema:
        print(json.dumps(suite_schema(), indent=2))
        return 0
    if suite is None:
        raise UsageError("no suite is named", remedy="harness regress SUITE; an example: examples/suite.yaml")
    prepared = prepare(_request(suite, options))
    if only_list:
        _print_list(prepared, as_json)
        return 0
    try:
        with with_places(prepared) as complete:
            run, path = regress(complete, Console(len(complete.jobs)))
    except KeyboardInterrupt:
        print("the jobs that ended are kept: the same command goes on from them", file=sys.stderr)
        raise
    unwritten = _write_reports(run, options)
    if as_json:
        print(_document(run, path))
    else:
        _print_run(run, path)
    if options["ci"] == "github":
        _annotate(run, out=sys.stderr if as_json else sys.stdout)
    # after the result, which is what the run was for
    for error in unwritten:
        print(f"error: {error.message}\n  {error.remedy}", file=sys.stderr)
    return max(run.exit_code, *(int(error.exit_code) for error in unwritten), 0)


def _request(suite: Path, options: dict[str, Any]) -> RegressRequest:
    from harness.lab.regress import RegressRequest
    from harness.lab.selection import parse_expression, parse_shard
    from harness.lab.upgrade import parse_vary

    return RegressRequest(
        suite_path=suite,
        lab_path=options["lab_path"],
        results=options["results"],
        history=history_place(options["history"], options["results"]),
        boards_dirs=options["boards_dirs"],
        expression=parse_expression(options["expression"]) if options["expression"] is not None else None,
        shard=parse_shard(options["shard"]) if options["shard"] is not None else None,
        repeat=options["repeat"],
        max_minutes=options["max_minutes"],
        resume=not options["fresh"],
        coordinator="" if options["lab_path"] else os.environ.get("LG_COORDINATOR", ""),
        tflm=parse_vary(options["vary"]) if options["vary"] is not None else (),
    )


def history_place(named: str | None, results: Path) -> str:
    """What --history, the variable HARNESS_HISTORY, or the default says; "" for none."""
    place = named or os.environ.get("HARNESS_HISTORY") or str(results / _HISTORY)
    return "" if place == "none" else place


class Console:
    """Implements ``Watcher``: one plain line on stderr for each thing that matters, as it happens."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._lock = threading.Lock()

    def begun(self, job: Job, rig: str, attempt: int) -> None:
        if attempt > 1:
            self._say(f"{job.id} on {rig}: attempt {attempt}")

    def told(self, job: Job, rig: str, text: str) -> None:
        import logging

        logging.getLogger(__name__).info("%s on %s: %s", job.id, rig, text)

    def tried(self, job: Job, rig: str, attempt: AttemptRecord) -> None:
        reason = f"{attempt.error.code}: {attempt.error.message}" if attempt.error else attempt.status
        self._say(f"{job.id} on {rig}: {reason}; it will be tried again")

    def finished(self, record: JobRecord) -> None:
        with self._lock:
            self._done += 1
            done = self._done
        where = f" on {record.rig} ({record.seconds:.1f} s)" if record.rig else ""
        reason = f": {record.reason}" if record.reason else ""
        self._say(f"[{done}/{self._total}] {record.status.value} {record.id}{where}{reason}")

    def benched(self, rig: str, why: str) -> None:
        self._say(f"rig {rig} is benched: {why}")

    def resumed(self, run_id: str, jobs: int) -> None:
        """The run goes on from an earlier one."""
        with self._lock:
            self._done += jobs
        self._say(f"goes on from {run_id}: {jobs} of {counted(self._total, 'job')} done")

    def noted(self, text: str) -> None:
        self._say(f"note: {text}")

    def _say(self, text: str) -> None:
        """A whole line at once: rigs speak at the same time."""
        with self._lock:
            sys.stderr.write(safe_text(text, 500) + "\n")
            sys.stderr.flush()


def _print_list(prepared: Prepared, as_json: bool) -> None:
    from harness.lab.dispatch import fits

    rows: list[dict[str, Any]] = [
        {
            "id": job.id,
            "model": job.model.path.as_posix(),
            "tags": list(job.tags),
            "metrics": list(job.metrics),
            "rigs": [rig.name for rig in prepared.rigs if fits(job, rig)],
            "problem": job.model.problem,
        }
        for job in prepared.jobs
    ]
    if as_json:
        print(json.dumps({"schema": "harness.suite_jobs", "schema_version": 1, "jobs": rows}, indent=1))
        return
    for row in rows:
        tags = f"  [{', '.join(row['tags'])}]" if row["tags"] else ""
        rigs = ", ".join(row["rigs"]) or "no rig"
        problem = f"  {safe_text(row['problem'])}" if row["problem"] else ""
        print(f"{row['id']}{tags}  ({rigs}){problem}")
    print(f"{counted(len(rows), 'job')}, {counted(len(prepared.rigs), 'rig')}", file=sys.stderr)


def _write_reports(run: RunRecord, options: dict[str, Any]) -> list[HarnessError]:
    """Every file that is wanted, and an error for each that cannot be written: one does not cost the others."""
    return [error for write in _reports(run, options) if (error := _error_of(write)) is not None]


def _error_of(write: Callable[[], None]) -> HarnessError | None:
    from harness.record.text_file import UnwritableError

    try:
        write()
    except UnwritableError as exc:
        return exc
    return None


def _reports(run: RunRecord, options: dict[str, Any]) -> Iterator[Callable[[], None]]:
    """GitHub reads a summary from a file; GitLab reads a report that the job keeps."""
    from harness.record.text_file import append_text, write_whole
    from harness.report.annotations import gitlab_quality
    from harness.report.junit import junit_xml
    from harness.report.lab_markdown import markdown

    if options["junit_xml"]:
        yield lambda: write_whole(options["junit_xml"], junit_xml(run))
    if options["markdown_path"]:
        yield lambda: write_whole(options["markdown_path"], markdown(run).encode())
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if options["ci"] == "github" and summary:
        yield lambda: append_text(Path(summary), markdown(run))
    if options["ci"] == "gitlab":
        yield lambda: write_whole(_QUALITY, json.dumps(gitlab_quality(run), indent=1).encode())
        print(f"code quality report: {_QUALITY}", file=sys.stderr)


def _document(run: RunRecord, path: Path) -> str:
    import msgspec

    return json.dumps({**msgspec.to_builtins(run), "record_path": path.as_posix()}, indent=1)


def _print_run(run: RunRecord, path: Path) -> None:
    from harness.cli.console import stdout_console
    from harness.report.lab_table import run_report

    console = stdout_console()
    for part in run_report(run, path.as_posix()):
        console.print(part)


def _annotate(run: RunRecord, *, out: Any) -> None:
    """GitHub reads commands from the log."""
    from harness.report.annotations import github_lines

    for line in github_lines(run):
        print(line, file=out)
