"""``harness history``: what a lab has measured over time."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.regress import history_place
from harness.errors import UsageError
from harness.units import counted, quoted, safe_text, short_commit

if TYPE_CHECKING:
    from harness.lab.history.series import EstimateErrors, Series
    from harness.lab.history.store import HistoryStore

_PATH = click.Path(path_type=Path)
#: Results of a model that are shown when nothing is said.
_LAST = 2000
_DEFAULT_METRICS = ("arena_min_bytes", "invoke_cycles")
#: Lines for the newest commits; the document of --json has all.
_SHOWN_COMMITS = 8
_TABLES = click.Choice(["results", "runs", "trials", "operators", "environments", "estimates"])


@click.command()
@click.argument("model", required=False)
@click.option("--metric", "metrics", multiple=True, help="Metric to follow (default: arena_min_bytes, invoke_cycles).")
@click.option("--board", default="", help="Only this board.")
@click.option("--kernels", default="", help="Only this kernel set.")
@click.option(
    "--last", type=click.IntRange(1), help=f"So many results at most (default: {_LAST:,}; all of them with --export)."
)
@click.option("--plot", is_flag=True, help="Draw each series as blocks.")
@click.option("--plot-file", type=_PATH, help="Draw every series into an .svg or .png file.")
@click.option("--export", "export_path", type=_PATH, help="Write a table as .csv or .parquet.")
@click.option("--table", type=_TABLES, default="results", show_default=True, help="The table of --export.")
@click.option("--import", "imports", multiple=True, type=_PATH, help="Take in a run's folder or a sweep's record.")
@click.option(
    "--estimates", "estimate_files", multiple=True, type=_PATH, help="Other tools' estimates: tool, model, bytes."
)
@click.option("--history", metavar="PATH|URL", help="The database (default: history.sqlite in the results).")
@click.option("--results", type=_PATH, default=Path("results"), show_default=True, help="Where results are kept.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def history(model: str | None, as_json: bool, **options: Any) -> None:
    """Follow a model over time: values per TFLM commit, where the level changed, how far estimates were off.

    Without MODEL: what the history holds.
    """
    from harness.lab.history.store import HistoryStore

    place = history_place(options["history"], options["results"])
    if not options["imports"] and "://" not in place and not Path(place).is_file():
        raise UsageError(f"there is no history {place}", remedy="harness regress writes one; name it with --history")
    _require_use(model, options)
    store = HistoryStore.open(place)
    try:
        if options["imports"]:
            from harness.lab.history.importing import import_paths

            count = import_paths(store, options["imports"])
            if model is None and not options["export_path"]:
                told = f"{counted(count, 'result')} in {store.database.place}"
                print(json.dumps(_document(imported=count)) if as_json else told)
                return
        if options["estimate_files"]:
            for path in options["estimate_files"]:
                _add_estimates(store, path)
        if options["export_path"]:
            _export(place, model, options, as_json)
        elif model is None:
            _show_models(store, options, as_json)
        else:
            _show_model(store, model, options, as_json)
    finally:
        store.close()


def _require_use(model: str | None, options: dict[str, Any]) -> None:
    """Raises UsageError for an option that would have no effect."""
    of_a_picture = {"--metric": options["metrics"], "--plot": options["plot"], "--plot-file": options["plot_file"]}
    for name, value in of_a_picture.items():
        if value and options["export_path"]:
            raise UsageError(
                f"{name} has no effect on --export", remedy="leave one of them away: a table has all metrics"
            )
    for name, value in {**of_a_picture, "--last": options["last"]}.items():
        if value and model is None and not options["export_path"]:
            raise UsageError(
                f"{name} is for one model", remedy=f"harness history MODEL {name} …: harness history lists them"
            )


def _export(place: str, model: str | None, options: dict[str, Any], as_json: bool) -> None:
    from harness.lab.history.frame import Choice, export

    choice = Choice(model or "", options["board"], options["kernels"], options["last"])
    rows = export(place, options["export_path"], options["table"], choice)
    print(json.dumps(_document(written=rows)) if as_json else f"{counted(rows, 'row')} in {options['export_path']}")


def _add_estimates(store: HistoryStore, path: Path) -> None:
    """Says on stderr what became of them."""
    from harness.estimates import read_estimates

    estimates = read_estimates(path)
    counts = store.add_estimates(estimates)
    used = sum(count > 0 for count in counts)
    print(
        f"{path}: {used} of {counted(len(estimates), 'estimate')} held against {counted(sum(counts), 'result')}",
        file=sys.stderr,
    )
    lost = [estimate for estimate, count in zip(estimates, counts, strict=True) if not count]
    places = (" on ".join(filter(None, (one.model, one.board, one.kernels))) for one in lost)
    for place in dict.fromkeys(places):
        print(f"  no result of {safe_text(place)}", file=sys.stderr)


def _document(**values: Any) -> dict[str, Any]:
    return {"schema": "harness.history", "schema_version": 1, **values}


def _show_models(store: HistoryStore, options: dict[str, Any], as_json: bool) -> None:
    board, kernels = options["board"], options["kernels"]
    rows = [row for row in store.models() if board in {"", row[1]} and kernels in {"", row[2]}]
    if as_json:
        names = ("model", "board", "kernels", "results", "last")
        print(json.dumps(_document(models=[dict(zip(names, row, strict=True)) for row in rows]), indent=1))
        return
    for name, board, kernels, count, last in rows:
        print(f"{safe_text(name):<32} {board:<22} {kernels:<10} {count:>7} results, last {last}")
    if not rows:
        print("the history holds nothing of that" if board or kernels else "the history is empty")


def _show_model(store: HistoryStore, model: str, options: dict[str, Any], as_json: bool) -> None:
    from harness.lab.history.series import estimate_errors, series_of
    from harness.lab.metrics import METRICS

    for name in options["metrics"]:
        if name not in METRICS:
            raise UsageError(f"there is no metric {quoted(name)}", remedy=f"metrics are {', '.join(METRICS)}")
    wanted = {name: options[name] for name in ("board", "kernels")}
    found = series_of(store, model, options["metrics"] or _DEFAULT_METRICS, **wanted, last=options["last"] or _LAST)
    if not found:
        known = sorted({row[0] for row in store.models()})
        raise UsageError(
            f"the history holds no value of {quoted(model)} for that",
            remedy=f"it holds {', '.join(map(safe_text, known[:20])) or 'nothing'}: harness history",
            code="history.no_model",
        )
    errors = estimate_errors(store, model)
    if options["plot_file"]:
        _draw(model, found, options["plot_file"])
    if as_json:
        series = [_series_values(one) for one in found]
        from dataclasses import asdict

        print(json.dumps(_document(model=model, series=series, estimates=[asdict(e) for e in errors]), indent=1))
        return
    for one in found:
        _print_series(model, one, plot=options["plot"])
    _print_errors(_newest(found, errors))


def _series_values(series: Series) -> dict[str, Any]:
    points = [
        {"created": p.created, "rig": p.rig, "tflm_commit": p.tflm_commit, "status": p.status, "value": p.value}
        for p in series.points
    ]
    changes = [
        {
            "created": series.points[change.index].created,
            "tflm_commit": series.points[change.index].tflm_commit,
            "before": change.before,
            "after": change.after,
        }
        for change in series.changes()
    ]
    commits = [{"tflm_commit": c, "results": n, "median": value} for c, n, value in series.by_commit()]
    head = {"metric": series.metric.name, "unit": series.metric.unit}
    place = {"board": series.board, "kernels": series.kernels, "rig": series.rig, "conditions": dict(series.conditions)}
    return {**head, **place, "by_commit": commits, "changes": changes, "points": points}


def _print_series(model: str, series: Series, *, plot: bool) -> None:
    from harness.report.sparkline import sparkline

    unit = series.metric.unit
    print(f"{_title(model, series)} ({series.metric.title})")
    commits = series.by_commit()
    if len(commits) > _SHOWN_COMMITS:
        print(f"  {len(commits) - _SHOWN_COMMITS} earlier TFLM commits: --json")
    for commit, count, value in commits[-_SHOWN_COMMITS:]:
        print(f"  TFLM {short_commit(commit)}: {value:,.0f} {unit}, median of {count}")
    for change in series.changes():
        old, new = (series.points[at].tflm_commit for at in (change.index - 1, change.index))
        when = series.points[change.index].created
        levels = f"{change.before:,.0f} -> {change.after:,.0f} {unit} ({change.percent:+.2f} %)"
        print(f"  {when}: {levels}, {_update(old, new)}")
    if plot:
        values = series.values
        print(f"  {sparkline(values)}  {min(values):,} … {max(values):,} {unit}")


def _update(old: str, new: str) -> str:
    if old == new:
        return "the same TFLM" if old else "TFLM not known"
    return f"TFLM {short_commit(old)} -> {short_commit(new)}"


def _title(model: str, series: Series) -> str:
    """What tells the series from every other one."""
    from harness.lab.conditions import titled

    rig = f" on {series.rig}" if series.rig else ""
    told = "".join(f", {titled(name, safe_text(str(value or '')))}" for name, value in series.conditions)
    return f"{safe_text(model)}, {series.board}{rig}, {series.kernels}{told}: {series.metric.name}"


def _newest(series: list[Series], errors: list[EstimateErrors]) -> list[EstimateErrors]:
    """Of each tool, board and kernel set that is shown: the errors with the TFLM commit that was measured last."""
    commits = {(one.board, one.kernels): one.points[-1].tflm_commit for one in series}
    return [error for error in errors if commits.get((error.board, error.kernels)) == error.tflm_commit]


def _print_errors(errors: list[EstimateErrors]) -> None:
    for error in errors:
        print(
            f"  {safe_text(error.tool)} on {error.board}, {error.kernels}, TFLM {short_commit(error.tflm_commit)}: "
            f"error {error.mean_percent:+.2f} % on average, {error.worst_percent:+.2f} % at worst, "
            f"{error.under} of {error.count} too small"
        )


def _draw(model: str, found: list[Series], path: Path) -> None:
    from harness.report.drawing import write_drawing
    from harness.report.history_report import Panel, picture

    panels = [
        Panel(
            _title(model, series),
            series.values,
            [f"{point.created} TFLM {short_commit(point.tflm_commit)}: {point.value:,}" for point in series.points],
            [change.index for change in series.changes()],
            series.metric.unit,
        )
        for series in found
    ]
    write_drawing(picture(f"{safe_text(model)}: history", panels), path)
