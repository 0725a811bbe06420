"""``harness measure``: how long models take on one board, without a search for the smallest arena."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from harness.cli.model_runs import no_reuse_option, requests_of, run_models, run_options


@click.command()
@click.argument("models", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--runs", type=click.IntRange(1, 1_000_000), default=100, show_default=True, help="Timed runs.")
@click.option("--arena-bytes", type=click.IntRange(16), help="Measure in an arena of this size too.")
@no_reuse_option
@run_options
def measure(models: tuple[Path, ...], as_json: bool, **options: Any) -> int:
    """Time models on a board: runs, operators, stack, and the clock they were measured with."""
    from harness.sweep.flow import measure_model

    return run_models(requests_of(models, options), measure_model, as_json, "times")
