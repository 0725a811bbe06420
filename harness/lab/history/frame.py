"""The history as pandas data frames, and out to CSV or Parquet.

Tables and columns are in docs/lab.md: sizes are bytes, times UTC, cycles raw counts in the unit of ``timing``.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import MissingDependencyError, UsageError
from harness.units import quoted

if TYPE_CHECKING:
    import pandas

    from harness.lab.history.database import Database

#: Table → the order of chosen rows.
_ORDERS = {
    "results": "created, result_id",
    "runs": "started, run_id",
    "trials": "result_id, number",
    "operators": "result_id, position",
    "environments": "result_id, name",
    "estimates": "result_id, tool",
}
TABLES = tuple(_ORDERS)
DEFAULT_PLACE = "results/history.sqlite"
_TIMES = ("created", "started")
_WHOLE = ("_bytes", "_cycles", "_hz")


@dataclass(frozen=True, slots=True)
class Choice:
    """Which results: of this model, board and kernel set (empty: any), and the ``last`` so many of them (None: all)."""

    model: str = ""
    board: str = ""
    kernels: str = ""
    last: int | None = None

    @property
    def is_all(self) -> bool:
        return self == Choice()

    @property
    def sql(self) -> str:
        """The ids of the results."""
        named = [f"{name} = :{name}" for name in ("model", "board", "kernels") if getattr(self, name)]
        where = f" WHERE {' AND '.join(named)}" if named else ""
        return f"SELECT result_id FROM results{where}" + (" ORDER BY created DESC LIMIT :last" if self.last else "")

    @property
    def parameters(self) -> dict[str, str | int]:
        return {name: value for name, value in asdict(self).items() if value}


def load(where: str | Path = DEFAULT_PLACE, table: str = "results", choice: Choice = Choice()) -> pandas.DataFrame:
    """One table of a history, or what of it belongs to the chosen results. ``where`` is a path or a database URL. Whole
    numbers that may be missing are ``Int64`` (missing is ``<NA>``, never 0), times are UTC timestamps. Raises
    UsageError, HistoryError."""
    import pandas

    from harness.lab.history.store import HistoryStore

    if table not in TABLES:
        raise UsageError(f"a history has no table {quoted(table)}", remedy=f"tables are {', '.join(TABLES)}")
    if "://" not in str(where) and not Path(where).is_file():
        raise UsageError(f"there is no history {where}", remedy="harness regress writes one; name it with --history")
    store = HistoryStore.open(str(where))
    try:
        columns = _columns(store.database, table, choice)
    finally:
        store.close()
    # without copies: putting the columns together into blocks would take longer than reading them
    return pandas.DataFrame({name: _column(name, values) for name, values in columns.items()}, copy=False)


def _columns(database: Database, table: str, choice: Choice) -> dict[str, list[Any]]:
    """Raises UsageError where no result is chosen."""
    if choice.is_all:
        return database.columns(f"SELECT * FROM {table}")
    _, chosen = database.query(f"SELECT COUNT(*) FROM ({choice.sql}) AS chosen", choice.parameters)
    if not chosen[0][0]:
        raise UsageError(
            f"the history holds no result of {' on '.join(filter(None, (choice.model, choice.board, choice.kernels)))}",
            remedy="harness history shows what it holds",
            code="history.no_model",
        )
    key, ids = "result_id", f"SELECT result_id FROM ({choice.sql}) AS chosen"
    if table == "runs":
        key, ids = "run_id", f"SELECT run_id FROM results WHERE result_id IN ({ids})"
    return database.columns(
        f"SELECT * FROM {table} WHERE {key} IN ({ids}) ORDER BY {_ORDERS[table]}", choice.parameters
    )


def _column(name: str, values: list[Any]) -> Any:
    import numpy
    import pandas

    if name in _TIMES:
        # the text without its Z is what numpy reads at once
        stamps = numpy.array([value[:-1] for value in values], dtype="datetime64[ns]")
        return pandas.DatetimeIndex(stamps).tz_localize("UTC")
    if name.endswith(_WHOLE):
        # by way of float64: exact to 2**53, which no size or count comes near; None becomes NaN
        numbers = numpy.array(values, dtype=numpy.float64)
        missing = numpy.isnan(numbers)
        numbers[missing] = 0
        return pandas.arrays.IntegerArray(numbers.astype(numpy.int64), missing)
    if values and isinstance(values[0], int | float):
        return numpy.array(values)
    return numpy.array(values, dtype=object)


def export(where: str, target: Path, table: str = "results", choice: Choice = Choice()) -> int:
    """Write a table as ``.csv`` or ``.parquet``; the number of rows. Raises UsageError for another ending."""
    frame = load(where, table, choice)
    if target.suffix == ".csv":
        frame.to_csv(target, index=False)
    elif target.suffix == ".parquet":
        try:
            frame.to_parquet(target, index=False)
        except ImportError as exc:
            raise MissingDependencyError("Parquet needs pyarrow", remedy="pip install 'tflm-harness[parquet]'") from exc
    else:
        raise UsageError(f"{target} is neither .csv nor .parquet", remedy="end the name with one of them")
    return len(frame)
