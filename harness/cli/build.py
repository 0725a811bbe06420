"""``harness build``: a checked firmware image for a board."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.units import format_bytes, format_size, parse_size, safe_text

if TYPE_CHECKING:
    from harness.firmware.image import FirmwareImage
    from harness.firmware.library import TflmLibrary


def _size(_ctx: click.Context, _param: click.Parameter, value: str | None) -> int | None:
    return None if value is None else parse_size(value)


@click.command()
@click.argument("model_path", metavar="MODEL", type=click.Path(path_type=Path))
@click.option("--board", "board_name", required=True, metavar="NAME", help="A board: harness boards lists them.")
@click.option("--arena-capacity", callback=_size, metavar="SIZE", help="Arena in the image; default: what fits.")
@click.option("--static-arena", callback=_size, metavar="SIZE", help="Fix the arena's size at compile time.")
@click.option("--arena-region", default="", metavar="NAME", help="Memory for the arena: dtcm, sram1, sram1+sram2, …")
@click.option("--kernels", type=click.Choice(["cmsis_nn", "reference"]), default="cmsis_nn", show_default=True)
@click.option(
    "--interpreter", type=click.Choice(["plain", "recording", "preserve_all"]), default="plain", show_default=True
)
@click.option("--transport", type=click.Choice(["uart", "rtt"]), default="uart", show_default=True)
@click.option(
    "--optimise",
    type=click.Choice(["Os", "O2", "O3"]),
    default="Os",
    show_default=True,
    help="For the harness's own sources; TFLM comes compiled.",
)
@click.option("--stack", "stack_bytes", callback=_size, metavar="SIZE", help="Stack; default: the board file's, 8 KiB.")
@click.option("--watchdog", "watchdog_s", type=click.IntRange(1, 3600), default=120, show_default=True, metavar="S")
@click.option(
    "--input",
    "input_paths",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE.npy",
    help="Bake an input into the image; once per model input, in order.",
)
@click.option(
    "--tflm", "tflm_dir", type=click.Path(path_type=Path), metavar="DIR", help="This library, registered or not."
)
@click.option("--no-check", is_flag=True, help="Build even what harness check refuses.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Default: build/BOARD/MODEL.")
@click.option("--boards-dir", "folders", multiple=True, type=click.Path(path_type=Path), help="Your own board files.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def build(
    model_path: Path,
    board_name: str,
    arena_capacity: int | None,
    static_arena: int | None,
    arena_region: str,
    kernels: str,
    interpreter: str,
    transport: str,
    optimise: str,
    stack_bytes: int | None,
    watchdog_s: int,
    input_paths: tuple[Path, ...],
    tflm_dir: Path | None,
    no_check: bool,
    out: Path | None,
    folders: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Render, compile, link and check the measuring firmware for MODEL on a board."""
    from harness.board.catalogue import load_hardware_board
    from harness.errors import UsageError
    from harness.firmware.build import build_firmware
    from harness.firmware.config import FirmwareConfig, Interpreter, Transport
    from harness.firmware.layout import default_capacity_bytes
    from harness.firmware.library import choose_library
    from harness.model.checks import refuse_unfit
    from harness.model.reader import read_model
    from harness.record.store import kept_in

    if arena_capacity is not None and static_arena is not None:
        raise UsageError("--arena-capacity and --static-arena exclude each other", remedy="name one of them")
    board = load_hardware_board(board_name, folders)
    model = read_model(model_path)
    if not no_check:
        refuse_unfit(model, kernels)
    library = choose_library(_libraries(tflm_dir), board, kernels)
    config = FirmwareConfig(
        capacity_bytes=16,
        static_arena=static_arena is not None,
        arena_region=arena_region,
        interpreter=Interpreter(interpreter),
        transport=Transport(transport),
        optimise=f"-{optimise}",
        stack_bytes=stack_bytes,
        watchdog_s=watchdog_s,
        inputs=tuple(_load_input(path) for path in input_paths),
    )
    capacity = static_arena or arena_capacity or default_capacity_bytes(board, config)
    folder = out or Path("build") / board.name.replace(":", "-") / _folder_name(model_path)
    with kept_in(folder, "--out"):
        image = build_firmware(model, board, library, _with_capacity(config, capacity), folder)
    click.echo(json.dumps(image_document(image), indent=2)) if as_json else _print(image)


def _with_capacity(config: Any, capacity: int) -> Any:
    import dataclasses

    return dataclasses.replace(config, capacity_bytes=capacity)


def _libraries(folder: Path | None) -> list[TflmLibrary]:
    from harness.firmware.library import inspect_tree
    from harness.firmware.registry import Registry

    return Registry().libraries() if folder is None else inspect_tree(folder)


def _folder_name(model_path: Path) -> str:
    """The model's name as a folder: what is no plain letter becomes ``_``."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in model_path.stem)[:80] or "model"


def _load_input(path: Path) -> bytes:
    import numpy as np

    from harness.errors import UsageError

    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError, OverflowError, MemoryError) as exc:
        raise UsageError(f"cannot read {path}: {exc}", remedy="name a .npy file that holds one array") from exc
    if not isinstance(array, np.ndarray):
        raise UsageError(f"{path} holds several arrays", remedy="name a .npy file that holds one array")
    data: bytes = np.ascontiguousarray(array).tobytes()
    return data


def image_document(image: FirmwareImage) -> dict[str, Any]:
    """The JSON document of a build; integers are bytes or addresses."""
    return {
        "schema": "harness.build",
        "schema_version": 1,
        "elf": str(image.elf_path),
        "build_id": image.build_id,
        "board": image.board,
        "model": {"path": image.model_path, "sha256": image.model_sha256},
        "tflm": {"commit": image.tflm_commit, "library": image.tflm_library, "kernels": image.kernels},
        "interpreter": image.interpreter,
        "compiler": image.compiler,
        "optimise": image.optimise,
        "arena": {
            "capacity_bytes": image.capacity_bytes,
            "static": image.static_arena,
            "region": image.arena_region,
            "address": image.arena_address,
            "largest_bytes": image.largest_arena_bytes,
        },
        "stack_bytes": image.stack_bytes,
        "flash_bytes": image.flash_bytes,
        "ram_bytes": image.ram_bytes,
        "sections": dict(image.sections),
        "owners": {
            name: {"text": o.text, "rodata": o.rodata, "data": o.data, "bss": o.bss} for name, o in image.owners.items()
        },
        "operator_kernels": dict(image.operator_kernels),
        "notes": list(image.notes),
    }


def _print(image: FirmwareImage) -> None:
    from rich.table import Table
    from rich.text import Text

    from harness.cli.console import stdout_console

    console = stdout_console()
    console.print(Text(str(image.elf_path), style="bold"))
    place = f"{image.arena_region} at 0x{image.arena_address:08x}"
    console.print(Text(f"arena {format_size(image.capacity_bytes)} in {place}; build {image.build_id}"))
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("owner")
    for column in ("text", "rodata", "data", "bss", "flash", "RAM"):
        table.add_column(column, justify="right", no_wrap=True)
    for name, o in image.owners.items():
        numbers = (o.text, o.rodata, o.data, o.bss, o.flash_bytes, o.ram_bytes)
        table.add_row(Text(name), *(format_bytes(number) for number in numbers))
    table.add_row(Text("stack"), "", "", "", format_bytes(image.stack_bytes), "", format_bytes(image.stack_bytes))
    table.add_row(
        Text("together"), "", "", "", "", format_bytes(image.flash_bytes), format_bytes(image.ram_bytes), style="bold"
    )
    console.print(table)
    by_kernel = {kernel: [] for kernel in ("cmsis_nn", "reference")}  # type: dict[str, list[str]]
    for operator, kernel in image.operator_kernels.items():
        by_kernel[kernel].append(safe_text(operator, 60))
    for kernel, operators in by_kernel.items():
        if operators:
            console.print(Text(f"{kernel} kernels: {', '.join(operators)}"), soft_wrap=True)
    for note in image.notes:
        console.print(Text(f"note: {note}"), soft_wrap=True)
