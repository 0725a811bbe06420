"""The host board: real TFLM behind a pseudo-terminal, which crashes and comes up again as a board does."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from harness.deadline import Deadline
from harness.device.bench import Bench
from harness.device.client import Device, RefusedError, RetryPolicy, UnsupportedError
from harness.errors import ProbeError
from harness.link.serial_link import SerialLink
from harness.probe.protocol import FlashImage
from harness.sim.host.board import HostBoard
from harness.sim.host.interpreter import parse_allocations, tflm_commit
from harness.trial import Outcome, Reason
from harness.wire import messages as wire
from harness.wire.generator import digest
from harness.wire.input_plan import InputPlan
from tests.device.fakes import LossyLink
from tests.host_board.presence import needs_host_board
from tests.patience import PATIENCE_S, patient, wait_until
from tests.processes import session_of

pytestmark = needs_host_board

HELLO = Path(__file__).resolve().parents[2] / "examples" / "hello.tflite"
AMPLE = 65536


def image_of(path: Path) -> FlashImage:
    sha = hashlib.sha256(path.read_bytes()).hexdigest()
    return FlashImage(build_id=sha[:32], model_sha256=sha, model_path=str(path))


def soon() -> Deadline:
    return patient()


class Rig:
    """A host board with a bench, flashed with the example model."""

    def __init__(self, *, interpreter: str = "RECORDING", path: Path = HELLO) -> None:
        self.board = HostBoard(interpreter=interpreter)
        self.link = SerialLink(self.board.port)
        self.device = Device(self.link)
        self.image = image_of(path)
        self.board.flash(self.image, soon())
        self.bench = Bench(self.board, self.device, self.image, InputPlan.seeded(1), trial_timeout_s=PATIENCE_S)

    def close(self) -> None:
        self.link.close()
        self.board.close()


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    rig = Rig()
    yield rig
    rig.close()


def test_hello_tells_what_runs(rig: Rig) -> None:
    hello = rig.bench.boot(soon())
    assert hello.board == "host"
    assert (hello.kernels, hello.abi, hello.timing) == (
        wire.KernelSet.REFERENCE,
        wire.Abi.LP64,
        wire.TimingKind.HOST_NS,
    )
    assert hello.tflm_commit == tflm_commit() != ""
    assert hello.model_sha256.hex() == rig.image.model_sha256
    assert (hello.input_count, hello.output_count) == (1, 1)


def test_an_ample_arena_works_and_tells_used_head_tail_and_categories(rig: Rig) -> None:
    run = rig.bench.run(AMPLE, None, soon())
    assert run.trial.outcome is Outcome.WORKS
    report = run.report
    assert report is not None
    assert report.used_bytes == report.head_bytes + report.tail_bytes == run.trial.used_bytes
    allocations = rig.device.allocations(soon())
    assert allocations.total_bytes == report.used_bytes
    categories = {row.category for row in allocations.rows}
    assert {wire.AllocationCategory.EVAL_TENSOR_DATA, wire.AllocationCategory.PERSISTENT_BUFFER_DATA} <= categories


def test_the_output_can_be_read_and_has_the_reported_digest(rig: Rig) -> None:
    run = rig.bench.run(AMPLE, None, soon())
    assert run.report is not None
    output = rig.device.read_object(wire.ReadObject.OUTPUT, 0, 3, soon())
    assert digest(output) == run.report.output_digest


def test_an_arena_that_is_a_little_too_small_fails_with_tflms_words(rig: Rig) -> None:
    trial = rig.bench.run(1024, 1, soon()).trial
    assert (trial.outcome, trial.reason) == (Outcome.TOO_SMALL, Reason.ALLOC_FAILED)
    assert trial.detail


@pytest.mark.parametrize("size", [0, 64])
def test_a_tiny_arena_crashes_tflm_and_leaves_a_fault_record(rig: Rig, size: int) -> None:
    """TFLM dereferences null when its own allocator does not fit: the process dies, as a board faults."""
    run = rig.bench.run(size, 1, soon())
    assert (run.trial.outcome, run.trial.reason) == (Outcome.TOO_SMALL, Reason.FAULT)
    assert run.fault is not None
    assert (run.fault.arena_bytes, run.fault.signal) == (size, signal.SIGSEGV)
    assert "Failed to allocate tail memory" in run.fault.text


def test_the_board_works_after_a_crash(rig: Rig) -> None:
    rig.bench.run(64, 1, soon())
    assert rig.bench.run(AMPLE, None, soon()).trial.outcome is Outcome.WORKS


def test_a_kill_from_outside_is_a_reset_without_a_fault_record(rig: Rig) -> None:
    """The kernel killed the process for want of memory: that says nothing about the arena."""
    before = rig.bench.boot(soon())
    supervisor = rig.board._process.pid
    (firmware,) = [pid for pid in session_of(supervisor) if pid != supervisor]
    os.kill(firmware, signal.SIGKILL)
    assert rig.device.await_boot_line(soon())
    after = rig.device.hello(soon())
    assert (after.boot_count, after.fault_pending) == (before.boot_count + 1, 0)


def test_one_trial_per_boot(rig: Rig) -> None:
    rig.bench.run(AMPLE, None, soon())
    with pytest.raises(RefusedError, match="one trial per boot"):
        rig.device.trial(AMPLE, soon())


def test_what_the_host_cannot_do_is_unsupported(rig: Rig) -> None:
    rig.bench.boot(soon())
    with pytest.raises(UnsupportedError):
        rig.device.profile(soon())
    with pytest.raises(UnsupportedError):
        rig.device.request_baud(921600, soon())


def test_measure_gives_host_nanoseconds_of_every_run(rig: Rig) -> None:
    rig.bench.run(AMPLE, None, soon())
    measured = rig.device.measure(2, 40, soon())
    samples = rig.device.cycles(soon())
    assert (measured.runs, len(samples), min(samples), max(samples)) == (
        40,
        40,
        measured.min_cycles,
        measured.max_cycles,
    )
    assert min(samples) > 0
    assert measured.first_deviation == wire.UNKNOWN_U32


def test_an_uploaded_input_is_used(rig: Rig) -> None:
    rig.bench.boot(soon())
    data = np.full((1, 1), -7, np.int8).tobytes()
    inputs = InputPlan((wire.SetInput(0, wire.InputKind.STAGED),), ((0, data),))
    bench = Bench(rig.board, rig.device, rig.image, inputs, trial_timeout_s=PATIENCE_S)
    staged = bench.run(AMPLE, None, soon())
    other = rig.bench.run(AMPLE, None, soon())
    filled = Bench(
        rig.board,
        rig.device,
        rig.image,
        InputPlan((wire.SetInput(0, wire.InputKind.PATTERN, 0xF9, 1),)),
        trial_timeout_s=PATIENCE_S,
    ).run(AMPLE, None, soon())
    assert staged.trial.output_digest == filled.trial.output_digest != ""
    assert staged.trial.output_digest != other.trial.output_digest


def test_an_upload_of_the_wrong_size_is_the_inputs_fault_not_the_arenas(rig: Rig) -> None:
    inputs = InputPlan((wire.SetInput(0, wire.InputKind.STAGED),), ((0, b"12345"),))
    trial = Bench(rig.board, rig.device, rig.image, inputs, trial_timeout_s=PATIENCE_S).run(AMPLE, 1, soon()).trial
    assert (trial.outcome, trial.reason) == (Outcome.ERROR, None)
    assert "5 bytes uploaded" in trial.detail


@pytest.mark.parametrize("seed", range(3))
def test_through_a_lossy_line_no_number_is_wrong(rig: Rig, seed: int) -> None:
    right = rig.bench.run(AMPLE, None, soon())
    assert right.report is not None
    lossy = Device(LossyLink(rig.link, 0.002, seed), policy=RetryPolicy(first_s=0.1, longest_s=0.2, silent_tries=1000))
    bench = Bench(rig.board, lossy, rig.image, InputPlan.seeded(1), trial_timeout_s=PATIENCE_S)
    for size, outcome in ((AMPLE, Outcome.WORKS), (1024, Outcome.TOO_SMALL), (64, Outcome.TOO_SMALL)):
        run = bench.run(size, right.report.output_digest, patient())
        assert run.trial.outcome is outcome
        if outcome is Outcome.WORKS:
            assert run.trial.used_bytes == right.trial.used_bytes


def test_all_tensors_preserved_gives_their_digests() -> None:
    rig = Rig(interpreter="PRESERVE_ALL")
    try:
        run = rig.bench.run(AMPLE, None, soon())
        assert run.trial.outcome is Outcome.WORKS
        assert run.trial.used_bytes is None  # that interpreter does not record
        digests = rig.device.tensor_digests(soon())
        assert len(digests) > 2
        assert run.report is not None
        assert run.report.output_digest in digests.values()
    finally:
        rig.close()


def test_a_file_that_vanished_is_an_error_of_the_probe(rig: Rig, tmp_path: Path) -> None:
    gone = FlashImage(build_id="00" * 16, model_sha256="00" * 32, model_path=str(tmp_path / "gone.tflite"))
    with pytest.raises(ProbeError, match="cannot flash"):
        rig.board.flash(gone, soon())
    rig.board.flash(rig.image, soon())


def test_closing_ends_every_process() -> None:
    rig = Rig()
    rig.bench.run(AMPLE, None, soon())
    session = rig.board._process.pid
    assert len(session_of(session)) == 2
    rig.close()
    wait_until(lambda: not session_of(session), "the board's processes end")


OWNER = """
import sys
from harness.sim.host.board import HostBoard
board = HostBoard()
print(board._process.pid, flush=True)
sys.stdin.read()
"""


def test_a_killed_tool_leaves_no_process_behind() -> None:
    """kill -9 of the tool in the middle: the board's processes see their parent die."""
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert owner.stdout is not None
    session = int(owner.stdout.readline())
    assert session_of(session)
    os.kill(owner.pid, signal.SIGKILL)
    owner.wait()
    wait_until(lambda: not session_of(session), "the board's processes end with their owner")


def test_the_allocators_print_is_parsed() -> None:
    text = (
        "[RecordingMicroAllocator] Arena allocation total 10032 bytes\n"
        "[RecordingMicroAllocator] Arena allocation head 672 bytes\n"
        "[RecordingMicroAllocator] Arena allocation tail 9360 bytes\n"
        "[RecordingMicroAllocator] 'Persistent buffer data' used 924 bytes with alignment overhead "
        "(requested 772 bytes for 17 allocations)\n"
    )
    parsed = parse_allocations(text)
    assert (parsed.total_bytes, parsed.head_bytes, parsed.tail_bytes) == (10032, 672, 9360)
    assert parsed.rows == (wire.AllocationRow(wire.AllocationCategory.PERSISTENT_BUFFER_DATA, 772, 924, 17),)
    with pytest.raises(ValueError, match="printed no totals"):
        parse_allocations("Failed to allocate")


def test_success_is_monotonic_over_all_sizes_though_the_failures_are_of_many_kinds(rig: Rig) -> None:
    """A03, A05: below the minimum TFLM crashes at some sizes and fails with other words at others."""
    ample = rig.bench.run(AMPLE, None, soon())
    assert ample.report is not None
    trials = [rig.bench.run(size, ample.report.output_digest, soon()).trial for size in range(0, 2000, 48)]
    works = [trial.outcome is Outcome.WORKS for trial in trials]
    assert works == sorted(works)
    assert all(trial.outcome is Outcome.TOO_SMALL for trial in trials if trial.outcome is not Outcome.WORKS)
    assert {trial.reason for trial in trials} >= {Reason.ALLOC_FAILED, Reason.FAULT}
    assert len({trial.detail for trial in trials}) >= 5
