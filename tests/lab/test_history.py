from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from msgspec import structs

from harness.cli.main import main
from harness.errors import MissingDependencyError, UsageError
from harness.estimates import Estimate
from harness.lab.history import load
from harness.lab.history.database import HistoryError, SqliteDatabase, open_database
from harness.lab.history.frame import Choice, export
from harness.lab.history.importing import import_paths
from harness.lab.history.schema import MIGRATIONS, VERSION
from harness.lab.history.series import estimate_errors, series_of
from harness.lab.history.store import HistoryStore
from harness.record.lab_run import ConditionsRecord, JobStatus
from harness.record.store import write_record
from tests.lab import samples
from tests.patience import PATIENCE_S


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A fresh history on each of the two servers."""
    if request.param == "postgres":
        url: str = request.getfixturevalue("postgres_url")
        return url
    return str(tmp_path / "history.sqlite")


@pytest.fixture
def store(place: str) -> Iterator[HistoryStore]:
    store = HistoryStore.open(place)
    yield store
    store.close()


def _fill(store: HistoryStore) -> None:
    store.add_run(samples.run())
    for number, (min_bytes, commit) in enumerate([(12936, "aaa"), (12936, "aaa"), (13000, "bbb")]):
        sweep = samples.sweep(number, min_bytes=min_bytes, commit=commit, cycles=1000 + number)
        job = samples.job(number=number, commit=commit)
        store.add_run(samples.run(run_id=f"run-{number}"))
        store.add_result(f"run-{number}", job, sweep)


def _past(
    store: HistoryStore, rig: str = "left", *, sha256: str = "ab" * 32, conditions: ConditionsRecord | None = None
) -> list[float]:
    """Earlier times of the rig, of the model kws of the samples."""
    return store.past_values(rig, "kws", sha256, "invoke_cycles", conditions or samples.job().conditions)


def test_results_come_back_as_data_frames(store: HistoryStore, place: str) -> None:
    _fill(store)
    frame = load(place)
    assert list(frame.arena_min_bytes) == [12936, 12936, 13000]
    assert str(frame.arena_min_bytes.dtype) == "Int64"
    assert frame.stack_used_bytes.isna().all()  # not measured, not 0
    assert str(frame.created.dt.tz) == "UTC"
    assert frame.created[1].isoformat() == "2026-01-01T00:01:00+00:00"
    assert list(frame.tflm_commit) == ["aaa", "aaa", "bbb"]
    trials = load(place, "trials")
    assert list(trials.outcome[:2]) == ["works", "too_small"]
    assert set(load(place, "environments").name) >= {"harness_version", "tflm_commit", "clock_hz"}
    assert set(load(place, "estimates").estimated_bytes) == {12960}
    assert len(load(place, "operators")) == 0


def test_a_result_is_kept_once_however_often_it_is_told(store: HistoryStore, place: str) -> None:
    _fill(store)
    _fill(store)
    assert len(load(place)) == 3
    assert len(load(place, "trials")) == 6


def test_a_job_that_measured_nothing_is_kept_too(store: HistoryStore, place: str) -> None:
    store.add_run(samples.run())
    store.add_result("run-1", samples.job(status=JobStatus.ERROR, reason="link.silent: no answer"), None)
    frame = load(place)
    assert list(frame.status) == ["error"]
    assert frame.arena_min_bytes.isna().all()


def test_series_show_values_by_commit_and_where_they_changed(store: HistoryStore) -> None:
    _fill(store)
    (arena, cycles) = series_of(store, "kws", ["arena_min_bytes", "invoke_cycles"])
    assert arena.by_commit() == [("aaa", 2, 12936), ("bbb", 1, 13000)]
    assert [(change.index, change.before, change.after) for change in arena.changes()] == [(2, 12936, 13000)]
    assert (arena.rig, cycles.rig) == ("", "left")
    assert cycles.changes() == []


def test_results_that_are_not_comparable_are_series_of_their_own(store: HistoryStore) -> None:
    """Searched in steps of 64 and of 16 by turns: neither changed, and the plan of 12,930 was right each time."""
    for number in range(6):
        step, found = ((64, 12992), (16, 12944))[number % 2]
        sweep, job = samples.sweep(number, min_bytes=found), samples.job(number=number)
        plan = {"arena": {"min_bytes": 12930, "used_bytes": 10032}}
        conditions = structs.replace(job.conditions, step_bytes=step, inputs="seed 1")
        store.add_run(samples.run(run_id=f"run-{number}"))
        store.add_result(
            f"run-{number}", structs.replace(job, conditions=conditions), structs.replace(sweep, plan=plan)
        )
    coarse, fine = series_of(store, "kws", ["arena_min_bytes"])
    assert [(one.conditions, one.values) for one in (coarse, fine)] == [
        ((("step_bytes", 64),), [12992] * 3),
        ((("step_bytes", 16),), [12944] * 3),
    ]
    assert coarse.changes() == fine.changes() == []
    (used,) = series_of(store, "kws", ["arena_used_bytes"])
    assert (len(used.points), used.conditions) == (6, ())
    (error,) = estimate_errors(store, "kws")
    assert (error.count, error.under, error.worst_percent) == (6, 0, 0.0)


def test_estimates_are_held_against_minima(store: HistoryStore) -> None:
    _fill(store)
    first, second = estimate_errors(store, "kws")
    assert (first.tool, first.tflm_commit, first.count, first.under) == ("harness plan", "aaa", 2, 0)
    assert first.mean_percent == pytest.approx(100 * 24 / 12936)
    assert (second.tflm_commit, second.count, second.under) == ("bbb", 1, 1)


def test_other_tools_estimates_are_held_against_what_was_measured(store: HistoryStore) -> None:
    _fill(store)
    rule = Estimate("rule of thumb", "kws.tflite", 10000)
    elsewhere = Estimate("other", "kws.tflite", 20000, board="nrf52840dk")
    assert store.add_estimates([rule, elsewhere]) == [3, 0]
    assert store.add_estimates([replace(rule, estimated_bytes=12936)]) == [3]  # replaces
    errors = {(error.tool, error.tflm_commit): error for error in estimate_errors(store, "kws")}
    assert set(errors) == {(tool, commit) for tool in ("harness plan", "rule of thumb") for commit in ("aaa", "bbb")}
    assert errors["rule of thumb", "aaa"].mean_percent == 0
    assert errors["rule of thumb", "bbb"].under == 1


def test_the_one_cold_invoke_of_a_trial_is_no_time(store: HistoryStore, place: str) -> None:
    """A suite that measured bytes alone left the first Invoke of a trial in the history, 8 times the median of timed
    runs: it opened the tolerance of the rig's times."""
    for number, cycles in enumerate((1000, None, 1001)):
        store.add_run(samples.run(run_id=f"run-{number}"))
        store.add_result(f"run-{number}", samples.job(number=number), samples.sweep(number, cycles=cycles))
    assert load(place).invoke_cycles.isna().tolist() == [False, True, False]
    assert _past(store) == [1000, 1001]
    (series,) = series_of(store, "kws", ["invoke_cycles"])
    assert series.values == [1000, 1001]


def test_a_rigs_noise_is_its_own(store: HistoryStore) -> None:
    _fill(store)
    assert _past(store) == [1000, 1001]
    assert _past(store, "right") == []


def test_noise_is_that_of_the_same_model_file_and_level(store: HistoryStore) -> None:
    """A model of the same name had taken 3,428,422 counts, and the one in its place 435,216: the deviation of both
    let a slowdown of eight times pass."""
    old, new = "0a" * 32, "ab" * 32
    nights = [(old, 3_428_422 + night) for night in range(12)]
    nights += [(new, 520_000 + 100 * (night % 3)) for night in range(8)]
    nights += [(new, 435_216 + 100 * (night % 2)) for night in range(6)]
    for number, (sha256, cycles) in enumerate(nights):
        job = structs.replace(samples.job(number=number), model_sha256=sha256)
        store.add_run(samples.run(run_id=f"run-{number}"))
        store.add_result(f"run-{number}", job, samples.sweep(number, cycles=cycles))
    assert _past(store) == [435_216, 435_316] * 3
    assert _past(store, sha256=old) == [3_428_422 + night for night in range(12)]
    assert _past(store, sha256="cd" * 32) == []
    first, second = series_of(store, "kws", ["invoke_cycles"])
    assert [(one.conditions, len(one.points)) for one in (first, second)] == [
        ((("model_sha256", old),), 12),
        ((("model_sha256", new),), 14),
    ]
    assert (first.changes(), [change.index for change in second.changes()]) == ([], [8])


@pytest.mark.parametrize(
    ("name", "here", "there"),
    [
        ("caches", "icache on, dcache on", "icache off, dcache off"),
        ("clock_hz", 216_000_000, None),
        ("clock_hz", None, 216_000_000),
        ("interpreter", "plain", "recording"),
    ],
)
def test_noise_is_that_of_the_same_conditions(store: HistoryStore, name: str, here: object, there: object) -> None:
    """However many newer results there are under others."""
    job = samples.job()
    for number, value in enumerate([here, *([there] * 40)]):
        conditions = structs.replace(job.conditions, **{name: value})
        store.add_run(samples.run(run_id=f"run-{number}"))
        store.add_result(
            f"run-{number}",
            structs.replace(samples.job(number=number), conditions=conditions),
            samples.sweep(number),
        )
    mine = structs.replace(job.conditions, **{name: here})
    assert _past(store, conditions=mine) == [1000]
    (one, other) = series_of(store, "kws", ["invoke_cycles"])
    assert [(series.conditions, len(series.points)) for series in (one, other)] == [
        (((name, here),), 1),
        (((name, there),), 40),
    ]


def test_two_processes_may_open_and_write_at_once(place: str) -> None:
    failures: list[BaseException] = []

    def write(number: int) -> None:
        try:
            store = HistoryStore.open(place)
            for result in range(5):
                store.add_run(samples.run(run_id=f"run-{number}-{result}"))
                store.add_result(f"run-{number}-{result}", samples.job(number=result), samples.sweep(result))
            store.close()
        except BaseException as exc:
            failures.append(exc)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert not failures
    assert len(load(place)) == 20


def test_runs_and_sweep_records_are_imported(store: HistoryStore, place: str, tmp_path: Path) -> None:
    import msgspec

    folder = tmp_path / "run-7"
    folder.mkdir()
    run = samples.run(samples.job(), samples.job("other", JobStatus.FAILED), run_id="run-7")
    (folder / "run.json").write_bytes(msgspec.json.encode(run))
    record = write_record(samples.sweep(3), tmp_path / "results")
    assert import_paths(store, [folder, record]) == 3
    assert import_paths(store, [folder / "run.json", record]) == 3  # known already
    assert sorted(load(place).run_id.str[:5]) == ["run-7", "run-7", "sweep"]
    with pytest.raises(UsageError, match="no folder of a finished run"):
        import_paths(store, [tmp_path])


def test_tables_are_exported(store: HistoryStore, place: str, tmp_path: Path) -> None:
    import pandas

    _fill(store)
    assert export(place, tmp_path / "r.csv") == 3
    assert list(pandas.read_csv(tmp_path / "r.csv").arena_min_bytes) == [12936, 12936, 13000]
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow: pip install 'tflm-harness[parquet]'")
    assert export(place, tmp_path / "t.parquet", "trials") == 6
    assert list(pandas.read_parquet(tmp_path / "t.parquet").arena_bytes[:2]) == [32768, 12928]
    with pytest.raises(UsageError, match=r"neither \.csv nor \.parquet"):
        export(place, tmp_path / "r.xlsx")


def test_tables_are_exported_for_the_chosen_results_alone(store: HistoryStore, place: str, tmp_path: Path) -> None:
    """MODEL, --board, --kernels and --last had no effect on --export: it wrote every row."""
    import pandas

    _fill(store)
    store.add_run(samples.run(run_id="run-9"))
    store.add_result("run-9", samples.job("cat", number=9), samples.sweep(9, min_bytes=4096))
    target = tmp_path / "t.csv"

    def rows(table: str, **wanted: str | int) -> pandas.DataFrame:
        count = export(place, target, table, Choice(**wanted))  # type: ignore[arg-type]
        frame = pandas.read_csv(target)
        assert len(frame) == count
        return frame

    assert list(rows("results", model="kws").arena_min_bytes) == [12936, 12936, 13000]
    assert list(rows("results", model="kws", last=2).arena_min_bytes) == [12936, 13000]
    assert list(rows("results", board="nucleo-f746zg", kernels="cmsis_nn", last=1).model) == ["cat"]
    assert list(rows("runs", model="cat").run_id) == ["run-9"]
    assert list(rows("trials", model="kws", last=1).arena_bytes) == [32768, 12928]
    assert set(rows("environments", model="cat").result_id) == {"run-9/cat/nucleo-f746zg/cmsis_nn"}
    assert list(rows("estimates", model="kws", last=1).estimated_bytes) == [12960]
    assert list(load(place, "results", Choice(model="cat")).arena_min_bytes) == [4096]
    target.unlink()
    with pytest.raises(UsageError, match="holds no result of kws on nrf52840dk"):
        rows("results", model="kws", board="nrf52840dk")
    assert not target.exists()


def test_an_old_history_is_migrated_and_keeps_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "old.sqlite"
    old = sqlite3.connect(path)
    for statement in MIGRATIONS[0]:
        old.execute(statement)
    old.execute("CREATE TABLE harness_schema (version BIGINT NOT NULL)")
    old.execute("INSERT INTO harness_schema VALUES (1)")
    old.execute("INSERT INTO runs VALUES ('r', 's', '2026-01-01T00:00:00Z', '0', 'h', 'p', '3')")
    names = [row[1] for row in old.execute("PRAGMA table_info(results)")]
    values = {"planned_min_bytes": 500, "arena_min_bytes": 512, "model": "kws", "run_id": "r", "result_id": "r/kws"}
    row = [
        values.get(n, "2026-01-01T00:00:00Z" if n == "created" else 0 if n in {"attempts", "seconds"} else "")
        for n in names
    ]
    old.execute(f"INSERT INTO results VALUES ({', '.join('?' * len(names))})", row)
    told = {"icache_enabled": "True", "dcache_enabled": "False", "flash_wait_states": "5", "clock_hz": "216000000"}
    old.executemany("INSERT INTO environments VALUES ('r/kws', ?, ?)", told.items())
    old.execute(f"INSERT INTO results VALUES ({', '.join('?' * len(names))})", ["r/silent", *row[1:]])
    old.commit()
    old.close()
    store = HistoryStore.open(str(path))
    assert store.estimate_errors("kws") == [("harness plan", "", "", "", 500, 512)] * 2
    _, rows = store.database.query("SELECT caches FROM results ORDER BY result_id")
    assert rows == [("icache on, dcache off, 5 wait states",), ("",)]
    store.close()
    assert sqlite3.connect(path).execute("SELECT version FROM harness_schema").fetchall() == [(VERSION,)]


def test_a_migration_that_fails_leaves_the_old_version(tmp_path: Path) -> None:
    path = tmp_path / "old.sqlite"
    old = sqlite3.connect(path)
    old.execute("CREATE TABLE harness_schema (version BIGINT NOT NULL)")
    old.execute("CREATE TABLE operators (mine TEXT)")  # somebody's own table is in the way
    old.commit()
    with pytest.raises(HistoryError, match="operators"):
        HistoryStore.open(str(path))
    tables = {row[0] for row in old.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert tables == {"harness_schema", "operators"}


def test_a_later_history_is_refused_with_both_numbers(tmp_path: Path) -> None:
    path = tmp_path / "new.sqlite"
    HistoryStore.open(str(path)).close()
    newer = sqlite3.connect(path)
    newer.execute("UPDATE harness_schema SET version = 99")
    newer.commit()
    with pytest.raises(HistoryError, match=f"has version 99; this harness writes version {VERSION}"):
        HistoryStore.open(str(path))


def test_a_full_disk_is_said_so_and_nothing_is_half_written(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    store = HistoryStore.open(str(path))
    _fill(store)
    (pages,) = store.database.query("PRAGMA page_count")[1][0]
    store.database.query(f"PRAGMA max_page_count={pages}")
    with pytest.raises(HistoryError, match="database or disk is full") as error:
        for number in range(100, 300):
            store.add_run(samples.run(run_id=f"run-{number}"))
            store.add_result(f"run-{number}", samples.job(number=number), samples.sweep(number))
    assert "--import" in error.value.remedy
    store.close()
    results, trials = load(path), load(path, "trials")
    assert set(trials.result_id) == set(results.result_id)
    assert len(trials) == 2 * len(results) >= 6


def test_an_import_tells_no_password(postgres_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = write_record(samples.sweep(3), tmp_path)
    password = unquote(urlsplit(postgres_url).password or "")
    assert password
    assert main(["history", "--import", str(record), "--history", postgres_url]) == 0
    out = capsys.readouterr().out
    assert out.startswith("1 result in postgresql")
    assert "***" in out and password not in out


def test_sqlite_writes_ahead(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "h.sqlite")
    assert database.journal_mode == "wal"
    database.close()


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("these are notes" * 100)
    with pytest.raises(HistoryError, match=r"notes\.txt: file is not a database"):
        HistoryStore.open(str(path))


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://lab:s3cr%40t@localhost:1/history",
        "postgresql://lab:s3cr%40t@localhost:port/history",
        "mysql+none://lab:s3cr%40t@localhost/history",
        "postgresql://lab@localhost:1/history?password=s3cr%40t",
        "postgresql://lab@localhost:1/history?connect_timeout=1&PASSWORD=s3cr%40t&sslpassword=s3cr%40t",
        "postgresql://lab@localhost:port/history?password=s3cr%40t",
    ],
)
def test_no_message_holds_the_password(url: str) -> None:
    pytest.importorskip("sqlalchemy", reason="needs the extra postgres")
    with pytest.raises((HistoryError, MissingDependencyError)) as error:
        open_database(url)
    shown = f"{error.value.message} {error.value.remedy} {error.value.__cause__}"
    assert "s3cr%40t" not in shown and "s3cr@t" not in shown
    assert "***" in shown


@pytest.mark.parametrize(
    ("url", "told", "remedy"),
    [
        ("mysql://lab@localhost/h", "needs a driver: No module named 'MySQLdb'", "the Python module MySQLdb"),
        ("mysql+none://lab@localhost/h", "no database that SQLAlchemy knows", "its dialect"),
        ("postgresql+psycopg2cffi://lab@localhost/h", "needs a driver", "pip install 'tflm-harness[postgres]'"),
    ],
)
def test_the_driver_that_is_missing_is_that_of_the_database(url: str, told: str, remedy: str) -> None:
    """A history on MySQL asked for the extra of PostgreSQL."""
    pytest.importorskip("sqlalchemy", reason="needs the extra postgres")
    with pytest.raises(MissingDependencyError) as error:
        open_database(url)
    assert told in error.value.message
    assert remedy in error.value.remedy
    assert ("postgres" in error.value.remedy) is ("postgres" in url or "none" in url)


def test_asking_an_absent_history_creates_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no history"):
        load(tmp_path / "none.sqlite")
    assert not (tmp_path / "none.sqlite").exists()
    with pytest.raises(UsageError, match='no table "secrets"'):
        load(tmp_path / "none.sqlite", "secrets")
