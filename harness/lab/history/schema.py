"""The tables of a history, as migrations: each step is applied once, in order, all or nothing; none is ever edited.

Sizes are bytes, times UTC in ISO 8601 (text, so that both databases sort them alike), cycles are raw counts in the unit
of ``timing``.
"""

from __future__ import annotations

from harness.lab.history.database import Database, HistoryError

_RESULTS = """
CREATE TABLE results (
  result_id TEXT PRIMARY KEY, run_id TEXT NOT NULL REFERENCES runs(run_id), job_id TEXT NOT NULL, created TEXT NOT NULL,
  model TEXT NOT NULL, model_sha256 TEXT NOT NULL, board TEXT NOT NULL, rig TEXT NOT NULL, probe_uid TEXT NOT NULL,
  kernels TEXT NOT NULL, tflm_commit TEXT NOT NULL, toolchain TEXT NOT NULL, optimise TEXT NOT NULL,
  interpreter TEXT NOT NULL, timing TEXT NOT NULL, clock_hz BIGINT, arena_region TEXT NOT NULL, inputs TEXT NOT NULL,
  step_bytes BIGINT, build_id TEXT NOT NULL, status TEXT NOT NULL, reason TEXT NOT NULL, attempts BIGINT NOT NULL,
  seconds DOUBLE PRECISION NOT NULL, arena_min_bytes BIGINT, arena_used_bytes BIGINT, arena_head_bytes BIGINT,
  arena_tail_bytes BIGINT, planned_min_bytes BIGINT, planned_used_bytes BIGINT, unexplained_bytes BIGINT,
  stack_used_bytes BIGINT, allocate_cycles BIGINT, invoke_cycles BIGINT, record_path TEXT NOT NULL)
"""


def _fact(name: str, told: str) -> str:
    """SQL for a fact of a result's environment as ``, told``, or an empty text where the device did not tell it."""
    return f"COALESCE((SELECT ', ' || {told} FROM {_ENVIRONMENT} AND e.name = '{name}'), '')"


def _switch(name: str, title: str) -> str:
    return _fact(name, f"CASE e.value WHEN 'True' THEN '{title} on' ELSE '{title} off' END")


_ENVIRONMENT = "environments e WHERE e.result_id = results.result_id"
#: As ``conditions_of`` words them.
_CACHES = " || ".join(
    (
        _switch("icache_enabled", "icache"),
        _switch("dcache_enabled", "dcache"),
        _switch("flash_accelerator_enabled", "flash accelerator"),
        _fact("flash_wait_states", "e.value || ' wait states'"),
    )
)

#: Version n is reached by MIGRATIONS[n - 1].
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE runs (run_id TEXT PRIMARY KEY, suite TEXT NOT NULL, started TEXT NOT NULL, "
        "harness_version TEXT NOT NULL, host TEXT NOT NULL, platform TEXT NOT NULL, python TEXT NOT NULL)",
        _RESULTS,
        "CREATE INDEX results_by_model ON results (model, board, kernels, created)",
        "CREATE TABLE trials (result_id TEXT NOT NULL REFERENCES results(result_id), number BIGINT NOT NULL, "
        "arena_bytes BIGINT NOT NULL, outcome TEXT NOT NULL, reason TEXT NOT NULL, seconds DOUBLE PRECISION NOT NULL, "
        "attempts BIGINT NOT NULL, PRIMARY KEY (result_id, number))",
        "CREATE TABLE operators (result_id TEXT NOT NULL REFERENCES results(result_id), position BIGINT NOT NULL, "
        "name TEXT NOT NULL, cycles BIGINT NOT NULL, PRIMARY KEY (result_id, position))",
        "CREATE TABLE environments (result_id TEXT NOT NULL REFERENCES results(result_id), name TEXT NOT NULL, "
        "value TEXT NOT NULL, PRIMARY KEY (result_id, name))",
    ),
    (
        "CREATE TABLE estimates (result_id TEXT NOT NULL REFERENCES results(result_id), tool TEXT NOT NULL, "
        "estimated_bytes BIGINT NOT NULL, PRIMARY KEY (result_id, tool))",
        # what was recorded before estimates had a table of their own: the plan is one of them
        "INSERT INTO estimates (result_id, tool, estimated_bytes) SELECT result_id, 'harness plan', planned_min_bytes "
        "FROM results WHERE planned_min_bytes IS NOT NULL",
        "CREATE INDEX results_by_rig ON results (rig, model, created)",
    ),
    (
        "ALTER TABLE results ADD COLUMN caches TEXT NOT NULL DEFAULT ''",
        # what was recorded before: the device had told it
        f"UPDATE results SET caches = SUBSTR({_CACHES}, 3)",
    ),
)
VERSION = len(MIGRATIONS)


def migrate(database: Database) -> None:
    """Bring the database to this harness's version. Raises HistoryError for a later one."""
    if _version(database) == VERSION:
        return
    with database.transaction():
        # another process may have done it while this one waited
        database.run("CREATE TABLE IF NOT EXISTS harness_schema (version BIGINT NOT NULL)", [{}])
        version = _version_in_transaction(database)
        if version > VERSION:
            raise _too_new(database, version)
        for number in range(version + 1, VERSION + 1):
            for statement in MIGRATIONS[number - 1]:
                database.run(statement, [{}])
        database.run("DELETE FROM harness_schema", [{}])
        database.run("INSERT INTO harness_schema (version) VALUES (:version)", [{"version": VERSION}])


def _version(database: Database) -> int:
    """0 for an empty database."""
    try:
        version = _version_in_transaction(database)
    except HistoryError:
        return 0
    if version > VERSION:
        raise _too_new(database, version)
    return version


def _version_in_transaction(database: Database) -> int:
    _, rows = database.query("SELECT version FROM harness_schema")
    return int(rows[0][0]) if rows else 0


def _too_new(database: Database, version: int) -> HistoryError:
    return HistoryError(
        f"history {database.place} has version {version}; this harness writes version {VERSION}",
        remedy="update tflm-harness, or name another --history",
        code="history.too_new",
    )
