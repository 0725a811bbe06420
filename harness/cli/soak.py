"""``harness soak``: a model run very often on one board; the first thing that changes ends it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import click

from harness.cli.finite import FiniteRange
from harness.cli.model_runs import request_of, run_models, run_options
from harness.errors import UsageError

#: When neither runs nor minutes are named.
_DEFAULT_RUNS = 10_000


@click.command()
@click.argument("models", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--runs", "soak_runs", type=click.IntRange(1, 1_000_000_000), help="How often to run (default: 10,000).")
@click.option("--minutes", type=FiniteRange(min=0.01), help="Or how long.")
@click.option("--arena-bytes", type=click.IntRange(16), help="Size of the arena (default: the planned minimum).")
@click.option(
    "--spread",
    type=FiniteRange(min=0.0),
    default=1.0,
    show_default=True,
    help="Percent that the slowest run may be above the fastest; not judged on the host board.",
)
@click.option("--fresh", is_flag=True, help="Do not go on from an interrupted soak.")
@run_options
def soak(
    models: tuple[Path, ...],
    soak_runs: int | None,
    minutes: float | None,
    spread: float,
    as_json: bool,
    **options: Any,
) -> int:
    """Run models very often on a board, over fresh boots.

    Outputs, used bytes, counts, stack and the bytes around the arena must stay as they were. --timeout bounds what
    comes before the first run, --trial-timeout each boot and each 64 runs.
    """
    from harness.sweep.flow import soak_model
    from harness.sweep.request import SoakSpec

    if soak_runs is not None and minutes is not None:
        raise UsageError("--runs and --minutes exclude each other", remedy="give one of them")
    runs = None if minutes is not None else soak_runs or _DEFAULT_RUNS
    spec = SoakSpec(runs, minutes or 0.0, spread)
    requests = [
        dataclasses.replace(request_of(path, options, number, len(models)), soak=spec)
        for number, path in enumerate(models, start=1)
    ]
    return run_models(requests, soak_model, as_json, "stayed constant")
