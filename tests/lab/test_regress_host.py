"""Whole lab runs on the host board: real TFLM, real worker processes, the command as a user types it."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.lab.history import load
from harness.lab.history.keeper import HistoryKeeper
from harness.lab.history.store import HistoryStore
from harness.lab.run_folder import read_journal
from tests.lab import samples
from tests.lab.conftest import silent_port
from tests.patience import PATIENCE_S, wait_until
from tests.processes import Signalled, is_alive

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("tflite_micro") is None, reason="the tflite-micro wheel is Linux x86-64 only"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The examples as a user has them."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    return tmp_path


def _harness(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "harness", *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "HARNESS_HISTORY"}
    return subprocess.run(
        argv, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S, check=False, env=environment
    )


def _document(done: subprocess.CompletedProcess[str]) -> Any:
    return json.loads(done.stdout)


def test_the_example_passes_out_of_the_box(folder: Path) -> None:
    done = _harness(folder, "regress", "examples/suite.yaml", "--json", "--junit-xml", "junit.xml")
    assert done.returncode == 0, done.stderr
    run = _document(done)
    assert (run["schema"], run["schema_version"], run["exit_code"]) == ("harness.regress", 1, 0)
    assert {job["model"]: job["status"] for job in run["jobs"]} == {
        "hello": "passed",
        "kws": "passed",
        "residual": "passed",
        "svdf": "passed",
    }
    values = {metric["name"]: metric["value"] for metric in run["jobs"][-1]["metrics"]}
    assert values["arena_min_bytes"] == 3328
    assert values["arena_used_bytes"] == 2528
    assert (folder / "junit.xml").is_file()
    frame = load(folder / "results" / "history.sqlite")
    assert sorted(frame.model) == ["hello", "kws", "residual", "svdf"]
    assert list(frame[frame.model == "svdf"].arena_min_bytes) == [3328]


def test_a_larger_model_in_the_place_of_another_is_a_regression(folder: Path) -> None:
    shutil.copy(folder / "examples" / "kws.tflite", folder / "examples" / "svdf.tflite")
    done = _harness(folder, "regress", "examples/suite.yaml", "-k", "svdf", "--json", "--ci", "github")
    assert done.returncode == 1
    (job,) = _document(done)["jobs"]
    assert job["status"] == "failed"
    assert "arena_min_bytes: 24,272, baseline 3,328: +20,944" in job["reason"]
    assert "that of another model file, sha256 " in job["reason"]
    assert "::error file=examples/suite.yaml,title=svdf/host/default failed" in done.stderr


def test_baselines_are_updated_after_a_look_at_them(folder: Path) -> None:
    shutil.copy(folder / "examples" / "hello.tflite", folder / "examples" / "kws.tflite")
    assert _harness(folder, "regress", "examples/suite.yaml", "-k", "kws").returncode == 0  # improved
    asked = _harness(folder, "baseline", "update", "examples/suite.yaml")
    assert asked.returncode == 2
    assert "~ kws on host: arena_min_bytes  24,272 -> 1,936  (-22,336)" in asked.stdout
    assert "--yes" in asked.stderr
    before = (folder / "examples" / "baselines" / "kws--host.json").read_text()
    assert _harness(folder, "baseline", "update", "examples/suite.yaml", "--yes").returncode == 0
    after = (folder / "examples" / "baselines" / "kws--host.json").read_text()
    changed = [line for line in after.splitlines() if line not in before.splitlines()]
    assert '          "value": 1936,' in changed
    assert "nothing changes" in _harness(folder, "baseline", "update", "examples/suite.yaml").stdout


def _suites_of_one_name(folder: Path) -> None:
    """Two teams call their suite ``nightly`` and their model ``net``; the results go to one place."""
    for team, model in (("a", "hello"), ("b", "svdf")):
        (folder / team).mkdir()
        shutil.copy(folder / "examples" / f"{model}.tflite", folder / team / "net.tflite")
        (folder / team / "nightly.yaml").write_text(
            "name: nightly\nmodels: [{path: net.tflite}]\nboards: [host]\nbaselines: {folder: base}\n"
        )


def test_baselines_are_of_the_suites_own_run(folder: Path) -> None:
    """The newest run of the name was the other team's: its 3,328 became the baseline of a model that needs 1,936."""
    _suites_of_one_name(folder)
    assert _harness(folder, "regress", "a/nightly.yaml").returncode == 0
    absent = _harness(folder, "baseline", "update", "b/nightly.yaml", "--yes")
    assert absent.returncode == 2
    assert f"those there are of {folder}/a/nightly.yaml" in absent.stderr
    assert _harness(folder, "regress", "b/nightly.yaml").returncode == 0
    done = _harness(folder / "a", "baseline", "update", "nightly.yaml", "--results", "../results", "--yes")
    assert done.returncode == 0, done.stderr
    assert "+ net on host: arena_min_bytes  1,936" in done.stdout
    assert '"value": 1936' in (folder / "a" / "base" / "net--host.json").read_text()
    assert not (folder / "b" / "base").exists()


def test_baselines_are_of_the_model_file_that_is_there_now(folder: Path) -> None:
    _suites_of_one_name(folder)
    run = _document(_harness(folder, "regress", "a/nightly.yaml", "--json"))
    others = _harness(folder, "baseline", "update", "b/nightly.yaml", "--run", run["record_path"], "--yes")
    assert others.returncode == 1
    assert (
        "refused net/host/default: it ran another model file (sha256 a00d4e7e1cac) than b/net.tflite" in others.stderr
    )
    (folder / "a" / "net.tflite").unlink()
    gone = _harness(folder, "baseline", "update", "a/nightly.yaml", "--yes")
    assert "refused net/host/default: cannot read a/net.tflite" in gone.stderr
    assert not list(folder.glob("*/base"))


#: In the journal of a run: a job was tried; a job has ended.
TRIED, ENDED = '"type":"attempt"', '"type":"job"'


def _signalled(number: signal.Signals, line: str, count: int, folder: Path) -> Signalled:
    """The run of the example gets the signal as soon as ``count`` such lines are in its journal."""
    return Signalled(
        number,
        "run.jsonl",
        line,
        count,
        folder / "children",
        "regress",
        "examples/suite.yaml",
        cwd=folder,
        timeout=PATIENCE_S,
    )


@pytest.mark.parametrize("jobs", [1, 3])
def test_killed_at_any_moment_a_run_goes_on_and_repeats_nothing(folder: Path, jobs: int) -> None:
    """kill -9 after some finished jobs: the next run does the others, and the record holds all."""
    killed = _signalled(signal.SIGKILL, ENDED, jobs, folder)
    assert killed.done.returncode == -signal.SIGKILL, killed.done.stderr
    (journal,) = (folder / "results" / "lab").glob("*/run.jsonl")
    past = read_journal(journal)
    assert past is not None
    finished = set(past.finished)
    assert len(finished) == jobs
    assert not (journal.parent / "run.json").exists()

    done = _harness(folder, "regress", "examples/suite.yaml", "--json")
    assert done.returncode == 0, done.stderr
    run = _document(done)
    assert run["run_id"] == journal.parent.name
    assert run["resumed_jobs"] == len(finished)
    assert f"goes on from {journal.parent.name}: {len(finished)} of 4 jobs done" in done.stderr
    assert len(run["jobs"]) == 4
    assert all(job["status"] == "passed" for job in run["jobs"])
    told = [line for line in done.stderr.splitlines() if line.startswith("[")]
    assert not any(name in line for line in told for name in finished)
    # what was finished was not swept again: a worker whose scheduler is killed may just have ended another job
    folders = {job["id"]: folder / Path(job["attempts"][-1]["record_path"]).parent for job in run["jobs"]}
    records = {name: len(list(place.glob("*.json"))) for name, place in folders.items()}
    assert [records[name] for name in finished] == [1] * jobs
    assert all(count in {1, 2} for count in records.values())
    assert sorted(load(folder / "results" / "history.sqlite").job_id) == sorted(job["id"] for job in run["jobs"])


def test_a_damaged_line_of_the_journal_is_told_and_costs_no_other(folder: Path) -> None:
    """A line that could not be read ended the reading: what came after it was done again, or all of it, in silence."""
    killed = _signalled(signal.SIGKILL, ENDED, 3, folder)
    assert killed.done.returncode == -signal.SIGKILL, killed.done.stderr
    (journal,) = (folder / "results" / "lab").glob("*/run.jsonl")
    lines = journal.read_bytes().splitlines(keepends=True)
    ended = [at for at, line in enumerate(lines) if ENDED.encode() in line]
    lines[ended[0]] = b"\xff" * 40 + b"\n"
    journal.write_bytes(b"".join(lines))
    done = _harness(folder, "regress", "examples/suite.yaml", "--json")
    assert done.returncode == 0, done.stderr
    run = _document(done)
    where = f"results/lab/{journal.parent.name}/run.jsonl"
    assert run["notes"] == [f"{where}, line {ended[0] + 1}, is damaged: what it held is done again"]
    assert f"note: {run['notes'][0]}\n" in done.stderr
    assert (run["run_id"], run["resumed_jobs"], len(run["jobs"])) == (journal.parent.name, len(ended) - 1, 4)

    (journal.parent / "run.json").unlink()
    journal.write_bytes(b"garbled\n" + b"".join(lines[1:]))
    anew = _document(_harness(folder, "regress", "examples/suite.yaml", "--json"))
    assert anew["notes"] == [f"{where} is damaged from its first line on: nothing can go on from it"]
    assert (anew["resumed_jobs"], len(anew["jobs"])) == (0, 4)


def test_a_killed_scheduler_leaves_no_process_behind(folder: Path) -> None:
    """Killed when the first of four jobs has been tried: its worker waits for the next."""
    killed = _signalled(signal.SIGKILL, TRIED, 1, folder)
    assert killed.done.returncode == -signal.SIGKILL
    assert killed.children
    wait_until(lambda: not any(map(is_alive, killed.children)), "the workers end with their scheduler")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_ends_the_workers_and_the_next_run_goes_on(folder: Path, number: signal.Signals) -> None:
    interrupted = _signalled(number, ENDED, 1, folder)
    told = interrupted.done.stderr
    assert interrupted.done.returncode == 130, told
    assert "the same command goes on" in told
    assert "Traceback" not in told
    assert interrupted.children
    wait_until(lambda: not any(map(is_alive, interrupted.children)), "the workers end with the run")
    done = _harness(folder, "regress", "examples/suite.yaml", "--json")
    assert done.returncode == 0
    assert _document(done)["resumed_jobs"] >= 1


def test_two_runs_at_once_do_not_disturb_each_other(folder: Path) -> None:
    argv = [sys.executable, "-m", "harness", "regress", "examples/suite.yaml", "-k", "svdf or hello", "--json"]
    runs = [subprocess.Popen(argv, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    documents = []
    for process in runs:
        out, err = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, err
        documents.append(json.loads(out))
    assert documents[0]["run_id"] != documents[1]["run_id"]
    assert all(job["status"] == "passed" for document in documents for job in document["jobs"])
    assert len(load(folder / "results" / "history.sqlite")) == 4


@pytest.mark.parametrize(
    ("missing", "limit", "code", "told"),
    [
        ("fail", "4KiB", 1, True),
        ("warn", "4KiB", 0, True),
        ("ignore", "4KiB", 0, False),
        ("ignore", "baseline + 2%", 0, True),
    ],
)
def test_a_misspelt_folder_of_baselines_is_told(folder: Path, missing: str, limit: str, code: int, told: bool) -> None:
    (folder / "s.yaml").write_text(
        "name: s\nboards: [host]\nmeasure: [arena_used_bytes]\n"
        f'models: [{{path: examples/hello.tflite, limits: ["arena_min_bytes <= {limit}"]}}]\n'
        f"baselines: {{folder: bl-none, missing: {missing}}}\n"
    )
    done = _harness(folder, "regress", "s.yaml")
    assert done.returncode == code, done.stderr
    assert ("arena_min_bytes: no baseline" in " ".join(done.stdout.split())) is told
    assert ("there is no bl-none" in " ".join(done.stdout.split())) is told


def test_what_was_measured_is_kept_when_there_is_no_time_for_another_try(folder: Path) -> None:
    """Times out of tolerance are measured again; where --max-minutes was over by then, the job was kept without the
    numbers that it had."""
    (folder / "s.yaml").write_text(
        "name: s\nboards: [host]\nmeasure: [arena_min_bytes, invoke_cycles]\nbaselines: {folder: base}\n"
        "models: [{path: examples/hello.tflite}]\n"
    )
    assert _harness(folder, "regress", "s.yaml").returncode == 0
    assert _harness(folder, "baseline", "update", "s.yaml", "--yes").returncode == 0
    file = folder / "base" / "hello--host.json"
    baseline = json.loads(file.read_text())
    baseline["entries"][0]["metrics"]["invoke_cycles"]["value"] = 1
    file.write_text(json.dumps(baseline))
    done = _harness(folder, "regress", "s.yaml", "--max-minutes", "0.01", "--json")
    assert done.returncode == 1, done.stderr
    (job,) = _document(done)["jobs"]
    assert (job["status"], len(job["attempts"])) == ("failed", 1)
    assert job["reason"].startswith("out_of_tolerance: invoke_cycles: ")
    assert job["reason"].endswith("not tried again: the time of the run was over (--max-minutes)")
    arena, cycles = job["metrics"]
    assert (arena["name"], arena["value"], arena["status"]) == ("arena_min_bytes", 1936, "passed")
    assert (cycles["name"], cycles["baseline"], cycles["status"]) == ("invoke_cycles", 1, "failed")
    assert cycles["value"] > 100
    assert (job["conditions"]["timing"], job["kernels"]) == ("host_ns", "reference")
    assert load(folder / "results" / "history.sqlite").invoke_cycles[1] == cycles["value"]


def test_a_board_that_no_rig_has_is_skipped(folder: Path) -> None:
    (folder / "lab.yaml").write_text("rigs: [{name: here, board: host}]\n")
    suite = folder / "examples" / "suite.yaml"
    suite.write_text(suite.read_text().replace("boards: [host]", "boards: [host, nucleo-f746zg]"))
    done = _harness(folder, "regress", "examples/suite.yaml", "-k", "hello", "--json")
    assert done.returncode == 0, done.stderr
    assert {job["board"]: job["status"] for job in _document(done)["jobs"]} == {
        "host": "passed",
        "nucleo-f746zg": "skipped",
    }
    only = _harness(folder, "regress", "examples/suite.yaml", "-k", "nucleo")
    assert only.returncode == 5


@pytest.mark.parametrize(
    ("name", "told"), [("hots", "host"), ("sim:nucleo-f446er", "sim:nucleo-f446re"), ("sim:host", "no twin of")]
)
def test_a_misspelt_board_is_refused_before_anything_runs(folder: Path, name: str, told: str) -> None:
    (folder / "s.yaml").write_text(f'name: s\nmodels: [{{path: examples/hello.tflite}}]\nboards: [host, "{name}"]\n')
    done = _harness(folder, "regress", "s.yaml", "-k", "not sim")
    assert done.returncode == 2
    assert name.removeprefix("sim:") in done.stderr and told in done.stderr
    assert not (folder / "results").exists()


@pytest.mark.parametrize(
    ("lab", "has"),
    [
        ("rigs: [{name: here, board: host}, {name: there, board: host}]\n", "it has here, there"),
        ("", "there is no lab"),
    ],
)
def test_a_rig_that_this_lab_does_not_have_is_told(folder: Path, lab: str, has: str) -> None:
    if lab:
        (folder / "lab.yaml").write_text(lab)
    (folder / "s.yaml").write_text(
        "name: s\nmodels: [{path: examples/hello.tflite}]\nboards: [{rig: here}, {rig: heer}]\n"
    )
    done = _harness(folder, "regress", "s.yaml", "--json")
    run = _document(done)
    assert f'no rig "heer"; {has}' in run["notes"][-1]
    assert [job["status"] for job in run["jobs"]] == (["passed", "skipped"] if lab else ["skipped", "skipped"])
    assert done.returncode == (0 if lab else 5)


def test_what_to_do_about_an_error_is_in_the_record_and_on_the_terminal(folder: Path) -> None:
    model = folder / "examples" / "hello.tflite"
    model.write_bytes(model.read_bytes()[:700])
    (folder / "s.yaml").write_text("name: s\nmodels: [{path: examples/hello.tflite}]\nboards: [host]\n")
    (job,) = _document(_harness(folder, "regress", "s.yaml", "--json"))["jobs"]
    assert (job["status"], job["exit_code"]) == ("error", 2)
    remedy = job["remedy"]
    assert remedy == job["attempts"][-1]["error"]["remedy"] != ""
    done = _harness(folder, "regress", "s.yaml", "--markdown", "r.md", "--ci", "github", "--fresh")
    assert remedy in " ".join(done.stdout.split())
    assert remedy in (folder / "r.md").read_text().replace("\\", "")
    assert f"%0A{remedy}" in done.stdout


def test_a_kernel_set_that_the_host_does_not_have_has_a_remedy_for_suites_too(folder: Path) -> None:
    """It was to leave ``--kernels`` away, an option that ``harness regress`` does not have."""
    (folder / "s.yaml").write_text(
        "name: s\nmodels: [{path: examples/hello.tflite}]\nboards: [{board: host, kernels: [cmsis_nn]}]\n"
    )
    (job,) = _document(_harness(folder, "regress", "s.yaml", "--json"))["jobs"]
    assert job["reason"] == "kernels.not_on_board: the host board has the reference kernels, not cmsis_nn"
    assert job["remedy"] == "take the reference kernels (they are its own choice), or a board with a Cortex-M core"


def test_a_lab_file_takes_neither_the_host_nor_the_twins_away(folder: Path) -> None:
    """Both are on every computer: one rig for each that the lab does not list, under a name that is free."""
    (folder / "lab.yaml").write_text(
        "rigs:\n  - {name: host, board: nucleo-f746zg}\n"
        '  - {name: t7, board: "sim:nucleo-f746zg"}\n  - {name: t7b, board: "sim:nucleo-f746zg"}\n'
    )
    (folder / "s.yaml").write_text(
        "name: s\nmodels: [{path: examples/hello.tflite}]\n"
        'boards: [host, "sim:nucleo-f446re", "sim:nucleo-f746zg", nrf52840dk]\n'
    )
    listed = _document(_harness(folder, "regress", "s.yaml", "--list", "--json"))
    assert {row["id"]: row["rigs"] for row in listed["jobs"]} == {
        "hello/host/default": ["host-2"],
        "hello/sim:nucleo-f446re/default": ["sim-nucleo-f446re"],
        "hello/sim:nucleo-f746zg/default": ["t7", "t7b"],
        "hello/nrf52840dk/default": [],
    }
    done = _harness(folder, "regress", "s.yaml", "-k", "host", "--json")
    assert done.returncode == 0, done.stderr
    (job,) = _document(done)["jobs"]
    assert (job["status"], job["rig"]) == ("passed", "host-2")


def test_a_wrong_pin_fails_and_a_missing_model_is_an_error(folder: Path) -> None:
    (folder / "s.yaml").write_text(
        "name: s\nmodels:\n  - {path: examples/hello.tflite, sha256: '" + "0" * 64 + "'}\n  - path: gone.tflite\n"
        "boards: [host]\n"
    )
    done = _harness(folder, "regress", "s.yaml", "--json")
    jobs = {job["model"]: job for job in _document(done)["jobs"]}
    assert (jobs["hello"]["status"], jobs["hello"]["exit_code"]) == ("failed", 1)
    assert (jobs["gone"]["status"], jobs["gone"]["exit_code"]) == ("error", 2)
    assert done.returncode == 2


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("regress",), 2, "no suite is named"),
        (("regress", "gone.yaml"), 2, "gone.yaml: No such file"),
        (("regress", "examples/suite.yaml", "-k", "nothing"), 2, "no job is selected"),
        (("regress", "examples/suite.yaml", "--shard", "5/2"), 2, "is no part"),
        (("baseline", "update", "examples/suite.yaml"), 2, "no run of suite example is finished"),
        (("history",), 2, "there is no history"),
    ],
)
def test_mistakes_are_answered_with_a_remedy(folder: Path, arguments: tuple[str, ...], code: int, text: str) -> None:
    done = _harness(folder, *arguments)
    assert done.returncode == code
    assert text in done.stderr
    assert "Traceback" not in done.stderr


def test_the_tolerance_of_outputs_goes_along_to_the_sweep(folder: Path) -> None:
    """The suite's is for every model, a model's own in its place; equal outputs are within 0 steps."""
    (folder / "s.yaml").write_text(
        "name: s\ntolerance_steps: 0\nboards: [host]\nmodels:\n"
        "  - {path: examples/hello.tflite}\n  - {path: examples/svdf.tflite, tolerance_steps: 2.5}\n"
    )
    done = _harness(folder, "regress", "s.yaml", "--json")
    assert done.returncode == 0, done.stderr
    records = {
        job["model"]: json.loads((folder / job["attempts"][0]["record_path"]).read_text())
        for job in _document(done)["jobs"]
    }
    steps = {name: record["reference"]["tolerance_steps"] for name, record in records.items()}
    assert steps == {"hello": 0, "svdf": 2.5}


@pytest.mark.parametrize("away", ["refused", "no database", "later version", "no driver"])
def test_a_history_that_is_away_from_the_start_ends_no_run(folder: Path, away: str) -> None:
    """The database refused the connection: exit 3, and in the morning nothing was measured."""
    place = folder / "results" / "history.sqlite"
    place.parent.mkdir()
    with silent_port() as port:
        if away == "no database":
            place.write_text("these are notes" * 100)
        elif away == "later version":
            HistoryStore.open(str(place)).close()
            with contextlib.closing(sqlite3.connect(place)) as newer:
                newer.execute("UPDATE harness_schema SET version = 99")
                newer.commit()
        else:
            pytest.importorskip("psycopg", reason="needs the extra postgres")
        urls = {"refused": f"postgresql://lab:s3cret@127.0.0.1:{port}/h", "no driver": "mysql://lab:s3cret@127.0.0.1/h"}
        where = urls.get(away, str(place))
        argv = ("regress", "examples/suite.yaml", "-k", "hello", "--history", where, "--json")
        done = _harness(folder, *argv)
    assert done.returncode == 0, done.stderr
    run = _document(done)
    assert [metric["value"] for metric in run["jobs"][0]["metrics"]][:2] == [1936, 1504]
    (note,) = run["notes"]
    later = f"the run goes on without it; later: harness history --import results/lab/{run['run_id']}"
    assert note.startswith("the history" if away == "no driver" else "history ") and note.endswith(later)
    assert done.stderr.startswith("note: ") and "s3cret" not in done.stderr + done.stdout
    imported = _harness(folder, "history", "--import", f"results/lab/{run['run_id']}", "--history", "h.sqlite")
    assert imported.stdout == "1 result in h.sqlite\n"
    assert list(load(folder / "h.sqlite").arena_min_bytes) == [1936]


def test_a_history_that_is_damaged_during_the_run_ends_no_run(tmp_path: Path) -> None:
    """Reading a rig's earlier times from a database that had gone ended the run, where writing did not."""
    told: list[str] = []
    place = tmp_path / "h.sqlite"
    keeper = HistoryKeeper(str(place), "harness history --import r", told.append)
    keeper.keep(lambda store: store.add_run(samples.run()))
    with contextlib.closing(sqlite3.connect(place)) as other:
        other.execute("ALTER TABLE results RENAME TO gone")
    conditions = samples.job().conditions
    assert keeper.past(lambda store: store.past_values("left", "kws", "ab" * 32, "invoke_cycles", conditions)) == ()
    keeper.keep(lambda store: store.add_result("run-1", samples.job(), samples.sweep()))
    assert keeper.past(lambda _store: [1]) == ()  # it is left alone
    assert told == keeper.notes and len(told) == 1
    assert "no such table: results" in told[0]
    keeper.close()


@pytest.mark.parametrize(
    ("place", "told", "remedy"),
    [
        ("examples", "Is a directory", "name a file, not a folder"),
        ("examples/suite.yaml/r", "Not a directory", "a part of the path is a file: choose another place"),
        ("/proc/r", "No such file or directory", "choose another place"),
    ],
)
def test_a_report_that_cannot_be_written_costs_neither_the_result_nor_the_others(
    folder: Path, place: str, told: str, remedy: str
) -> None:
    """A misspelt place ended a night with an error, and its table was never printed."""
    argv = ("regress", "examples/suite.yaml", "-k", "hello", "--junit-xml", place, "--markdown", "r.md")
    done = _harness(folder, *argv)
    assert done.returncode == 3
    assert "hello/host" in done.stdout and "1 passed in" in done.stdout
    assert done.stderr.endswith(f"{place}: {told}\n  {remedy}\n")
    assert (folder / "r.md").read_text().startswith("## Lab run example: 1 passed")
    document = _harness(folder, *argv, "--json")
    assert (document.returncode, _document(document)["exit_code"]) == (3, 0)
    assert f"{place}: {told}\n" in document.stderr


def test_list_runs_nothing(folder: Path) -> None:
    done = _harness(folder, "regress", "examples/suite.yaml", "--list", "--json")
    rows = _document(done)["jobs"]
    assert [row["id"] for row in rows] == [f"{name}/host/default" for name in ("hello", "kws", "residual", "svdf")]
    assert all(row["rigs"] for row in rows)
    assert not (folder / "results").exists()
