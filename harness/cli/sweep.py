"""``harness sweep``: the smallest arena that works, for each model on one board."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.errors import ExitCode
from harness.units import safe_text

if TYPE_CHECKING:
    from harness.sweep.draft import Draft
    from harness.sweep.request import SweepRequest


_SECONDS = click.FloatRange(min=0.1)


@click.command()
@click.argument("models", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--board", required=True, metavar="NAME", help="Board or twin to run on; host is this computer.")
@click.option("--boards-dir", "boards_dirs", multiple=True, type=click.Path(path_type=Path), help="Your own boards.")
@click.option("--kernels", type=click.Choice(["reference", "cmsis_nn"]), help="Kernel set (default: the board's).")
@click.option(
    "--interpreter",
    type=click.Choice(["plain", "recording", "preserve_all"]),
    help="TFLM's interpreter (default: plain on a chip; recording on the host board, which has no other).",
)
@click.option("--seed", type=click.IntRange(0, 2**64 - 1), default=1, show_default=True, help="Seed of the inputs.")
@click.option("--fill", type=float, help="Fill every input with this value (as it is stored) instead.")
@click.option("--input", "files", multiple=True, type=click.Path(path_type=Path), help="Input as .npy, once per input.")
@click.option(
    "--step", type=click.IntRange(1), default=16, show_default=True, help="Find the minimum to this many bytes."
)
@click.option("--timeout", type=click.FloatRange(min=0.1), default=600.0, show_default=True, help="Seconds per model.")
@click.option(
    "--trial-timeout", type=click.FloatRange(min=0.1), default=20.0, show_default=True, help="Seconds per trial."
)
@click.option("--runs", type=click.IntRange(0, 1_000_000), help="Timed runs (default: 10 on a chip, 0 on the host).")
@click.option("--warm-up", type=click.IntRange(0, 1000), default=1, show_default=True, help="Untimed runs before them.")
@click.option("--certify", is_flag=True, help="Prove the minimum in two firmwares with a constant arena.")
@click.option("--no-check", is_flag=True, help="Go on with a model that the checks refuse.")
@click.option("--no-reference", is_flag=True, help="Do not compare the outputs with LiteRT's.")
@click.option("--fresh", is_flag=True, help="Do not go on from an interrupted run.")
@click.option("--results", type=click.Path(path_type=Path), default=Path("results"), show_default=True, help="Records.")
@click.option("--transcript", type=click.Path(path_type=Path), help="Write what goes over the link to this file.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def sweep(models: tuple[Path, ...], as_json: bool, **options: Any) -> int:
    """Find the smallest tensor arena with which each model works on a board.

    AllocateTensors and Invoke must succeed, and the outputs must be those of a run with an ample arena.
    """
    from harness.cli.progress import TerminalProgress

    requests = [_request(path, number, len(models), options) for number, path in enumerate(models, start=1)]
    progress = TerminalProgress(len(models))
    drafts: list[Draft] = []
    records = []
    code = 0
    try:
        for draft, record in _sweep_all(requests, progress):
            drafts.append(draft)
            records.append(record)
            if not as_json:
                _print_record(record)
    except KeyboardInterrupt:
        code = int(ExitCode.INTERRUPTED)
        print("interrupted; the trials that ended are kept: the same command goes on from them", file=sys.stderr)
    if as_json:
        print(_document(records))
    elif len(models) > 1:
        _print_summary(records, len(models))
    return max([code, *(int(draft.exit_code) for draft in drafts)])


def _request(path: Path, number: int, total: int, options: dict[str, Any]) -> SweepRequest:
    from harness.inputs import InputChoice
    from harness.sweep.request import SweepRequest

    transcript: Path | None = options["transcript"]
    if transcript and total > 1:
        transcript = transcript.with_name(f"{transcript.stem}-{number}{transcript.suffix}")
    return SweepRequest(
        model_path=path,
        board=options["board"],
        boards_dirs=options["boards_dirs"],
        kernels=options["kernels"],
        interpreter=options["interpreter"],
        inputs=InputChoice(options["seed"], options["fill"], options["files"]),
        step_bytes=options["step"],
        timeout_s=options["timeout"],
        trial_timeout_s=options["trial_timeout"],
        check=not options["no_check"],
        reference=not options["no_reference"],
        resume=not options["fresh"],
        results=options["results"],
        transcript=transcript,
        runs=options["runs"],
        warm_up=options["warm_up"],
        certify=options["certify"],
    )


def _sweep_all(requests: list[SweepRequest], progress: Any) -> Iterator[tuple[Draft, Any]]:
    from harness.sweep.flow import keep_record, sweep_model

    for number, request in enumerate(requests, start=1):
        with progress.begin(number, str(request.model_path)):
            draft = sweep_model(request, progress)
            record = keep_record(draft)
        yield draft, record


def _document(records: list[Any]) -> str:
    import msgspec

    results = []
    for record in records:
        result = msgspec.to_builtins(record)
        del result["schema"], result["schema_version"]
        results.append(result)
    return json.dumps({"schema": "harness.sweep", "schema_version": 1, "results": results}, indent=1)


def _print_record(record: Any) -> None:
    from rich.text import Text

    from harness.cli.console import stdout_console
    from harness.report.sweep_table import sweep_report

    console = stdout_console()
    for part in sweep_report(record):
        console.print(part, soft_wrap=isinstance(part, Text))  # paths stay whole


def _print_summary(records: list[Any], total: int) -> None:
    bad = [record for record in records if record.status != "ok"]
    print(f"{len(records) - len(bad)} of {total} models have a minimum")
    for record in bad:
        reason = record.error.code if record.error else record.status
        print(f"  {safe_text(record.model.path)}: {record.status} ({reason})")
