"""What commands that run models on a board have in common: their options, the loop over models, and the output."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from harness.cli.finite import FiniteRange
from harness.errors import ExitCode, UsageError
from harness.units import safe_text

if TYPE_CHECKING:
    from harness.record.schema import SweepRecord
    from harness.sweep.draft import Draft
    from harness.sweep.request import Progress, SweepRequest

    Job = Callable[[SweepRequest, Progress], Draft]

_F = TypeVar("_F", bound=Callable[..., Any])
_SECONDS = FiniteRange(min=0.1)

_OPTIONS = (
    click.option("--board", required=True, metavar="NAME", help="Board or twin to run on; host is this computer."),
    click.option(
        "--boards-dir", "boards_dirs", multiple=True, type=click.Path(path_type=Path), help="Your own boards."
    ),
    click.option("--rig", "rig_name", metavar="NAME", help="Which rig of lab.yaml, where several have the board."),
    click.option("--transport", type=click.Choice(["uart", "rtt"]), default="uart", help="rtt: through the probe."),
    click.option("--sim-fault", "faults", multiple=True, metavar="NAME[=N]", help="For a twin: put a defect into it."),
    click.option("--pace", is_flag=True, help="For a twin: take the time that a real board would."),
    click.option("--kernels", type=click.Choice(["reference", "cmsis_nn"]), help="Kernel set (default: the board's)."),
    click.option(
        "--interpreter",
        type=click.Choice(["plain", "recording", "preserve_all"]),
        help="TFLM's interpreter (default: plain on a chip; recording on the host board, which has no other).",
    ),
    click.option("--seed", type=click.IntRange(0, 2**64 - 1), default=1, show_default=True, help="Seed of the inputs."),
    click.option("--fill", type=float, help="Fill every input with this value (as it is stored) instead."),
    click.option(
        "--input", "files", multiple=True, type=click.Path(path_type=Path), help="Input as .npy, once per input."
    ),
    click.option("--timeout", type=_SECONDS, default=600.0, show_default=True, help="Seconds per model."),
    click.option("--trial-timeout", type=_SECONDS, default=20.0, show_default=True, help="Seconds per trial."),
    click.option("--warm-up", type=click.IntRange(0, 1000), default=1, show_default=True, help="Untimed runs first."),
    click.option(
        "--arena-region", default="", metavar="NAME", help="Memory for the arena: dtcm, sram1, sram1+sram2, …"
    ),
    click.option(
        "--optimise",
        type=click.Choice(["Os", "O2", "O3"]),
        default="Os",
        show_default=True,
        help="For the harness's own sources; TFLM comes compiled.",
    ),
    click.option(
        "--cache", type=click.Choice(["on", "off"]), default="on", show_default=True, help="Caches of the chip."
    ),
    click.option(
        "--vary",
        "vary",
        multiple=True,
        metavar="KEY=A,B",
        help="Run under each choice: kernels, interpreter, arena-region, optimise, cache. All combinations.",
    ),
    click.option("--no-check", is_flag=True, help="Go on with a model that the checks refuse."),
    click.option(
        "--tolerance",
        type=FiniteRange(min=0),
        metavar="STEPS",
        help="Fail where outputs differ from LiteRT's by more quantised steps (floats: 1/10,000 of the largest).",
    ),
    click.option("--no-reference", is_flag=True, help="Do not compare the outputs with LiteRT's."),
    click.option("--no-save", is_flag=True, help="Do not keep a firmware that is not ours before it is overwritten."),
    click.option(
        "--results", type=click.Path(path_type=Path), default=Path("results"), show_default=True, help="Records."
    ),
    click.option("--transcript", type=click.Path(path_type=Path), help="Write what goes over the link to this file."),
    click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout."),
)


#: For the commands that run a model for its numbers: sweep and measure.
no_reuse_option = click.option(
    "--preserve-all-tensors",
    "no_reuse",
    is_flag=True,
    help="Compare the outputs with those of a firmware that reuses no memory; one more flash.",
)


def run_options(command: _F) -> _F:
    """Decorates a command with the options that say how a model is run."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def requests_of(models: tuple[Path, ...], options: dict[str, Any]) -> list[SweepRequest]:
    """A request for each model and each variant; with ``shared_arena`` all models are in one request."""
    from dataclasses import replace

    from harness.cli.variants import parse_variants, require_said_once, varied

    shared = options.get("shared_arena", False)
    variants = parse_variants(options["vary"])
    given = _given()
    require_said_once(variants, given)
    if {"fill", "files"} <= given or ("seed" in given and given & {"fill", "files"}):
        raise UsageError(
            "--seed, --fill and --input each say what the inputs are", remedy="keep one of them: --input once per input"
        )
    if shared:
        _require_shareable(models, options, [dict(variant) for variant in variants])
    pairs = [(path, variant) for path in (models[:1] if shared else models) for variant in variants]
    requests = [
        varied(request_of(path, options, number, len(pairs)), variant)
        for number, (path, variant) in enumerate(pairs, start=1)
    ]
    # the times of several models together would be no model's
    return [replace(request, others=models[1:], runs=0) for request in requests] if shared else requests


def _given() -> set[str]:
    """Parameters that the user gave on the command line."""
    context = click.get_current_context(silent=True)
    if context is None:
        return set()
    return {name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}


def _require_shareable(models: tuple[Path, ...], options: dict[str, Any], variants: list[dict[str, str]]) -> None:
    """Raises UsageError for what a shared arena excludes."""
    if len(models) < 2:
        raise UsageError("--shared-arena takes at least two models", remedy="name them in the order of their setup")
    if options["runs"]:
        raise UsageError(
            "--shared-arena measures no times: those of several models together would be no model's",
            remedy="leave --runs away; harness measure times each model alone",
        )
    if options["no_reuse"] or "preserve_all" in {
        options["interpreter"],
        *(variant.get("interpreter") for variant in variants),
    }:
        raise UsageError(
            "several models cannot share an arena with preserve_all: TFLM's linear planner gives the second model the "
            "first one's offsets",
            remedy="take --interpreter plain or recording, and compare each model alone with --preserve-all-tensors",
        )


def request_of(path: Path, options: dict[str, Any], number: int = 1, total: int = 1) -> SweepRequest:
    """The request for run ``number`` of ``total``; options that a command does not have keep their defaults."""
    from harness.cli.rig_choice import chosen_rig
    from harness.inputs import InputChoice
    from harness.sweep.request import BuildChoice, Strategy, SweepRequest

    transcript: Path | None = options["transcript"]
    if transcript and total > 1:
        transcript = transcript.with_name(f"{transcript.stem}-{number}{transcript.suffix}")
    own = {
        name: options[name]
        for name in ("step_bytes", "runs", "certify", "arena_bytes", "headroom", "no_reuse")
        if name in options
    }
    return SweepRequest(
        model_path=path,
        board=options["board"],
        boards_dirs=options["boards_dirs"],
        kernels=options["kernels"],
        interpreter=options["interpreter"],
        inputs=InputChoice(options["seed"], options["fill"], options["files"]),
        timeout_s=options["timeout"],
        trial_timeout_s=options["trial_timeout"],
        check=not options["no_check"],
        reference=not options["no_reference"],
        resume=not options.get("fresh", False),
        results=options["results"],
        transcript=transcript,
        rig=chosen_rig(options["board"], options),
        save_foreign=not options["no_save"],
        build=BuildChoice(options["arena_region"], options["optimise"], options["cache"] == "on"),
        strategy=Strategy(options.get("strategy", Strategy.GUIDED)),
        warm_up=options["warm_up"],
        tolerance_steps=options["tolerance"],
        transport=options["transport"],
        **own,
    )


def run_models(requests: list[SweepRequest], job: Job, as_json: bool, done: str) -> int:
    """Run each request, print its record, go on after a failing one; the highest exit code. ``done`` says what the
    models that ended well have: ``a minimum``."""
    from harness.cli.progress import TerminalProgress
    from harness.interrupts import interrupts_held
    from harness.sweep.flow import keep_record

    progress = TerminalProgress(len(requests))
    drafts: list[Draft] = []
    records: list[SweepRecord] = []
    code = 0
    try:
        for number, request in enumerate(requests, start=1):
            with progress.begin(number, str(request.model_path)):
                draft = job(request, progress)
                with interrupts_held():  # a record that is on disk is also told
                    drafts.append(draft)
                    records.append(keep_record(draft))
            if not as_json:
                print_record(records[-1])
    except KeyboardInterrupt:
        code = int(ExitCode.INTERRUPTED)
        print("interrupted; the trials that ended are kept: the same command goes on from them", file=sys.stderr)
    if as_json:
        print(_document(records, interrupted=code == ExitCode.INTERRUPTED))
    elif len(requests) > 1:
        _print_matrix(records)
        _print_summary(records, len(requests), done)
    return max([code, *(int(draft.exit_code) for draft in drafts)])


def _document(records: list[SweepRecord], *, interrupted: bool) -> str:
    import msgspec

    results = []
    for record in records:
        result = msgspec.to_builtins(record)
        del result["schema"], result["schema_version"]
        results.append(result)
    document = {"schema": "harness.sweep", "schema_version": 1, "interrupted": interrupted, "results": results}
    return json.dumps(document, indent=1)


def print_record(record: Any) -> None:
    """A record for a person, on stdout."""
    from rich.text import Text

    from harness.cli.console import stdout_console
    from harness.report.sweep_table import sweep_report

    console = stdout_console()
    for part in sweep_report(record):
        console.print(part, soft_wrap=isinstance(part, Text))  # paths stay whole


def _print_matrix(records: list[Any]) -> None:
    if any(record.variant for record in records):
        from harness.cli.console import stdout_console
        from harness.report.matrix_table import matrix_table

        stdout_console().print(matrix_table(records))


def _runs(records: list[Any]) -> str:
    return "runs" if any(record.variant for record in records) else "models"


def _print_summary(records: list[Any], total: int, done: str) -> None:
    bad = [record for record in records if record.status != "ok"]
    print(f"{len(records) - len(bad)} of {total} {_runs(records)} have {done}")
    for record in bad:
        reason = record.error.code if record.error else record.status
        variant = "".join(f" {key}={value}" for key, value in record.variant.items())
        print(f"  {safe_text(record.model.path)}{safe_text(variant)}: {record.status} ({reason})")
