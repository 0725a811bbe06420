"""``harness boards``: the board types that ``--board`` takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from harness.board.catalogue import board_schema, list_boards, load_board
from harness.board.record import Board, Evidence, HardwareBoard, Memory
from harness.errors import UsageError
from harness.units import format_size


@click.command()
@click.option("--show", metavar="NAME", help="Everything known about one board, with the sources of the numbers.")
@click.option("--schema", is_flag=True, help="Print the JSON schema of a board file, for editors.")
@click.option(
    "--boards-dir",
    "folders",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A folder with board files of your own; may be given several times.",
)
@click.option(
    "--results",
    type=click.Path(path_type=Path),
    default=Path("results"),
    show_default=True,
    help="Where the records of harness qualify lie; they raise the evidence.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def boards(show: str | None, schema: bool, folders: tuple[Path, ...], results: Path, as_json: bool) -> None:
    """List the boards: the host, hardware, and the emulated twins (sim:…).

    `evidence` says what a board's path was proven on: nothing yet, its twin, or silicon.
    """
    if schema and show:
        raise UsageError("--schema and --show exclude each other", remedy="ask for one of them")
    if schema:
        click.echo(json.dumps(board_schema(), indent=2))
    elif show is not None:
        from harness.qualify.record import evidence_for

        board = load_board(show, folders)
        document: dict[str, Any] = {"schema": "harness.board", "schema_version": 1, "board": _values(board)}
        evidence, source = evidence_for(board, results)
        document["evidence"] = {"label": evidence.value, "record": source.as_posix() if source else None}
        click.echo(json.dumps(document, indent=2)) if as_json else _print_board(board, evidence, source)
    else:
        found = list_boards(folders)
        click.echo(json.dumps(_list_document(found), indent=2)) if as_json else _print_list(found)


def _list_document(found: list[Board]) -> dict[str, Any]:
    rows = [
        {"name": board.name, "core": board.core, "kind": board.kind, "title": board.title}
        | {"evidence": board.evidence.value}
        for board in found
    ]
    return {"schema": "harness.boards", "schema_version": 1, "boards": rows}


def _values(board: Board) -> Any:
    import msgspec

    return msgspec.to_builtins(board)


def _print_list(found: list[Board]) -> None:
    from rich.table import Table
    from rich.text import Text

    from harness.cli.console import stdout_console

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("board", "core", "kind", "evidence", "title"):
        table.add_column(column, overflow="fold")
    for board in found:
        cells = (board.name, board.core, board.kind, board.evidence.value, board.title)
        table.add_row(*(Text(cell) for cell in cells))
    stdout_console().print(table)


def _print_board(board: Board, evidence: Evidence, source: Path | None) -> None:
    from rich.text import Text

    from harness.cli.console import stdout_console

    console = stdout_console()
    console.print(Text(f"{board.title} ({board.name})", style="bold"))
    lines = [("core", board.core), ("kind", board.kind), ("evidence", _evidence(evidence, source))]
    if isinstance(board, HardwareBoard):
        lines += _hardware_lines(board)
    lines += [("notes", board.notes)] if board.notes else []
    for key, text in lines:
        console.print(Text(f"  {key:<10} {text}"), soft_wrap=True)


def _evidence(evidence: Evidence, source: Path | None) -> str:
    return f"{evidence.value}, by {source.as_posix()}" if source else evidence.value


def _hardware_lines(board: HardwareBoard) -> list[tuple[str, str]]:
    clock, uart = board.clock, board.uart
    return [
        ("chip", f"{board.chip}, FPU {board.fpu.value}"),
        ("TFLM", f"library for {' or '.join(board.tflm_archs)}"),
        *((memory.name, _memory_text(memory)) for memory in board.memories),
        ("clock", f"{clock.core_hz / 1e6:g} MHz from {clock.input} {clock.input_hz / 1e6:g} MHz, {clock.source}"),
        ("uart", f"{uart.instance}, {uart.baud} baud (up to {uart.max_baud}), {uart.source}"),
        ("id code", f"0x{board.id_code.value:x} at 0x{board.id_code.address:08x}, {board.id_code.source}"),
        ("pyOCD", f"target {board.pyocd.target}, {board.pyocd.source}"),
        ("arena in", ", else ".join(board.layout.arena)),
    ]


def _memory_text(memory: Memory) -> str:
    traits = [name for name, has in (("cached", memory.cached), ("no DMA", not memory.dma)) if has]
    return ", ".join(
        [f"{memory.kind} at 0x{memory.address:08x}", format_size(memory.size_bytes), *traits, memory.source]
    )
