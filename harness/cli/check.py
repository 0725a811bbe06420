"""``harness check``: what TFLM would refuse or run wrongly, before anything is built."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from harness.errors import ExitCode, ModelFileError, UsageError
from harness.model.checks import check_model
from harness.model.finding import Finding, Severity, Verdict, verdict_of
from harness.model.graph import Model
from harness.model.reader import read_model
from harness.model.support import KERNEL_SETS, REFERENCE
from harness.units import safe_text

_STYLES = {Severity.REFUSED: "red", Severity.WARNING: "yellow", Severity.INFO: "dim"}
_VERDICT_STYLES = {Verdict.REFUSED: "bold red", Verdict.WARNINGS: "yellow", Verdict.OK: "green"}


@dataclass(frozen=True, slots=True)
class Checked:
    """One file and what was found; ``model`` is None where it could not be read."""

    path: str
    findings: tuple[Finding, ...]
    exit_code: ExitCode
    model: Model | None

    @property
    def verdict(self) -> Verdict:
        return verdict_of(self.findings)


@click.command()
@click.argument("models", nargs=-1, required=True, type=click.Path(), metavar="MODEL…")
@click.option(
    "--kernels",
    type=click.Choice(KERNEL_SETS),
    default=REFERENCE,
    show_default=True,
    help="The kernel set that the model is to run on.",
)
@click.option(
    "--realign",
    "aligned",
    type=click.Path(path_type=Path),
    metavar="OUT",
    help="Write a copy of the one MODEL with its constants on 16 bytes; it computes the same.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def check(models: tuple[str, ...], kernels: str, aligned: Path | None, as_json: bool) -> int:
    """Check models against what TFLM can run.

    TFLM itself checks little: a model that it would run wrongly without an error is refused here. Ends with 1 when a
    model is refused, with 2 when a file is no readable model, with 0 otherwise. docs/checks.md explains each code.
    """
    if aligned is not None and len(models) != 1:
        raise UsageError(f"--realign takes one model, not {len(models)}", remedy="run it once for each model")
    checked = [_check(path, kernels) for path in models]
    copied = _write_aligned(checked[0].model, aligned) if aligned is not None else None
    if as_json:
        click.echo(json.dumps(_document(checked, copied), indent=2))
    else:
        _print(checked, copied)
    return max(entry.exit_code for entry in checked)


def _check(path: str, kernels: str) -> Checked:
    try:
        model = read_model(path, lenient=True)
    except ModelFileError as error:
        unreadable = Finding(error.code, Severity.REFUSED, "file", error.message, error.remedy)
        return Checked(path, (unreadable,), error.exit_code, None)
    findings = check_model(model, kernels)
    refused = verdict_of(findings) is Verdict.REFUSED
    return Checked(path, findings, ExitCode.RESULT_BAD if refused else ExitCode.DONE, model)


def _write_aligned(model: Model | None, path: Path) -> Path | None:
    if model is None:
        return None
    from harness.model.realign import realign
    from harness.record.text_file import write_whole

    if path.exists() and path.samefile(model.path):
        raise UsageError("--realign would overwrite the model", remedy="name another file")
    data = realign(model)
    write_whole(path, data)
    return path


def _document(checked: list[Checked], copied: Path | None) -> dict[str, Any]:
    files = [
        {
            "path": entry.path,
            "verdict": entry.verdict.value,
            "findings": [
                {
                    "code": finding.code,
                    "severity": finding.severity.value,
                    "where": finding.where,
                    "message": finding.message,
                    "remedy": finding.remedy,
                }
                for finding in entry.findings
            ],
        }
        for entry in checked
    ]
    document: dict[str, Any] = {"schema": "harness.check", "schema_version": 1, "files": files}
    return document | ({"realigned": str(copied)} if copied else {})


def _print(checked: list[Checked], copied: Path | None) -> None:
    from rich.text import Text

    from harness.cli.console import stdout_console

    console = stdout_console()
    for entry in checked:
        style = _VERDICT_STYLES[entry.verdict]
        head = Text.assemble((safe_text(entry.path), "bold"), ": ", (entry.verdict.value, style), _counts(entry))
        console.print(head, soft_wrap=True)
        for finding in entry.findings:
            severity = (f"  {finding.severity.value:<8}", _STYLES[finding.severity])
            console.print(Text.assemble(severity, f"{finding.code}  {finding.where}"), soft_wrap=True)
            console.print(Text(f"            {finding.message}"), soft_wrap=True)
            if finding.remedy:
                console.print(Text(f"            → {finding.remedy}", style="dim"), soft_wrap=True)
    if copied:
        console.print(Text(f"wrote {safe_text(str(copied))}"), soft_wrap=True)


def _counts(entry: Checked) -> str:
    counts = {severity: sum(finding.severity is severity for finding in entry.findings) for severity in Severity}
    words = [f"{count} {severity.value}" for severity, count in reversed(counts.items()) if count]
    return f" ({', '.join(words)})" if words else ""
