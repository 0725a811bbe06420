"""``harness sweep``: the smallest arena that works, for each model on one board."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from harness.cli.finite import FiniteRange
from harness.cli.model_runs import no_reuse_option, requests_of, run_models, run_options


@click.command()
@click.argument("models", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--step",
    "step_bytes",
    type=click.IntRange(1),
    default=16,
    show_default=True,
    help="Find the minimum to this many bytes.",
)
@click.option("--runs", type=click.IntRange(0, 1_000_000), help="Timed runs (default: 10 on a chip, 0 on the host).")
@click.option("--certify", is_flag=True, help="Prove the minimum in two firmwares with a constant arena.")
@no_reuse_option
@click.option(
    "--strategy",
    type=click.Choice(["guided", "reflash"]),
    default="guided",
    show_default=True,
    help="reflash builds and flashes for every size: to compare with.",
)
@click.option(
    "--headroom",
    type=FiniteRange(1.0, 100.0),
    default=1.1,
    show_default=True,
    help="Recommend an arena of the minimum × this factor.",
)
@click.option("--shared-arena", is_flag=True, help="All the models in one arena, one running at a time.")
@click.option("--fresh", is_flag=True, help="Do not go on from an interrupted run.")
@run_options
def sweep(models: tuple[Path, ...], as_json: bool, **options: Any) -> int:
    """Find the smallest tensor arena with which each model works on a board.

    AllocateTensors and Invoke must succeed, and the outputs must be those of a run with an ample arena. With
    --shared-arena the models are set up in the order given, by one allocator, and the arena is that of all of them.
    """
    from harness.sweep.flow import sweep_model

    return run_models(requests_of(models, options), sweep_model, as_json, "a minimum")
