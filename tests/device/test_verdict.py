"""What an outcome means: every row of the table."""

from __future__ import annotations

import pytest

from harness.device.verdict import NoAnswer, judge
from harness.trial import Outcome, Reason
from harness.wire.messages import GuardState, Stage
from tests.device.fakes import OUTPUT_DIGEST, fault_record, report

AMPLE, SMALLER = None, OUTPUT_DIGEST


@pytest.mark.parametrize("digest", [AMPLE, SMALLER])
def test_a_run_with_the_ample_runs_outputs_works(digest: int | None) -> None:
    verdict = judge(report(1000, "OK"), 1000, digest)
    assert (verdict.outcome, verdict.reason) == (Outcome.WORKS, None)


FAILURES = [
    (report(1000, "ALLOC_FAILED"), Reason.ALLOC_FAILED),
    (report(1000, "INVOKE_FAILED"), Reason.INVOKE_FAILED),
    (report(1000, "GUARD_OVERRUN", guard_offset=1000), Reason.GUARD_OVERRUN),
    (report(1000, "OK", guard=GuardState.OVERRUN), Reason.GUARD_OVERRUN),
    (fault_record("HARD", 1000), Reason.FAULT),
    (fault_record("BUS", 1000), Reason.FAULT),
    (fault_record("USAGE", 1000), Reason.FAULT),
    (fault_record("SIGNAL", 1000, signal=11), Reason.FAULT),
    (fault_record("HALT", 1000), Reason.HALTED),
    (fault_record("WATCHDOG", 1000), Reason.TIMEOUT),
    (fault_record("NONE", 0), Reason.RESET),
    (NoAnswer(2.0, Stage.INVOKE), Reason.TIMEOUT),
]


@pytest.mark.parametrize(("evidence", "reason"), FAILURES, ids=lambda value: str(getattr(value, "value", "")))
def test_a_failure_is_too_small_below_a_run_that_worked_and_an_error_in_the_ample_arena(evidence, reason) -> None:
    assert judge(evidence, 1000, SMALLER).outcome is Outcome.TOO_SMALL
    assert judge(evidence, 1000, SMALLER).reason is reason
    assert judge(evidence, 1000, AMPLE).outcome is Outcome.ERROR
    assert judge(evidence, 1000, AMPLE).reason is reason


def test_other_outputs_than_in_the_ample_arena_are_too_small() -> None:
    verdict = judge(report(1000, "OK", digest=5), 1000, SMALLER)
    assert (verdict.outcome, verdict.reason) == (Outcome.TOO_SMALL, Reason.WRONG_OUTPUT)


@pytest.mark.parametrize("status", ["RESOLVER_FAILED", "ARENA_TOO_LARGE", "INPUT_FAILED", "UNKNOWN"])
@pytest.mark.parametrize("digest", [AMPLE, SMALLER])
def test_what_says_nothing_about_the_arena_is_an_error(status: str, digest: int | None) -> None:
    verdict = judge(report(1000, status), 1000, digest)
    assert (verdict.outcome, verdict.reason) == (Outcome.ERROR, None)
    assert verdict.detail


def test_a_fault_record_of_another_trial_is_an_error() -> None:
    verdict = judge(fault_record("HARD", 640), 1000, SMALLER)
    assert verdict.outcome is Outcome.ERROR
    assert "a fault record of 640 bytes where 1000 were under test" in verdict.detail


def test_an_invoke_that_never_returns_is_said_so() -> None:
    assert judge(NoAnswer(2.0, Stage.INVOKE), 1000, AMPLE).detail == "Invoke did not return in 2 s"


def test_registers_are_told() -> None:
    record = fault_record("BUS", 1000, pc=0x08001234, bfar=0x20050000, cfsr=0x8200)
    detail = judge(record, 1000, SMALLER).detail
    assert detail == "bus in stage allocate, pc 0x08001234, cfsr 0x00008200, bfar 0x20050000"


def test_an_overrun_below_the_arena_has_a_negative_offset() -> None:
    assert judge(report(10, "GUARD_OVERRUN", guard_offset=0xFFFFFFFC), 10, SMALLER).detail.endswith("offset -4")
