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
        names, rows = store.database.query(f"SELECT * FROM {table}")
    finally:
        store.close()
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    return pandas.DataFrame({name: _column(name, values) for name, values in zip(names, columns, strict=True)})


def _column(name: str, values: tuple[Any, ...]) -> Any:
    import numpy
    import pandas

    if name in _TIMES:
        return pandas.to_datetime(pandas.Series(values, dtype="object"), utc=True, format="%Y-%m-%dT%H:%M:%SZ")
    if name.endswith(_WHOLE):
        missing = numpy.fromiter((value is None for value in values), dtype=bool, count=len(values))
        numbers = numpy.fromiter((value or 0 for value in values), dtype=numpy.int64, count=len(values))
        return pandas.arrays.IntegerArray(numbers, missing)
    return pandas.Series(values)


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
