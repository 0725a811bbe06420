"""The bench: one trial per boot, whatever the device does; a lost link is never evidence."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.deadline import Deadline
from harness.errors import DeviceError
from harness.search import SearchSpec, next_arena_bytes, result_of
from harness.trial import Outcome, Reason, Trial
from harness.wire import messages as wire
from tests.device.fakes import OUTPUT_DIGEST, FakeDevice, FakeLink, LossyLink, fake_bench, fault_record, report
from tests.examples import seeds
from tests.patience import patient


def _hang(device: FakeDevice, _size: int) -> None:
    device.hangs = True


def _reboot(device: FakeDevice, _size: int) -> None:
    device.die(None)


def _fault(device: FakeDevice, size: int) -> None:
    device.die(fault_record("HARD", size, pc=0x08001000))


#: A04: what devices were reported to do below the minimum.
WAYS: dict[str, tuple[Callable[[FakeDevice, int], wire.TrialReport | None], Reason]] = {
    "error line": (lambda _device, size: report(size, "ALLOC_FAILED"), Reason.ALLOC_FAILED),
    "nothing": (_hang, Reason.TIMEOUT),
    "reboot banner": (_reboot, Reason.RESET),
    "fault": (_fault, Reason.FAULT),
    "wrong output": (lambda _device, size: report(size, "OK", digest=3), Reason.WRONG_OUTPUT),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_search_converges_to_the_minimum_however_too_small_shows(way: str) -> None:
    below, reason = WAYS[way]
    device = FakeDevice(minimum=1111, below=below)
    bench = fake_bench(device, trial_timeout_s=0.2)  # what a device that hangs is given; the others answer at once
    spec = SearchSpec(ample_bytes=8192, predicted_bytes=1100, step_bytes=1)
    trials: list[Trial] = []
    while (size := next_arena_bytes(trials, spec)) is not None:
        trials.append(bench.run(size, OUTPUT_DIGEST if trials else None, patient()).trial)
    assert result_of(trials, spec).min_bytes == 1111
    assert {trial.reason for trial in trials if trial.outcome is Outcome.TOO_SMALL} == {reason}


def test_every_trial_is_one_fresh_boot() -> None:
    device = FakeDevice()
    bench = fake_bench(device)
    for size in (4096, 2048, 1024):
        bench.run(size, None, patient())
    assert device.boots == 3


def test_a_dead_link_is_an_error_and_no_evidence() -> None:
    device = FakeDevice()

    class Dead(FakeLink):
        def read(self, deadline: Deadline) -> bytes:
            super().read(deadline)
            return b""

    trial = fake_bench(device, Dead(device)).run(500, OUTPUT_DIGEST, patient()).trial
    assert (trial.outcome, trial.reason) == (Outcome.ERROR, Reason.LINK_LOST)
    assert trial.attempts == 3


def test_a_device_that_never_said_that_it_works_is_asked_twice_before_its_silence_counts() -> None:
    """The request itself may have been lost: silence without a Working is only evidence when it repeats."""
    device = FakeDevice()

    class LosesTrialRequests(FakeLink):
        lost = 0

        def write(self, data: bytes, deadline: Deadline) -> None:
            if len(data) == 19 and self.lost < 8:  # a TrialRequest, all eight sendings of the first attempt
                self.lost += 1
                return
            super().write(data, deadline)

    trial = fake_bench(device, LosesTrialRequests(device)).run(2000, OUTPUT_DIGEST, patient()).trial
    assert (trial.outcome, trial.attempts) == (Outcome.WORKS, 2)


def test_a_brown_out_in_the_middle_of_a_trial_is_tried_again_and_recorded() -> None:
    """The supply dipped once during a trial of a size that works: a reset that happens once is no evidence."""
    device = FakeDevice(minimum=1 << 20)

    def dip_once(device: FakeDevice, _size: int) -> None:
        device.minimum = 0
        device.die(None)

    device.below = dip_once
    trial = fake_bench(device).run(2000, OUTPUT_DIGEST, patient()).trial
    assert (trial.outcome, trial.attempts) == (Outcome.WORKS, 2)


def test_a_reboot_before_the_trial_begins_is_tried_again() -> None:
    device = FakeDevice()

    class RebootsAfterHello(FakeLink):
        done = False

        def write(self, data: bytes, deadline: Deadline) -> None:
            if device.boots == 1 and not self.done and b"tflm" not in data and len(data) == 25:  # a SetInput
                self.done = True
                device.boot()
                return
            super().write(data, deadline)

    link = RebootsAfterHello(device)
    trial = fake_bench(device, link).run(2000, OUTPUT_DIGEST, patient()).trial
    assert link.done
    assert (trial.outcome, trial.attempts) == (Outcome.WORKS, 2)


def test_another_build_on_the_device_stops_everything() -> None:
    device = FakeDevice(build_id=bytes(16))
    with pytest.raises(DeviceError, match="runs build 0000"):
        fake_bench(device).run(2000, None, patient())


@pytest.mark.parametrize("seed", seeds(8))
def test_through_a_lossy_line_no_trial_is_judged_wrongly(seed: int) -> None:
    device = FakeDevice(minimum=1000, below=_fault)
    bench = fake_bench(device, LossyLink(FakeLink(device), 0.004, seed))
    for size in (4096, 990, 1000, 999, 1001, 640):
        trial = bench.run(size, OUTPUT_DIGEST, patient()).trial
        if trial.reason is not Reason.LINK_LOST:
            assert (trial.outcome is Outcome.WORKS) == (size >= 1000)
