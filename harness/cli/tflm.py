"""``harness tflm``: which TFLM libraries firmware is linked with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from harness.firmware.library import TflmLibrary


@click.group()
def tflm() -> None:
    """Register and list TFLM libraries (libtensorflow-microlite.a with its headers).

    The harness contains no TFLM: it links what TFLM's own build made. HARNESS_TFLM, folders joined as in PATH, replaces
    the registered ones.
    """


@tflm.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--commit", default="", metavar="SHA", help="TFLM's commit, where the folder does not tell.")
@click.option("--kernels", type=click.Choice(["cmsis_nn", "reference"]), help="Checked against the library's symbols.")
@click.option("--strip-error-strings", is_flag=True, help="It was built with TF_LITE_STRIP_ERROR_STRINGS.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def add(folder: Path, commit: str, kernels: str | None, strip_error_strings: bool, as_json: bool) -> None:
    """Register FOLDER: one with include/ and lib/, or a TFLM checkout after `make microlite`."""
    from harness.errors import UsageError
    from harness.firmware.registry import Registry

    if commit and not _is_commit(commit):
        raise UsageError(f"{commit!r} is no commit", remedy="give the 40 hex digits of TFLM's commit")
    libraries = Registry().add(folder, commit=commit, kernels=kernels or "", strip=strip_error_strings)
    _show(libraries, as_json)


@tflm.command("list")
@click.option("--sizes", is_flag=True, help="Compile the sizes of TFLM's structs too.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def list_(sizes: bool, as_json: bool) -> None:
    """Every library, what its files tell, and what was declared."""
    from harness.firmware.registry import Registry

    _show(Registry().libraries(), as_json, with_sizes=sizes)


@tflm.command()
@click.argument("folder", type=click.Path(path_type=Path))
def remove(folder: Path) -> None:
    """Take FOLDER off the list; its files stay."""
    from harness.errors import UsageError
    from harness.firmware.registry import Registry

    if not Registry().remove(folder):
        raise UsageError(f"{folder} is not registered", remedy="harness tflm list shows what is")


def _is_commit(text: str) -> bool:
    return len(text) == 40 and all(c in "0123456789abcdef" for c in text)


def _show(libraries: list[TflmLibrary], as_json: bool, *, with_sizes: bool = False) -> None:
    rows = [_row(library, with_sizes) for library in libraries]
    if as_json:
        click.echo(json.dumps({"schema": "harness.tflm", "schema_version": 1, "libraries": rows}, indent=2))
        return
    if not rows:
        click.echo("no library is registered: harness tflm add FOLDER")
    for row in rows:
        commit = row["commit"] or "commit not known (declare it: harness tflm add FOLDER --commit SHA)"
        declared = f"; declared: {', '.join(row['declared'])}" if row["declared"] else ""
        click.echo(row["archive"])
        click.echo(f"  {row['arch']}, FPU {row['fpu']}, {row['float_abi']} float ABI, {row['kernels']} kernels")
        click.echo(f"  {commit}{declared}")
        for name, (size, alignment) in row.get("sizes", {}).items():
            click.echo(f"  sizeof({name}) = {size}, alignof {alignment}")


def _row(library: TflmLibrary, with_sizes: bool) -> dict[str, Any]:
    row: dict[str, Any] = {
        "archive": str(library.archive),
        "sha256": library.sha256,
        "arch": library.arch,
        "fpu": library.fpu.value,
        "float_abi": library.float_abi,
        "short_enums": library.short_enums,
        "kernels": library.kernels,
        "compression": library.compression,
        "strip_error_strings": library.strip_error_strings,
        "commit": library.commit,
        "declared": list(library.declared),
    }
    if with_sizes:
        from harness.firmware.struct_sizes import compile_struct_sizes

        row["sizes"] = compile_struct_sizes(library)
    return row
