"""The two databases that a history may live in, behind one small seam: portable SQL with ``:name`` parameters.

SQLite comes with Python; PostgreSQL (and what else SQLAlchemy speaks) needs the extra ``postgres``. Passwords of URLs
reach no message: errors are scrubbed of them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from harness.board.lab_file import redacted_url, secrets_of
from harness.errors import ExitCode, HarnessError, MissingDependencyError
from harness.units import safe_text

Parameters = Mapping[str, Any]
_BUSY_TIMEOUT_S = 30.0
_CONNECT_TIMEOUT_S = 10


class HistoryError(HarnessError):
    """The history cannot be read or written."""

    exit_code = ExitCode.ENVIRONMENT
    default_code = "history.failed"


class Database(Protocol):
    """One connection. ``place`` names it in messages, without password. Raises HistoryError."""

    place: str

    def query(self, sql: str, parameters: Parameters | None = None) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Column names and rows."""

    def columns(self, sql: str, parameters: Parameters | None = None) -> dict[str, list[Any]]:
        """The rows by column, for whole tables."""

    def run(self, sql: str, rows: Sequence[Parameters]) -> None:
        """Execute once for each row of parameters, in the transaction that is open."""

    def transaction(self) -> Any:
        """A context manager: all or nothing, alone among writers."""

    def close(self) -> None: ...


class SqliteDatabase:
    """Implements ``Database``. WAL where the file system allows it, so that readers do not wait for a night's run."""

    def __init__(self, path: Path) -> None:
        self.place = str(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                path, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
            )
            self.journal_mode: str = self._connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
            self._connection.execute("PRAGMA foreign_keys=ON")
        except (sqlite3.Error, OSError) as exc:
            raise self._error(exc) from exc

    def query(self, sql: str, parameters: Parameters | None = None) -> tuple[list[str], list[tuple[Any, ...]]]:
        try:
            cursor = self._connection.execute(sql, parameters or {})
            return [column[0] for column in cursor.description or ()], cursor.fetchall()
        except sqlite3.Error as exc:
            raise self._error(exc) from exc

    def columns(self, sql: str, parameters: Parameters | None = None) -> dict[str, list[Any]]:
        try:
            return _by_column(self._connection.execute(sql, parameters or {}))
        except sqlite3.Error as exc:
            raise self._error(exc) from exc

    def run(self, sql: str, rows: Sequence[Parameters]) -> None:
        try:
            self._connection.executemany(sql, rows)
        except sqlite3.Error as exc:
            raise self._error(exc) from exc

    @contextmanager
    def transaction(self) -> Iterator[None]:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as exc:
            raise self._error(exc) from exc
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException as exc:
            if self._connection.in_transaction:  # SQLite has ended it already where the disk is full
                self._connection.execute("ROLLBACK")
            if isinstance(exc, sqlite3.Error):
                raise self._error(exc) from exc
            raise

    def close(self) -> None:
        self._connection.close()

    def _error(self, exc: Exception) -> HistoryError:
        remedy = "check that it is a history of harness in a folder that can be written, or name another: --history"
        if "disk is full" in str(exc):
            remedy = (
                "free some space, or name a --history on another disk; harness history --import takes runs in later"
            )
        return HistoryError(f"history {self.place}: {safe_text(str(exc))}", remedy=remedy)


class SqlalchemyDatabase:
    """Implements ``Database`` by SQLAlchemy, for a server that several labs share."""

    #: Writers of the schema wait for each other on this number of PostgreSQL's advisory locks ("TFLM" in ASCII).
    _LOCK = 0x54464C4D

    def __init__(self, url: str) -> None:
        self.place = redacted_url(url)
        self._secret = secrets_of(url)
        self._writing = False
        try:
            import sqlalchemy
        except ImportError as exc:
            raise MissingDependencyError(
                f"the history {self.place} needs SQLAlchemy", remedy=_driver_remedy(url, "sqlalchemy and its driver")
            ) from exc
        self._sql = sqlalchemy
        try:
            arguments = {"connect_timeout": _CONNECT_TIMEOUT_S} if url.startswith("postgresql") else {}
            engine = sqlalchemy.create_engine(_with_driver(url), connect_args=arguments, hide_parameters=True)
            self._connection = engine.connect()
        except ImportError as exc:
            raise MissingDependencyError(
                f"the history {self.place} needs a driver: {exc}",
                remedy=_driver_remedy(url, f"the Python module {exc.name}, or name another driver"),
            ) from exc
        except sqlalchemy.exc.NoSuchModuleError as exc:
            raise MissingDependencyError(
                f"the history {self.place} is on no database that SQLAlchemy knows: {exc}",
                remedy="postgresql:// is the one that is tested; of another install its dialect for SQLAlchemy",
            ) from exc
        except Exception as exc:  # URL errors and driver errors have no common class
            raise self._error(exc) from None

    def query(self, sql: str, parameters: Parameters | None = None) -> tuple[list[str], list[tuple[Any, ...]]]:
        try:
            result = self._connection.execute(self._sql.text(sql), dict(parameters or {}))
            found = list(result.keys()), [tuple(row) for row in result.fetchall()]
        except self._sql.exc.SQLAlchemyError as exc:
            self._end_read()
            raise self._error(exc) from None
        self._end_read()
        return found

    def columns(self, sql: str, parameters: Parameters | None = None) -> dict[str, list[Any]]:
        try:
            found = _by_column(self._connection.execute(self._sql.text(sql), dict(parameters or {})).cursor)
        except self._sql.exc.SQLAlchemyError as exc:
            raise self._error(exc) from None
        finally:
            self._end_read()
        return found

    def run(self, sql: str, rows: Sequence[Parameters]) -> None:
        if not rows:
            return
        try:
            self._connection.execute(self._sql.text(sql), [dict(row) for row in rows] if rows[0] else {})
        except self._sql.exc.SQLAlchemyError as exc:
            raise self._error(exc) from None

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._writing = True
        try:
            with self._connection.begin():
                if self._connection.dialect.name == "postgresql":
                    self._connection.execute(self._sql.text(f"SELECT pg_advisory_xact_lock({self._LOCK})"))
                yield
        except self._sql.exc.SQLAlchemyError as exc:
            raise self._error(exc) from None
        finally:
            self._writing = False

    def close(self) -> None:
        self._connection.close()
        self._connection.engine.dispose()

    def _end_read(self) -> None:
        """SQLAlchemy begins a transaction with every first statement; a read must not hold one open."""
        if not self._writing:
            self._connection.rollback()

    def _error(self, exc: Exception) -> HistoryError:
        """Without the password, however the driver words it; the cause is left out, as it may hold it too."""
        text = str(getattr(exc, "orig", None) or exc)
        for secret in self._secret:
            text = text.replace(secret, "***")
        return HistoryError(
            f"history {self.place}: {safe_text(' '.join(text.split()))}",
            remedy="check address, name and password, and that the server runs",
        )


def open_database(where: str) -> Database:
    """A path or ``sqlite:///path`` opens SQLite; any other URL goes to SQLAlchemy."""
    if where.startswith("sqlite:///"):
        return SqliteDatabase(Path(where.removeprefix("sqlite:///")))
    if "://" in where:
        return SqlalchemyDatabase(where)
    return SqliteDatabase(Path(where))


def _by_column(cursor: Any) -> dict[str, list[Any]]:
    """In pieces small enough to stay in the cache: a third faster than all rows at once."""
    columns: list[list[Any]] = [[] for _ in cursor.description]
    while rows := cursor.fetchmany(500):
        for column, values in zip(columns, zip(*rows, strict=True), strict=True):
            column.extend(values)
    return dict(zip((entry[0] for entry in cursor.description), columns, strict=True))


def _driver_remedy(url: str, what: str) -> str:
    """The extra is for PostgreSQL; other databases have drivers of their own."""
    name = url.partition("://")[0].partition("+")[0]
    if name.startswith("postgres"):
        return "pip install 'tflm-harness[postgres]'"
    return f"for {name} install {what}: {name}+DRIVER://…"


def _with_driver(url: str) -> str:
    """psycopg 3 is the driver of the extra; a URL that names its own is left alone."""
    for scheme in ("postgresql://", "postgres://"):
        if url.startswith(scheme):
            return "postgresql+psycopg://" + url.removeprefix(scheme)
    return url
