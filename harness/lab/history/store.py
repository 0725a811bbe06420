"""Writing results into a history, and the few questions that commands ask of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import msgspec

from harness.estimates import Estimate
from harness.lab.conditions import comparable_by, conditions_of, trend_conditions
from harness.lab.history.database import Database, open_database
from harness.lab.history.schema import migrate
from harness.lab.history.trend import since_last_change
from harness.lab.metrics import METRICS, Number
from harness.record.lab_run import ConditionsRecord, JobRecord, RunRecord
from harness.record.schema import SweepRecord

_COLUMNS = {
    "runs": ["run_id", "suite", "started", "harness_version", "host", "platform", "python"],
    "results": [
        *("result_id", "run_id", "job_id", "created", "model", "model_sha256", "board", "rig", "probe_uid"),
        *("kernels", "tflm_commit", "toolchain", "optimise", "interpreter", "timing", "clock_hz", "arena_region"),
        *("caches", "inputs", "step_bytes", "build_id", "status", "reason", "attempts", "seconds", "record_path"),
        *METRICS,
    ],
    "trials": ["result_id", "number", "arena_bytes", "outcome", "reason", "seconds", "attempts"],
    "operators": ["result_id", "position", "name", "cycles"],
    "environments": ["result_id", "name", "value"],
    "estimates": ["result_id", "tool", "estimated_bytes"],
}
#: How many of a rig's earlier values describe its noise.
_PAST_VALUES = 30
#: The plan's prediction, among the estimates.
PLAN_TOOL = "harness plan"


@dataclass(frozen=True, slots=True)
class Point:
    """One result of a model, as a trend needs it. ``conditions``: (name, value) of those that were asked for."""

    created: str
    board: str
    kernels: str
    rig: str
    tflm_commit: str
    status: str
    value: Number | None
    conditions: tuple[tuple[str, str | int | None], ...] = ()


class HistoryStore:
    """An open history. Close it."""

    def __init__(self, database: Database) -> None:
        self.database = database
        migrate(database)

    @classmethod
    def open(cls, where: str) -> HistoryStore:
        """A path, or a database URL. Raises HistoryError, MissingDependencyError."""
        return cls(open_database(where))

    def close(self) -> None:
        self.database.close()

    def add_run(self, run: RunRecord) -> None:
        """Known already: nothing happens (a run that goes on)."""
        row = {name: getattr(run, name) for name in _COLUMNS["runs"]}
        with self.database.transaction():
            self._insert("runs", [row], "run_id")

    def add_result(self, run_id: str, job: JobRecord, sweep: SweepRecord | None) -> None:
        """One finished job with its trials; written once, however often it is told."""
        result_id = f"{run_id}/{job.id}"
        with self.database.transaction():
            _, known = self.database.query("SELECT 1 FROM results WHERE result_id = :id", {"id": result_id})
            if known:
                return
            self._insert("results", [_result_row(result_id, run_id, job, sweep)], "result_id")
            if sweep is not None:
                self._add_details(result_id, sweep)

    def add_sweep(self, sweep: SweepRecord, run_id: str) -> None:
        """A record of ``harness sweep``, as a job of its own."""
        job = _job_of(sweep)
        self.add_result(run_id, job, sweep)

    def past_values(
        self, rig: str, model: str, model_sha256: str, metric: str, conditions: ConditionsRecord
    ) -> list[Number]:
        """The rig's values of passed jobs of the same model file under the same conditions, oldest first, from the
        last change of their level on."""
        assert metric in METRICS
        same = {name: getattr(conditions, name) for name in comparable_by(METRICS[metric].kind)}
        # "IS NOT DISTINCT FROM" is not in every SQLite
        where = " AND ".join(f"{name} IS NULL" if same[name] is None else f"{name} = :{name}" for name in same)
        known = {name: value for name, value in same.items() if value is not None}
        _, rows = self.database.query(
            f"SELECT {metric} FROM results WHERE rig = :rig AND model = :model AND model_sha256 = :sha256 AND {where} "
            f"AND status IN ('passed', 'flaky') AND {metric} IS NOT NULL ORDER BY created DESC LIMIT {_PAST_VALUES}",
            {"rig": rig, "model": model, "sha256": model_sha256, **known},
        )
        return [*since_last_change([row[0] for row in reversed(rows)])]

    def points(self, model: str, metric: str, *, board: str = "", kernels: str = "", last: int = 2000) -> list[Point]:
        """The last results of a model, oldest first, with the conditions that a trend of the metric depends on."""
        assert metric in METRICS
        names = trend_conditions(METRICS[metric].kind)
        conditions, parameters = ["model = :model"], {"model": model, "last": last}
        for name, wanted in (("board", board), ("kernels", kernels)):
            if wanted:
                conditions.append(f"{name} = :{name}")
                parameters[name] = wanted
        _, rows = self.database.query(
            f"SELECT created, board, kernels, rig, tflm_commit, status, {', '.join((metric, *names))} FROM results "
            f"WHERE {' AND '.join(conditions)} ORDER BY created DESC LIMIT :last",
            parameters,
        )
        return [
            Point(created, on, kernel_set, rig, commit, status, value, tuple(zip(names, rest, strict=True)))
            for created, on, kernel_set, rig, commit, status, value, *rest in reversed(rows)
        ]

    def models(self) -> list[tuple[str, str, str, int, str]]:
        """(model, board, kernels, results, time of the last one)."""
        _, rows = self.database.query(
            "SELECT model, board, kernels, COUNT(*), MAX(created) FROM results GROUP BY model, board, kernels "
            "ORDER BY model, board, kernels"
        )
        return [(str(a), str(b), str(c), int(d), str(e)) for a, b, c, d, e in rows]

    def estimate_errors(self, model: str = "") -> list[tuple[str, str, str, str, int, int]]:
        """(tool, board, kernels, TFLM commit, estimated, measured minimum) of every result that has both. The plan's
        minimum is rounded up to the step of the search, as the measured one is."""
        _, rows = self.database.query(
            "SELECT e.tool, r.board, r.kernels, r.tflm_commit, e.estimated_bytes, r.arena_min_bytes, r.step_bytes "
            "FROM estimates e "
            "JOIN results r ON r.result_id = e.result_id WHERE r.arena_min_bytes IS NOT NULL"
            + (" AND r.model = :model" if model else ""),
            {"model": model} if model else {},
        )
        return [
            (str(tool), str(a), str(b), str(c), _on_grid(int(e), step if tool == PLAN_TOOL else None), int(f))
            for tool, a, b, c, e, f, step in rows
        ]

    def add_estimates(self, estimates: Iterable[Estimate]) -> list[int]:
        """Hold other tools' estimates against every result of their model (file name or stem), and of their board and
        kernels where they name them. An estimate of a tool that is there already is replaced. Returns against how many
        results each was held."""
        counts = []
        with self.database.transaction():
            for estimate in estimates:
                wanted = {"model": PurePath(estimate.model).stem, "board": estimate.board, "kernels": estimate.kernels}
                conditions = " AND ".join(f"{name} = :{name}" for name, value in wanted.items() if value)
                parameters = {name: value for name, value in wanted.items() if value}
                _, rows = self.database.query(f"SELECT result_id FROM results WHERE {conditions}", parameters)
                keys = [{"result_id": row[0], "tool": estimate.tool} for row in rows]
                if keys:
                    self.database.run("DELETE FROM estimates WHERE result_id = :result_id AND tool = :tool", keys)
                self._insert("estimates", [key | {"estimated_bytes": estimate.estimated_bytes} for key in keys])
                counts.append(len(keys))
        return counts

    def _add_details(self, result_id: str, sweep: SweepRecord) -> None:
        trials = sweep.search.trials if sweep.search else ()
        self._insert(
            "trials",
            [
                {"result_id": result_id, "number": number, "reason": trial.reason or ""}
                | {name: getattr(trial, name) for name in ("arena_bytes", "outcome", "seconds", "attempts")}
                for number, trial in enumerate(trials, start=1)
            ],
        )
        profile = sweep.timing.profile if sweep.timing else None
        self._insert(
            "operators",
            [
                {"result_id": result_id, "position": at, "name": row.name, "cycles": row.count}
                for at, row in enumerate(profile.operators if profile else ())
            ],
        )
        facts = _environment(sweep)
        self._insert(
            "environments", [{"result_id": result_id, "name": name, "value": str(value)} for name, value in facts]
        )
        planned = METRICS["planned_min_bytes"].take(sweep)
        if planned is not None:
            self._insert("estimates", [{"result_id": result_id, "tool": PLAN_TOOL, "estimated_bytes": planned}])

    def _insert(self, table: str, rows: Sequence[dict[str, Any]], unless: str = "") -> None:
        if not rows:
            return
        names = _COLUMNS[table]
        conflict = f" ON CONFLICT ({unless}) DO NOTHING" if unless else ""
        values = ", ".join(f":{name}" for name in names)
        bound = [{name: row[name] for name in names} for row in rows]
        self.database.run(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({values}){conflict}", bound)


def _on_grid(size_bytes: int, step_bytes: int | None) -> int:
    """The smallest size that a search of this step can find at or above the size."""
    step = step_bytes or 1
    return -(-size_bytes // step) * step


def _result_row(result_id: str, run_id: str, job: JobRecord, sweep: SweepRecord | None) -> dict[str, Any]:
    metrics = {name: (metric.take(sweep) if sweep else None) for name, metric in METRICS.items()}
    return {
        "result_id": result_id,
        "run_id": run_id,
        "job_id": job.id,
        "created": job.finished,
        "model": job.model,
        "model_sha256": job.model_sha256,
        "board": job.board,
        "rig": job.rig,
        "probe_uid": job.probe_uid,
        **msgspec.structs.asdict(job.conditions),
        "kernels": job.kernels,
        "build_id": job.build_id,
        "status": job.status.value,
        "reason": job.reason,
        "attempts": len(job.attempts),
        "seconds": job.seconds,
        "record_path": job.attempts[-1].record_path if job.attempts else "",
        **metrics,
    }


def _environment(sweep: SweepRecord) -> list[tuple[str, Any]]:
    """What the device told of itself, one fact a row."""
    facts: list[tuple[str, Any]] = [("harness_version", sweep.harness_version)]
    for part in (sweep.device, sweep.environment):
        if isinstance(part, msgspec.Struct):
            values = msgspec.structs.asdict(part)
            facts += [(name, value) for name, value in values.items() if isinstance(value, str | int | float)]
    return list(dict(facts).items())


def _job_of(sweep: SweepRecord) -> JobRecord:
    """A sweep seen as a job."""
    from harness.record.lab_run import JobStatus

    status = {"ok": JobStatus.PASSED, "failed": JobStatus.FAILED}.get(sweep.status, JobStatus.ERROR)
    name = sweep.model_name.replace(".tflite", "")
    return JobRecord(
        id=f"{name}/{sweep.board}/{sweep.kernels}",
        model=name,
        model_path=sweep.model.path,
        model_sha256=sweep.model.sha256,
        board=sweep.board,
        kernels=sweep.kernels,
        status=status,
        reason=sweep.error.message if sweep.error else "",
        build_id=sweep.device.build_id if sweep.device else "",
        seconds=sweep.seconds,
        conditions=conditions_of(sweep),
        finished=sweep.created,
    )
