"""``harness flash``: put a firmware on a board, prove that it is there, and what was there before back again."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.finite import FiniteRange
from harness.units import quoted, safe_text

if TYPE_CHECKING:
    from harness.board.record import HardwareBoard
    from harness.sweep.flashing import FlashOutcome

_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("source", metavar="[MODEL|ELF]", required=False, type=_PATH)
@click.option("--board", "board_name", required=True, metavar="NAME", help="Board or twin to flash.")
@click.option("--rig", "rig_name", metavar="NAME", help="Which rig of lab.yaml has the board.")
@click.option("--boards-dir", "boards_dirs", multiple=True, type=_PATH, help="Your own boards.")
@click.option("--kernels", type=click.Choice(["reference", "cmsis_nn"]), help="Kernel set for a MODEL.")
@click.option("--force-flash", is_flag=True, help="Program every sector, even where the image is already there.")
@click.option("--no-save", is_flag=True, help="Do not keep a firmware that is not ours before overwriting it.")
@click.option("--restore", type=_PATH, metavar="FILE", help="Put back a firmware from results/saved-firmware.")
@click.option("--erase-protected", is_flag=True, help="Erase a read-out protected nRF whole, to open it.")
@click.option("--yes", is_flag=True, help="Do not ask before erasing a protected chip.")
@click.option("--sim-fault", "faults", multiple=True, metavar="NAME[=N]", help="For a twin: a defect to put into it.")
@click.option("--pace", is_flag=True, help="For a twin: take the time that a real board would.")
@click.option("--timeout", type=FiniteRange(min=1), default=300.0, show_default=True, help="Seconds on the rig.")
@click.option("--results", type=_PATH, default=Path("results"), show_default=True, help="Where firmware is kept.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def flash(source: Path | None, board_name: str, as_json: bool, restore: Path | None, **options: Any) -> None:
    """Flash a model's firmware or an ELF, read it back and compare it whole, reset, and hear what runs.

    An ELF of harness build is asked for its build id, as a model's firmware is; another program is not asked.
    """
    from harness.board.catalogue import load_hardware_board
    from harness.cli.rig_choice import chosen_rig
    from harness.errors import UsageError
    from harness.record.store import kept_in
    from harness.sweep import flashing

    if source is not None and restore is not None:
        raise UsageError(
            f"both were given: {quoted(str(source))} and --restore {quoted(str(restore))}",
            remedy="leave one of them away",
        )
    if source is None and restore is None and not options["erase_protected"]:
        raise UsageError("name a model or an ELF, or --restore FILE", remedy="see harness flash --help")
    board = load_hardware_board(board_name, options["boards_dirs"])
    request = flashing.FlashRequest(
        board=board,
        rig=chosen_rig(board_name, options),
        source=source,
        restore=restore,
        kernels=options["kernels"],
        force=options["force_flash"],
        save=not options["no_save"],
        erase_protected=options["erase_protected"] and _confirmed(board, options["yes"]),
        results=options["results"],
        timeout_s=options["timeout"],
    )
    with kept_in(options["results"]):
        outcome = flashing.flash(request, tell=lambda text: print(safe_text(text), file=sys.stderr))
    if as_json:
        print(json.dumps(_document(board, outcome), indent=1))
    else:
        _print(board, outcome)


def _confirmed(board: HardwareBoard, yes: bool) -> bool:
    """A typed confirmation; without a terminal only ``--yes`` counts."""
    from harness.errors import UsageError

    if yes:
        return True
    if not sys.stdin.isatty():
        raise UsageError("erasing a protected chip needs a confirmation", remedy="add --yes, or run it in a terminal")
    print(
        f"This erases everything on the {board.chip}: program, data, settings. Nothing can be saved.", file=sys.stderr
    )
    if click.prompt("Type the board's name to go on", err=True) != board.name:
        raise UsageError("not confirmed: nothing was erased", remedy=f"type {board.name}")
    return True


def _document(board: HardwareBoard, outcome: FlashOutcome) -> dict[str, Any]:
    return {
        "schema": "harness.flash",
        "schema_version": 1,
        "board": board.name,
        "connected": list(outcome.connected),
        "erased": outcome.erased,
        "programmed": outcome.programmed,
        "second_try": outcome.second_try,
        "verified_bytes": outcome.verified_bytes,
        "saved": outcome.saved.as_posix() if outcome.saved else None,
        "build_id": outcome.build_id or None,
        "running_build_id": outcome.running_build_id or None,
        "not_asked": outcome.not_asked or None,
        "seconds": round(outcome.seconds, 3),
    }


def _print(board: HardwareBoard, outcome: FlashOutcome) -> None:
    if outcome.saved:
        print(f"what was on the board is kept in {outcome.saved}; harness flash --restore puts it back")
    if outcome.verified_bytes:
        verb = "programmed" if outcome.programmed else "already there"
        again = ", at the second try" if outcome.second_try else ""
        print(f"{board.name}: {outcome.verified_bytes:,} bytes {verb}{again}, read back and equal")
    if outcome.running_build_id:
        print(f"it runs build {safe_text(outcome.running_build_id)}")
    if outcome.not_asked:
        print(f"not asked what runs: {outcome.not_asked}")
    print(f"({'; '.join((*outcome.connected, f'{outcome.seconds:.1f} s'))})")
