"""A sweep for a person: the three numbers side by side, where the bytes are, and what to write into the program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from harness.record.schema import NoReuseRecord, ReferenceRecord, SweepRecord, TrialRecord
from harness.report.arena_snippet import arena_snippet
from harness.report.soak_table import soak_lines
from harness.report.tflm_words import meaning_of
from harness.report.timing_table import certificate_line, timing_report
from harness.units import counted, format_bytes, format_size, safe_lines, safe_text, short_commit

#: How an agreement of the reconciliation is put.
_AGREEMENT = {
    "equal": "equal",
    "explained": "explained",
    "unexplained": "UNEXPLAINED",
    "not_measured": "not measured",
}


def sweep_report(record: SweepRecord) -> Iterator[RenderableType]:
    """What to print for one model, in order."""
    yield Text(_title(record), style="bold")
    if record.error:
        first, *more = safe_lines(record.error.message)
        yield Text(f"  {record.status}: {first} [{record.error.code}]", style="red")
        for line in more:
            yield Text(f"  {line}", style="red")
        if record.error.remedy:
            yield Text(f"  {safe_text(record.error.remedy, 300)}")
    if record.reconciliation:
        yield terms_table(record.reconciliation)
    if record.timing:
        yield from timing_report(record.timing, record.environment)
    yield from (Text("  " + line) for line in _lines(record))


def _title(record: SweepRecord) -> str:
    build = ", ".join(part for part in (f"{record.kernels} kernels" if record.kernels else "", _tflm(record)) if part)
    return f"{safe_text(record.model.path)} on {safe_text(record.board)}" + (f" ({build})" if build else "")


def _tflm(record: SweepRecord) -> str:
    return f"TFLM {short_commit(record.device.tflm_commit)}, {record.device.interpreter}" if record.device else ""


def terms_table(reconciliation: Mapping[str, Any]) -> Table:
    """The ``reconciliation`` of a record, term by term."""
    table = Table(box=None, padding=(0, 2), pad_edge=True)
    table.add_column("bytes")
    for name in ("planned", "measured", "difference"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    for term in reconciliation["terms"]:
        measured, difference = term["measured_bytes"], term["difference_bytes"]
        table.add_row(
            Text(safe_text(term["name"])),
            format_bytes(term["planned_bytes"]),
            "-" if measured is None else format_bytes(measured),
            "-" if difference is None else f"{difference:+,}" if difference else "0",
            Text(_note(term)),
        )
    return table


def _note(term: dict[str, object]) -> str:
    text = _AGREEMENT.get(str(term["agreement"]), str(term["agreement"]))
    return f"{text}: {safe_text(str(term['explanation']))}" if term["explanation"] else text


def _lines(record: SweepRecord) -> Iterator[str]:
    yield from _minimum_lines(record)
    if record.certificate:
        yield certificate_line(record.certificate)
    if record.no_reuse:
        yield _no_reuse_line(record.no_reuse)
    if record.soak:
        yield from soak_lines(record.soak)
    if record.reference:
        yield from _reference_lines(record)
    for warning in record.warnings:
        yield f"warning: {safe_text(warning)}"
    if record.record_path:
        yield f"record: {safe_text(record.record_path, 4096)}"


def _minimum_lines(record: SweepRecord) -> Iterator[str]:
    search = record.search
    if search is None or not search.trials:
        return
    count = len(search.trials)
    resumed = f", {search.resumed_trials} of them from an earlier run" if search.resumed_trials else ""
    flashes = counted(search.flashes, "flash", "flashes")
    done = f"{counted(count, 'trial')}{resumed}, {flashes}, {record.seconds:.1f} s"
    if search.min_bytes is None:
        yield f"no minimum: {done}"
        return
    yield f"minimum that works: {format_size(search.min_bytes)}, found to {search.step_bytes} B ({done})"
    failing = next((t for t in search.trials if t.arena_bytes == search.largest_failing_bytes), None)
    if failing is not None:
        yield f"fails at {format_bytes(failing.arena_bytes)} B: {_why(failing)}"
        meaning = meaning_of(failing.detail)
        if meaning:
            yield f"  that is: {meaning}"
    yield from arena_snippet(record)


def _why(trial: TrialRecord) -> str:
    return f"{trial.reason}" + (f" ({safe_text(trial.detail)})" if trial.detail else "")


def _no_reuse_line(compared: NoReuseRecord) -> str:
    count = counted(compared.vectors, "inference")
    flashes = counted(compared.flashes, "flash", "flashes")
    without_plan = ", and without the model's offline plan" if compared.offline_plan_removed else ""
    if compared.verdict == "not_run":
        return f"not compared with a run without reuse of memory: {safe_text(compared.detail, 500)}"
    arena = format_size(compared.arena_bytes or 0)
    how = f"{count} with preserve_all_tensors in {arena}{without_plan}; {flashes}"
    if compared.verdict == "equal":
        return f"without reuse of memory the outputs are the same ({how})"
    return f"WITHOUT REUSE OF MEMORY THE OUTPUTS ARE OTHERS ({how})"


def _reference_lines(record: SweepRecord) -> Iterator[str]:
    reference = record.reference
    assert reference is not None
    yield _reference_line(reference)
    for other in reference.others:
        yield _reference_line(other)


def _reference_line(reference: ReferenceRecord) -> str:
    refused = f"; LiteRT does not run it: {safe_text(reference.litert_refused)}" if reference.litert_refused else ""
    if reference.refused and not reference.litert_refused:
        refused = f": {safe_text(reference.refused)}"
    count = f", over {reference.vectors} inferences with and without reset" if reference.vectors > 1 else ""
    match reference.agreement:
        case "bit_exact":
            words = "the outputs are bit for bit those of"
        case "close":
            words = f"the outputs differ by at most {reference.largest} from"
        case "different":
            amount = "" if reference.max_difference is None else f" by up to {reference.largest}"
            words = f"THE OUTPUTS DIFFER{amount} from"
        case "self":
            words = "the reference for the outputs is"
        case _:
            words = "the outputs were not compared with"
    return f"{words} {reference.backend}{count}{refused}"
