from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from harness.errors import ConfigError, UsageError
from harness.lab.job import Job, jobs_of
from harness.lab.limits import parse_limit
from harness.lab.selection import parse_expression, parse_shard
from harness.lab.suite import read_suite

MODEL = b"not looked at here"
SUITE = """
name: night
models:
  - {path: kws.tflite, tags: [smoke], limits: ["arena_min_bytes <= 96KiB"]}
  - {path: "vision/*.tflite", boards: [nucleo-f746zg]}
boards:
  - host
  - {board: nucleo-f746zg, kernels: [reference, cmsis_nn], tags: [big]}
  - {rig: left}
measure: [arena_used_bytes]
"""


@pytest.fixture
def suite_path(tmp_path: Path) -> Path:
    (tmp_path / "vision").mkdir()
    for name in ("kws", "vision/cat", "vision/dog"):
        (tmp_path / f"{name}.tflite").write_bytes(MODEL)
    path = tmp_path / "suite.yaml"
    path.write_text(SUITE)
    return path


def _jobs(path: Path, repeat: int | None = None) -> list[Job]:
    return jobs_of(read_suite(path), path, repeat=repeat)


def test_a_pipe_among_the_models_is_a_problem_of_its_job(suite_path: Path) -> None:
    """Whoever opened it waited for ever, --list too."""
    os.mkfifo(suite_path.parent / "vision" / "pipe.tflite")
    problems = {job.model.name: job.model.problem for job in _jobs(suite_path)}
    assert problems["pipe"].endswith("vision/pipe.tflite is not a regular file")
    assert not any(problem for name, problem in problems.items() if name != "pipe")


@pytest.mark.parametrize("metric", ["arena_min_bytes", "stack_used_bytes"])
def test_the_noise_of_bytes_is_refused(suite_path: Path, metric: str) -> None:
    """``sigma`` for a metric that has no noise was taken, and had no effect."""
    line = f"tolerances: {{{metric}: {{sigma: 4}}}}\n"
    suite_path.write_text(SUITE + line)
    with pytest.raises(ConfigError, match=rf"sigma is for times.* - `\$\.tolerances\.{metric}`"):
        read_suite(suite_path)
    suite_path.write_text(SUITE + line.replace("sigma", "absolute"))
    read_suite(suite_path)


def test_a_suite_comes_down_to_jobs(suite_path: Path) -> None:
    jobs = _jobs(suite_path)
    assert [job.id for job in jobs] == [
        "kws/host/default",
        "kws/nucleo-f746zg/reference",
        "kws/nucleo-f746zg/cmsis_nn",
        "kws/rig:left/default",
        "cat/nucleo-f746zg/reference",
        "cat/nucleo-f746zg/cmsis_nn",
        "dog/nucleo-f746zg/reference",
        "dog/nucleo-f746zg/cmsis_nn",
    ]
    assert jobs[0].model.sha256 == hashlib.sha256(MODEL).hexdigest()
    # a limit's metric is measured too
    assert jobs[0].metrics == ("arena_used_bytes", "arena_min_bytes")
    assert jobs[1].tags == ("smoke", "big")


def test_repeats_have_ids_and_folders_of_their_own(suite_path: Path) -> None:
    jobs = _jobs(suite_path, repeat=3)
    assert [job.id for job in jobs][:3] == ["kws/host/default", "kws/host/default#2", "kws/host/default#3"]
    assert len({job.slug for job in jobs}) == len(jobs) == 24


@pytest.mark.parametrize(
    ("expression", "ids"),
    [
        ("kws and host", ["kws/host/default"]),
        ("not kws and not reference", ["cat/nucleo-f746zg/cmsis_nn", "dog/nucleo-f746zg/cmsis_nn"]),
        ("tag:smoke and (host or rig:)", ["kws/host/default", "kws/rig:left/default"]),
        ("CAT and cmsis_nn", ["cat/nucleo-f746zg/cmsis_nn"]),
    ],
)
def test_k_chooses_by_words(suite_path: Path, expression: str, ids: list[str]) -> None:
    chosen = parse_expression(expression)
    assert [job.id for job in _jobs(suite_path) if chosen.matches(job.words)] == ids


@pytest.mark.parametrize("text", ["", "and", "kws or", "(kws", "kws)", "not", "kws dog", "(" * 60 + "a" + ")" * 60])
def test_a_broken_expression_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_expression(text)
    assert error.value.remedy


@pytest.mark.parametrize("count", [1, 2, 3, 8, 11])
def test_every_job_is_in_exactly_one_shard(suite_path: Path, count: int) -> None:
    jobs = _jobs(suite_path)
    parts = [parse_shard(f"{index}/{count}").take(jobs, key=lambda job: job.id) for index in range(1, count + 1)]
    assert sorted(job.id for part in parts for job in part) == sorted(job.id for job in jobs)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "a/b", "-1/2", "1/2/3", ""])
def test_a_shard_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no part"):
        parse_shard(text)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("name: night", "name: night\ncolour: red", "colour"),
        ("name: night", "name: [a]", "Expected `str`"),
        ("  - host\n", "  - {rig: left, board: host}\n", "$.boards[0]"),
        ("measure: [arena_used_bytes]", "measure: [arena_size]", 'no metric "arena_size"'),
        ("<= 96KiB", "<= 96k", "is no number"),
        ("<= 96KiB", "of 96KiB", "it is not METRIC <= BOUND"),
        ("  - host\n", "  - host\n  - host\n", "kws/host/default is wanted twice"),
        ("vision/*", "nothing/*", "no file matches"),
        ("vision/*.tflite", "**/kws.tflite", 'both called "kws"'),
        ('"vision/*.tflite", ', '"vision/*.tflite", name: x, ', "matches 2 files"),
        ("name: night", "name: night\nretries: -1", "retries"),
        ("boards: [nucleo-f746zg]", "boards: [nucleo-f746zh]", 'no "nucleo-f746zh"; they have "nucleo-f746zg"'),
        ("boards: [nucleo-f746zg]", "boards: [left, x]", 'no "x"; they have "host", "nucleo-f746zg", "left"'),
    ],
)
def test_what_a_suite_must_not_say_is_named(suite_path: Path, old: str, new: str, message: str) -> None:
    assert old in SUITE
    suite_path.write_text(SUITE.replace(old, new))
    with pytest.raises(ConfigError) as error:
        _jobs(suite_path)
    assert message in error.value.message
    assert error.value.remedy


def test_a_missing_model_and_a_wrong_pin_are_problems_of_their_jobs(suite_path: Path) -> None:
    pin = "0" * 64
    text = SUITE.replace("{path: kws.tflite,", f"{{path: kws.tflite, sha256: '{pin}',")
    suite_path.write_text(text.replace("vision/*", "gone"))
    problems = {job.model.name: job.model.problem for job in _jobs(suite_path)}
    assert "pinned is 0000000000000000…" in problems["kws"]
    assert "cannot read" in problems["gone"]


@pytest.mark.parametrize(
    ("text", "baseline", "value", "holds"),
    [
        ("arena_min_bytes <= 98304", None, 98304, True),
        ("arena_min_bytes <= 96KiB", None, 98305, False),
        ("arena_min_bytes == baseline", 1000, 1000, True),
        ("arena_min_bytes <= baseline + 2%", 1000, 1020, True),
        ("arena_min_bytes <= baseline + 2%", 1000, 1021, False),
        ("arena_min_bytes < baseline - 16", 1000, 984, False),
        ("invoke_cycles>=baseline-10%", 1000, 900, True),
    ],
)
def test_limits(text: str, baseline: int | None, value: int, holds: bool) -> None:
    limit = parse_limit(text)
    bound = limit.bound(baseline)
    assert bound is not None
    assert limit.holds(value, bound) is holds


def test_a_limit_relative_to_a_missing_baseline_has_no_bound() -> None:
    assert parse_limit("invoke_cycles <= baseline + 2%").bound(None) is None


def test_a_models_tolerance_of_outputs_takes_the_suites_place(suite_path: Path) -> None:
    assert {job.tolerance_steps for job in _jobs(suite_path)} == {None}
    text = suite_path.read_text().replace("tags: [smoke]", "tags: [smoke], tolerance_steps: 0")
    suite_path.write_text(text + "tolerance_steps: 1.5\n")
    assert {job.model.name: job.tolerance_steps for job in _jobs(suite_path)} == {"kws": 0, "cat": 1.5, "dog": 1.5}


@pytest.mark.parametrize("steps", ["-1", ".nan", ".inf", "many"])
def test_a_tolerance_is_a_number_of_steps(suite_path: Path, steps: str) -> None:
    suite_path.write_text(SUITE + f"tolerance_steps: {steps}\n")
    with pytest.raises(ConfigError, match=r"tolerance_steps"):
        read_suite(suite_path)
