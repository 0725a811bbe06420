"""``harness doctor``: what is installed and plugged in, and what is missing for what."""

from __future__ import annotations

import json
from typing import Any

import click

from harness import __version__
from harness.environment.part import Kind, Part, Status, capability_gaps
from harness.environment.survey import survey
from harness.errors import ExitCode
from harness.units import safe_text

_MARKS = {Status.OK: "ok", Status.MISSING: "missing", Status.WRONG: "wrong", Status.UNAVAILABLE: "not here"}
_STYLES = {Status.OK: "green", Status.MISSING: "yellow", Status.WRONG: "red", Status.UNAVAILABLE: "dim"}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def doctor(as_json: bool) -> int:
    """Say what is installed and plugged in, and what is missing for what.

    Ends with 3 when something required is missing or of a wrong version; what only some capabilities need
    (cross compiler, pyOCD, twins) is named, but does not fail.
    """
    parts = survey()
    if as_json:
        click.echo(json.dumps(_document(parts), indent=2))
    else:
        _print(parts)
    return ExitCode.ENVIRONMENT if any(part.is_fatal for part in parts) else ExitCode.DONE


def _document(parts: list[Part]) -> dict[str, Any]:
    return {
        "schema": "harness.doctor",
        "schema_version": 1,
        "version": __version__,
        "ok": not any(part.is_fatal for part in parts),
        "capabilities": [
            {"name": name, "available": not missing, "missing": missing}
            for name, missing in capability_gaps(parts).items()
        ],
        "parts": [
            {
                "kind": part.kind.value,
                "name": part.name,
                "status": part.status.value,
                "version": part.version or None,
                "needed_for": part.needed_for or None,
                "required": part.required,
                "detail": part.detail,
                "remedy": part.remedy,
            }
            for part in parts
        ],
    }


def _print(parts: list[Part]) -> None:
    from rich.table import Table
    from rich.text import Text

    from harness.cli.console import stdout_console

    console = stdout_console()
    console.print(f"harness {__version__}")
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("", "part", "version", "for", "detail"):
        table.add_column(column, overflow="fold")
    for part in parts:
        mark = Text(_MARKS[part.status], style="red" if part.is_fatal else _STYLES[part.status])
        cells = (part.name, part.version, part.needed_for, part.detail)
        table.add_row(mark, *(Text(safe_text(cell)) for cell in cells))
    console.print(table)
    for kind, text in ((Kind.PORT, "no serial port on USB"), (Kind.PROBE, "no debug probe")):
        if not any(part.kind is kind for part in parts):
            console.print(text + " is plugged in")
    console.print()
    for name, missing in capability_gaps(parts).items():
        answer = "yes" if not missing else f"no, for want of {', '.join(missing)}"
        console.print(Text(f"{name}: {answer}"), soft_wrap=True)
    remedies = [(part.name, part.remedy) for part in parts if part.status is not Status.OK and part.remedy]
    if remedies:
        console.print("\nWhat to do", style="bold")
    for name, remedy in remedies:
        console.print(Text(f"  {safe_text(name)}: {remedy}"), soft_wrap=True)
