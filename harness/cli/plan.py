"""``harness plan``: the arena of a model, predicted from the file alone, and the questions that engineers ask."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from harness.cli.boundary import error_fields
from harness.cli.finite import FiniteRange
from harness.cli.plan_target import TargetOptions, choose_target
from harness.errors import ExitCode, HarnessError, UsageError
from harness.plan.comparison import PLANNERS
from harness.plan.target import Interpreter, Kernels
from harness.units import parse_size, quoted
from harness.whatif.answer import Answer, answer_questions, write_offline_plan
from harness.whatif.questions import ChosenTarget, Questions
from harness.whatif.shared import Shared, share


def _size(_context: click.Context, _parameter: click.Parameter, value: str | None) -> int | None:
    return None if value is None else parse_size(value)


@click.command()
@click.argument("models", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="MODEL...")
@click.option("--board", help="Plan for a board: its core, and whether the arena fits into its memories.")
@click.option("--boards-dir", "boards_dirs", multiple=True, type=click.Path(path_type=Path), help="Own board files.")
@click.option("--abi", type=click.Choice(["ilp32", "lp64", "ilp32_long_enums"]), help="Struct sizes: Cortex-M or host.")
@click.option("--core", help="host, or cortex-m0 … cortex-m85 (default: cortex-m4).")
@click.option("--kernels", type=click.Choice([k.value for k in Kernels]), help="Kernel set (default: cmsis_nn).")
@click.option("--interpreter", type=click.Choice([i.value for i in Interpreter]), help="Which interpreter (plain).")
@click.option("--preserve-all-tensors", is_flag=True, help="What preserve_all_tensors costs (no reuse of memory).")
@click.option("--abi-from", type=click.Path(path_type=Path), help="A record: plan with the sizes a board reported.")
@click.option(
    "--planner",
    "planners",
    multiple=True,
    type=click.Choice([*PLANNERS, "all"]),
    help="Compare planners of the head; may be given several times.",
)
@click.option("--alignments", is_flag=True, help="What buffers aligned to 4, 8 or 16 would cost.")
@click.option("--two-arenas", is_flag=True, help="Sizes of separate persistent and non-persistent arenas.")
@click.option("--shared-arena", is_flag=True, help="All the models in one arena, one running at a time.")
@click.option("--shape", "shapes", multiple=True, metavar="INPUT=DIMS", help="Open dimensions: input=1,49,10,1.")
@click.option("--headroom", type=FiniteRange(1.0, 100.0), help="Recommend an arena of min × this factor.")
@click.option("--arena-limit", callback=_size, metavar="SIZE", help="Does it fit into 64KiB? Ends with 1 if not.")
@click.option("--plot", type=click.Path(path_type=Path), metavar="FILE", help="Draw the arena: .svg, or .png.")
@click.option(
    "--write-offline-plan",
    "offline",
    type=click.Path(path_type=Path),
    metavar="OUT",
    help="Search for a better placement and write a copy of the one MODEL that carries it.",
)
@click.option("--log", "as_log", is_flag=True, help="One line per tensor, like TFLM's own planner prints.")
@click.option("--no-check", is_flag=True, help="Do not look whether TFLM would run the model rightly.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def plan(
    models: tuple[Path, ...],
    planners: tuple[str, ...],
    alignments: bool,
    two_arenas: bool,
    shared_arena: bool,
    shapes: tuple[str, ...],
    headroom: float | None,
    arena_limit: int | None,
    plot: Path | None,
    offline: Path | None,
    as_log: bool,
    no_check: bool,
    as_json: bool,
    **target: Any,
) -> int:
    """Predict the arena of each MODEL, byte for byte, with no device.

    Three numbers: head + tail = used, which arena_used_bytes() will say; min, the smallest arena that works. Without
    --board and --core the target is a Cortex-M4 with CMSIS-NN kernels and the plain interpreter.
    """
    if len(models) > 1 and (plot or shapes or offline):
        raise UsageError(
            "--plot, --shape and --write-offline-plan take one model", remedy="give one MODEL, or leave the option away"
        )
    if shapes and offline:
        raise UsageError(
            "--shape only asks what if", remedy="convert the model with these shapes, then place it better"
        )
    chosen = choose_target(TargetOptions(**target))
    names = tuple(PLANNERS) if "all" in planners else planners
    questions = Questions(names, alignments, two_arenas, headroom, arena_limit, shapes, not no_check)
    answers = [_answer(path, chosen, questions, alone=len(models) == 1) for path in models]
    reports = [answer for answer in answers if isinstance(answer, Answer)]
    errors = [answer for answer in answers if isinstance(answer, HarnessError)]
    shared = share(reports, chosen, questions) if shared_arena and not errors else None
    if plot is not None:
        from harness.report.arena_picture import draw
        from harness.report.drawing import write_drawing
        from harness.report.plan_report import arena_picture

        write_drawing(draw(arena_picture(reports[0])), plot)
    if offline is not None:
        reports[0] = answers[0] = write_offline_plan(reports[0], models[0], offline)
    if as_json:
        click.echo(json.dumps(_document(models, answers, shared)))
    elif as_log:
        _print_log(reports, errors)
    else:
        _print(models, answers, shared)
    fits = [shared.fit] if shared else [report.fit for report in reports]
    codes = [error.exit_code for error in [*errors, *(report.unfit for report in reports if report.unfit)]]
    codes += [ExitCode.RESULT_BAD for fitting in fits if fitting is not None and not fitting.fits]
    return max(codes, default=ExitCode.DONE)


def _answer(path: Path, chosen: ChosenTarget, questions: Questions, *, alone: bool) -> Answer | HarnessError:
    """The report of one model. Its error is the command's when it is the only model."""
    try:
        return answer_questions(path, chosen, questions)
    except HarnessError as error:
        if alone:
            raise
        return error


def _document(
    models: Sequence[Path], answers: Sequence[Answer | HarnessError], shared: Shared | None
) -> dict[str, Any]:
    """One model: its plan. Several: a list, where a failed one has an error in place of a plan."""
    if len(answers) == 1 and isinstance(answers[0], Answer) and shared is None:
        return answers[0].to_dict()
    rows = [
        answer.to_dict()
        if isinstance(answer, Answer)
        else {"model": {"path": str(path)}, "error": error_fields(answer)}
        for path, answer in zip(models, answers, strict=True)
    ]
    document: dict[str, Any] = {"schema": "harness.plan", "schema_version": 1, "plans": rows}
    if shared is not None:
        document["shared_arena"] = shared.to_dict()
    return document


def _print(models: Sequence[Path], answers: Sequence[Answer | HarnessError], shared: Shared | None) -> None:

    from harness.cli.console import stdout_console
    from harness.report.plan_report import plan_blocks, shared_blocks
    from harness.report.plan_tables import print_all

    console = stdout_console()
    for number, (path, answer) in enumerate(zip(models, answers, strict=True)):
        if number:
            console.print()
        if isinstance(answer, Answer):
            print_all(console, plan_blocks(answer, console.width))
        else:
            _print_error(path, answer)
    if shared is not None:
        print_all(console, shared_blocks(shared))


def _print_error(path: Path, error: HarnessError) -> None:
    click.echo(f"error: {quoted(str(path))}: {error.message}", err=True)
    if error.remedy:
        click.echo(f"  {error.remedy}", err=True)


def _print_log(reports: Sequence[Answer], errors: Sequence[HarnessError]) -> None:
    from harness.report.plan_tables import log_lines

    for report in reports:
        for line in log_lines(report.overview.view):
            click.echo(line)
    for error in errors:
        click.echo(f"error: {error.message}", err=True)
