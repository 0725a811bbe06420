"""The history as pandas data frames, and out to CSV or Parquet.

Tables and columns are in docs/lab.md: sizes are bytes, times UTC, cycles raw counts in the unit of ``timing``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import MissingDependencyError, UsageError
from harness.units import quoted

if TYPE_CHECKING:
    import pandas

TABLES = ("results", "runs", "trials", "operators", "environments", "estimates")
DEFAULT_PLACE = "results/history.sqlite"
_TIMES = ("created", "started")
_WHOLE = ("_bytes", "_cycles", "_hz")


def load(where: str | Path = DEFAULT_PLACE, table: str = "results") -> pandas.DataFrame:
    """One table of a history. ``where`` is a path or a database URL. Whole numbers that may be missing are ``Int64``
    (missing is ``<NA>``, never 0), times are UTC timestamps. Raises UsageError, HistoryError."""
    import pandas

    from harness.lab.history.store import HistoryStore

    if table not in TABLES:
        raise UsageError(f"a history has no table {quoted(table)}", remedy=f"tables are {', '.join(TABLES)}")
    if "://" not in str(where) and not Path(where).is_file():
        raise UsageError(f"there is no history {where}", remedy="harness regress writes one; name it with --history")
    store = HistoryStore.open(str(where))
    try:
        columns = store.database.columns(f"SELECT * FROM {table}")
    finally:
        store.close()
    # without copies: putting the columns together into blocks would take longer than reading them
    return pandas.DataFrame({name: _column(name, values) for name, values in columns.items()}, copy=False)


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


def export(where: str, target: Path, table: str = "results") -> int:
    """Write a table as ``.csv`` or ``.parquet``; the number of rows. Raises UsageError for another ending."""
    frame = load(where, table)
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
