"""``harness plan``: the arena of a model, predicted from the file alone, and the questions that engineers ask."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path
from typing import Any

import click

from harness.cli.boundary import error_fields
from harness.cli.plan_target import ChosenTarget, TargetOptions, choose_target
from harness.errors import ExitCode, HarnessError, UnfitModelError, UsageError
from harness.model.graph import Model
from harness.plan.arena import ArenaPlan, plan_arena
from harness.plan.arenas import SharedArena, shared_arena, two_arenas
from harness.plan.comparison import PLANNERS, alignment_costs, compare
from harness.plan.fit import Fit, Place, fit
from harness.plan.greedy import greedy
from harness.plan.overview import overview
from harness.plan.target import Interpreter, Kernels
from harness.report.plan_report import PlanReport, Recommendation
from harness.units import align_up, format_size, parse_size, quoted

#: Orders of a shared arena are all tried up to this many models.
ORDERED_MODELS = 6


@dataclass(frozen=True, slots=True)
class Questions:
    """What to answer beside the plan itself."""

    planners: tuple[str, ...] = ()
    alignments: bool = False
    two_arenas: bool = False
    headroom: float | None = None
    arena_limit_bytes: int | None = None
    shapes: tuple[str, ...] = ()
    check: bool = True


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
@click.option("--headroom", type=click.FloatRange(1.0, 100.0), help="Recommend an arena of min × this factor.")
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
    chosen = choose_target(TargetOptions(**target))
    names = tuple(PLANNERS) if "all" in planners else planners
    questions = Questions(names, alignments, two_arenas, headroom, arena_limit, shapes, not no_check)
    answers = [_answer(path, chosen, questions, alone=len(models) == 1) for path in models]
    reports = [answer for answer in answers if isinstance(answer, PlanReport)]
    errors = [answer for answer in answers if isinstance(answer, HarnessError)]
    shared = _share(reports, chosen, questions) if shared_arena and not errors else None
    if plot is not None:
        from harness.report.arena_picture import draw
        from harness.report.drawing import write_drawing

        write_drawing(draw(reports[0].picture()), plot)
    if offline is not None:
        reports[0] = answers[0] = _write_offline(reports[0], models[0], offline)
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


def _write_offline(report: PlanReport, source: Path, path: Path) -> PlanReport:
    """Write the model with a better placement, and tell in the report what it then needs."""
    from harness.plan.better import plan_offline

    if path.exists() and path.samefile(source):
        raise UsageError("--write-offline-plan would overwrite the model", remedy="name another file")
    better = plan_offline(report.overview.view.model, report.plan)
    path.write_bytes(better.data)
    was, is_now = report.plan, better.plan
    note = (
        f"{quoted(str(path))} carries an offline plan: head {is_now.head_bytes:,} instead of {was.head_bytes:,}, "
        f"minimum {is_now.min_bytes:,} instead of {was.min_bytes:,}; harness sweep proves it on a board"
    )
    return replace(report, offline=is_now, notes=(*report.notes, note))


def _answer(path: Path, chosen: ChosenTarget, questions: Questions, *, alone: bool) -> PlanReport | HarnessError:
    """The report of one model. Its error is the command's when it is the only model."""
    try:
        return answer_questions(path, chosen, questions)
    except HarnessError as error:
        if alone:
            raise
        return error


def answer_questions(path: Path, chosen: ChosenTarget, questions: Questions) -> PlanReport:
    """Read, plan, and answer what was asked."""
    from harness.model.reader import read_model
    from harness.shapes import dynamic_inputs, parse_shapes, with_input_shapes

    model = read_model(path)
    unfit = _unfit(model, chosen) if questions.check else None
    notes = []
    dynamic = dynamic_inputs(model)
    if questions.shapes:
        shapes = parse_shapes(model, questions.shapes)
        model = with_input_shapes(model, shapes)
        notes.append(
            f"planned as if converted with {', '.join(questions.shapes)}: TFLM has no dynamic shapes. This is "
            "the worst case of all smaller inputs"
        )
    elif dynamic:
        notes += [
            f"input {quoted(entry.name, 60)} has open dimensions {list(entry.signature)}: TFLM takes the "
            f"{list(entry.shape)} of the file; --shape plans for others"
            for entry in dynamic
        ]
    planned = plan_arena(model, chosen.target, abi=chosen.abi)
    requests = [placement.request for placement in planned.placements]
    recommendation = _recommend(planned.min_bytes, questions.headroom)
    return PlanReport(
        overview=overview(model, planned),
        recommendation=recommendation,
        comparison=compare(requests, {n: PLANNERS[n] for n in questions.planners}) if questions.planners else None,
        alignments=alignment_costs(requests, greedy) if questions.alignments else (),
        two=two_arenas(planned, chosen.abi) if questions.two_arenas else None,
        memories=chosen.memories,
        fit=_fit(recommendation.size_bytes if recommendation else planned.min_bytes, chosen, questions),
        notes=(*notes, *_preserving_note(model, chosen, planned)),
        unfit=unfit,
    )


def _preserving_note(model: Model, chosen: ChosenTarget, planned: ArenaPlan) -> list[str]:
    """What preserve_all_tensors costs against the plain interpreter."""
    if chosen.target.interpreter is not Interpreter.PRESERVE_ALL:
        return []
    plain = plan_arena(model, replace(chosen.target, interpreter=Interpreter.PLAIN), abi=chosen.abi)
    more = planned.min_bytes - plain.min_bytes
    return [f"without preserve_all_tensors the minimum is {plain.min_bytes:,} bytes: {more:,} less"]


def _unfit(model: Model, chosen: ChosenTarget) -> UnfitModelError | None:
    """What the pre-flight check refuses the model for. Its arena can be planned, but TFLM would not run it rightly."""
    from harness.model.checks import refuse_unfit

    try:
        refuse_unfit(model, chosen.target.kernels.value)
    except UnfitModelError as error:
        return error
    return None


def _recommend(min_bytes: int, headroom: float | None) -> Recommendation | None:
    return None if headroom is None else Recommendation(headroom, align_up(math.ceil(min_bytes * headroom), 16))


def _fit(needed_bytes: int, chosen: ChosenTarget, questions: Questions) -> Fit | None:
    """Against --arena-limit, which stands for one region, or else the board's places."""
    if questions.arena_limit_bytes is not None:
        return fit(needed_bytes, [Place("the limit", questions.arena_limit_bytes)])
    return fit(needed_bytes, chosen.places) if chosen.places else None


@dataclass(frozen=True, slots=True)
class Shared:
    """Several models in one arena: in the order given, and in the best one."""

    arena: SharedArena
    best: SharedArena
    best_order: tuple[int, ...]
    plans: Sequence[ArenaPlan]
    recommendation: Recommendation | None
    fit: Fit | None


def _share(reports: Sequence[PlanReport], chosen: ChosenTarget, questions: Questions) -> Shared:
    plans = [report.plan for report in reports]
    arena = shared_arena(plans)
    given = tuple(range(len(plans)))
    orders = permutations(given) if len(plans) <= ORDERED_MODELS else [given]
    best, order = min(
        ((shared_arena([plans[number] for number in order]), order) for order in orders),
        key=lambda pair: (pair[0].min_exact_bytes, pair[1]),
    )
    recommendation = _recommend(arena.min_bytes, questions.headroom)
    needed = recommendation.size_bytes if recommendation else arena.min_bytes
    return Shared(arena, best, order, plans, recommendation, _fit(needed, chosen, questions))


def _document(
    models: Sequence[Path], answers: Sequence[PlanReport | HarnessError], shared: Shared | None
) -> dict[str, Any]:
    """One model: its plan. Several: a list, where a failed one has an error in place of a plan."""
    if len(answers) == 1 and isinstance(answers[0], PlanReport) and shared is None:
        return answers[0].to_dict()
    rows = [
        answer.to_dict()
        if isinstance(answer, PlanReport)
        else {"model": {"path": str(path)}, "error": error_fields(answer)}
        for path, answer in zip(models, answers, strict=True)
    ]
    document: dict[str, Any] = {"schema": "harness.plan", "schema_version": 1, "plans": rows}
    if shared is not None:
        from harness.report.plan_report import shared_dict

        entry = shared_dict(shared.arena, shared.plans, shared.best_order)
        if shared.recommendation:
            given = shared.recommendation
            entry["recommended"] = {"headroom": given.headroom, "arena_bytes": given.size_bytes}
        if shared.fit:
            entry["fit"] = shared.fit.to_dict()
        document["shared_arena"] = entry
    return document


def _print(models: Sequence[Path], answers: Sequence[PlanReport | HarnessError], shared: Shared | None) -> None:
    from rich.text import Text

    from harness.cli.console import stdout_console
    from harness.report.plan_report import shared_blocks
    from harness.report.plan_tables import print_all

    console = stdout_console()
    for number, (path, answer) in enumerate(zip(models, answers, strict=True)):
        if number:
            console.print()
        if isinstance(answer, PlanReport):
            print_all(console, answer.blocks(console.width))
        else:
            _print_error(path, answer)
    if shared is not None:
        print_all(console, shared_blocks(shared.arena, shared.plans, shared.best, shared.best_order))
        if shared.recommendation:
            given = shared.recommendation
            text = f"with headroom {given.headroom:g}: kTensorArenaSize = {format_size(given.size_bytes)}"
            console.print(Text(text, style="bold"))
        if shared.fit:
            console.print(Text(shared.fit.text, style="bold green" if shared.fit.fits else "bold red"), soft_wrap=True)


def _print_error(path: Path, error: HarnessError) -> None:
    click.echo(f"error: {quoted(str(path))}: {error.message}", err=True)
    if error.remedy:
        click.echo(f"  {error.remedy}", err=True)


def _print_log(reports: Sequence[PlanReport], errors: Sequence[HarnessError]) -> None:
    from harness.report.plan_tables import log_lines

    for report in reports:
        for line in log_lines(report.overview.view):
            click.echo(line)
    for error in errors:
        click.echo(f"error: {error.message}", err=True)
