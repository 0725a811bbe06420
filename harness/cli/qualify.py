"""``harness qualify``: what a board has to show before its numbers are trusted."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from harness.cli.finite import FiniteRange
from harness.errors import ExitCode, UsageError
from harness.units import safe_text

_MARKS = {"passed": "ok", "failed": "FAILED", "not_applicable": "-"}


@click.command()
@click.option("--board", metavar="NAME", help="Board or twin to qualify.")
@click.option("--rig", "rig_name", metavar="NAME", help="Or the rig of lab.yaml.")
@click.option("--boards-dir", "boards_dirs", multiple=True, type=click.Path(path_type=Path), help="Your own boards.")
@click.option("--kernels", type=click.Choice(["reference", "cmsis_nn"]), help="Kernel set (default: the board's).")
@click.option(
    "--link-bytes",
    type=click.IntRange(1),
    default=1_000_000,
    show_default=True,
    help="Bytes that go over the link and back.",
)
@click.option("--timeout", type=FiniteRange(min=0.1), default=600.0, show_default=True, help="Seconds per model.")
@click.option("--no-save", is_flag=True, help="Do not keep a firmware that is not ours before it is overwritten.")
@click.option(
    "--results", type=click.Path(path_type=Path), default=Path("results"), show_default=True, help="For the record."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def qualify(rig_name: str | None, board: str | None, as_json: bool, **options: Any) -> int:
    """Check a board before it is trusted: chip, flash, link, counter, faults, watchdog, stack, known models.

    Leaves a record in RESULTS/evidence/ that raises what `harness boards --show` says of the board.
    """
    import msgspec

    from harness.cli.progress import TerminalProgress
    from harness.qualify.flow import qualify as run
    from harness.qualify.record import write_qualification
    from harness.record.store import kept_in

    request = _request(board, rig_name, options)
    progress = TerminalProgress(1)
    with kept_in(options["results"]), progress.begin(1, request.board):
        record = run(request, progress, rig=rig_name or "", link_bytes=options["link_bytes"])
    path = write_qualification(record, options["results"])
    if as_json:
        sys.stdout.write(msgspec.json.encode(record).decode() + "\n")
    else:
        _print(record, path)
    return int(ExitCode.DONE if record.qualified else ExitCode.RESULT_BAD)


def _request(board: str | None, rig_name: str | None, options: dict[str, Any]) -> Any:
    from harness.board.catalogue import load_board
    from harness.board.lab_file import find_lab
    from harness.rig.opening import rig_for
    from harness.sweep.request import SweepRequest

    if board is None and rig_name is None:
        raise UsageError("which board?", remedy="name it with --board, or its rig in lab.yaml with --rig")
    if board is None:
        lab = find_lab(boards_dirs=options["boards_dirs"])
        if lab is None:
            raise UsageError(
                f"there is no lab.yaml that could have a rig {safe_text(str(rig_name))}",
                remedy="harness lab discover proposes one; or name a board with --board",
                code="lab.missing",
            )
        board = lab.rig(str(rig_name)).board
    loaded = load_board(board, options["boards_dirs"])
    return SweepRequest(
        Path(),
        board,
        boards_dirs=options["boards_dirs"],
        kernels=options["kernels"],
        timeout_s=options["timeout"],
        reference=False,
        results=options["results"],
        rig=rig_for(loaded, rig_name) if rig_name else None,
        save_foreign=not options["no_save"],
    )


def _print(record: Any, path: Path) -> None:
    from rich.table import Table
    from rich.text import Text

    from harness.cli.console import stdout_console

    table = Table(box=None, padding=(0, 2), pad_edge=True, show_header=False)
    for check in record.checks:
        table.add_row(_MARKS[check.status], check.name, Text(safe_text(check.detail, 300)))
    console = stdout_console()
    console.print(table)
    verdict = f"qualified: evidence {record.evidence}" if record.qualified else "NOT qualified"
    console.print(Text(f"{record.board}: {verdict} ({record.seconds:.0f} s)"), soft_wrap=True)
    console.print(Text(f"record: {path.as_posix()}"), soft_wrap=True)
