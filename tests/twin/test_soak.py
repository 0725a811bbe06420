"""Soaks on an emulated board: what the stand-in TFLM changes at a known Invoke is found, with its index."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.record.schema import SoakRecord, SweepRecord
from harness.sweep.flow import soak_model
from harness.sweep.request import SilentProgress, SoakSpec

from .conftest import svdf_model

#: The invocation in which a boot's first measured run comes: the trial's own and one warm-up are before it.
FIRST = 2
ARENA = 1024


@pytest.fixture
def soak(sweep: Callable[..., SweepRecord]) -> Callable[..., SweepRecord]:
    def run(steer: str = "fake", runs: int = 200, **choices: Any) -> SweepRecord:
        spec = choices.pop("spec", SoakSpec(runs))
        return sweep("nucleo-f446re", steer=steer, job=soak_model, soak=spec, arena_bytes=ARENA, **choices)

    return run


def soaked(record: SweepRecord) -> SoakRecord:
    assert record.soak is not None, record.error
    return record.soak


def test_a_thousand_runs_stay_constant(soak: Callable[..., SweepRecord]) -> None:
    record = soak(runs=1000)

    found = soaked(record)
    assert record.status == "ok", record.error
    assert (found.verdict, found.runs, found.boots, found.restarts) == ("constant", 1000, 8, 8)
    assert (found.arena_bytes, found.used_bytes, found.timing) == (ARENA, 480, "instructions")
    assert found.min_count == found.max_count, "an emulated core takes the same instructions each time"
    assert found.stack_used_bytes is not None
    assert found.guards == "intact"
    assert record.link is not None
    assert found.deviation is None


@pytest.mark.parametrize(
    ("steer", "what", "first_run", "last_run"),
    [
        ("fake drift@32", "outputs", 30 - 1, 30 - 1),
        ("fake slow@72", "cycles", 70 - 1, 70 - 1),
        ("fake refuse@42", "invoke_failed", 40 - 1, 40 - 1),
    ],
)
def test_the_run_that_differs_is_named(
    steer: str, what: str, first_run: int, last_run: int, soak: Callable[..., SweepRecord]
) -> None:
    record = soak(steer, runs=800)

    deviation = soaked(record).deviation
    assert deviation is not None
    assert record.status == "failed"
    assert record.error is not None
    assert record.error.code == f"soak.{what}"
    assert soaked(record).verdict == "unstable"
    assert (deviation.what, deviation.first_run, deviation.last_run) == (what, first_run, last_run)


@pytest.mark.parametrize(("steer", "what"), [("fake overrun@32", "guard"), ("fake leak@5", "used_bytes")])
def test_what_a_burst_as_a_whole_shows_names_its_runs(steer: str, what: str, soak: Callable[..., SweepRecord]) -> None:
    deviation = soaked(soak(steer, runs=400)).deviation

    assert deviation is not None
    assert deviation.what == what
    assert deviation.first_run < deviation.last_run


def test_free_bytes_within_the_arena_that_are_written_to_are_found(soak: Callable[..., SweepRecord]) -> None:
    assert soaked(soak(interpreter="recording")).fill == "intact"

    deviation = soaked(soak("fake poke@20", interpreter="recording")).deviation
    assert deviation is not None
    assert deviation.what == "fill"


def test_a_fault_comes_with_its_record(soak: Callable[..., SweepRecord]) -> None:
    record = soak("fake crash@52", runs=800)

    deviation = soaked(record).deviation
    assert deviation is not None
    assert record.error is not None
    assert record.error.code == "soak.fault"
    assert deviation.first_run <= 52 - FIRST - 1 <= deviation.last_run
    assert deviation.last_run - deviation.first_run < 64
    assert deviation.fault is not None
    assert (deviation.fault["kind"], deviation.fault["stage"]) == ("usage", "measure")
    assert deviation.fault["cfsr"] == 0x10000, "UNDEFINSTR"
    assert deviation.fault["arena_bytes"] == ARENA


def test_a_run_that_never_returns_is_found_by_its_deadline(soak: Callable[..., SweepRecord]) -> None:
    record = soak("fake freeze@32", runs=400, trial_timeout_s=8.0)

    deviation = soaked(record).deviation
    assert deviation is not None
    assert deviation.what in {"timeout", "fault"}, "the deadline, or the firmware's own watchdog"
    assert deviation.first_run <= 32 - FIRST - 1 <= deviation.last_run


def test_a_model_whose_state_is_reset_is_constant(soak: Callable[..., SweepRecord]) -> None:
    found = soaked(soak(model=svdf_model("fake state<1")))

    assert (found.verdict, found.stateful, found.deviation) == ("constant", True, None)


def test_a_model_that_keeps_its_state_is_stateful_and_not_unstable(soak: Callable[..., SweepRecord]) -> None:
    record = soak(model=svdf_model("fake state<1 keeps<1"))

    assert record.status == "ok", record.error
    assert (soaked(record).verdict, soaked(record).runs) == ("stateful", 200)


def test_changing_outputs_of_a_model_without_state_are_unstable(soak: Callable[..., SweepRecord]) -> None:
    record = soak("fake state<1")

    assert record.status == "failed"
    assert soaked(record).verdict == "unstable"


class Interrupting(SilentProgress):
    """Presses Ctrl-C when the soak tells of its nth boot."""

    def __init__(self, boots: int) -> None:
        self._text = f"{boots} boots"

    def stage(self, text: str) -> None:
        if self._text in text:
            raise KeyboardInterrupt


def test_an_interrupted_soak_goes_on_from_its_last_boot(soak: Callable[..., SweepRecord], tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        soak(runs=400, progress=Interrupting(3))
    assert len(list((tmp_path / "results" / "journal").glob("*.jsonl"))) == 1

    found = soaked(soak(runs=400, resume=True))

    assert (found.runs, found.resumed_runs, found.boots) == (400, 150, 8)
    assert not list((tmp_path / "results" / "journal").glob("*.jsonl"))


def test_minutes_end_a_soak(soak: Callable[..., SweepRecord]) -> None:
    found = soaked(soak(spec=SoakSpec(None, minutes=0.05)))

    assert found.verdict == "constant"
    assert found.asked_minutes == 0.05
    assert found.seconds >= 3.0
    assert found.boots >= 1


def test_an_arena_that_is_too_small_to_begin_with_is_no_deviation(soak: Callable[..., SweepRecord]) -> None:
    record = soak("fake fault<2000")

    assert record.status == "failed"
    assert record.error is not None
    assert record.error.code == "trial.does_not_work"
