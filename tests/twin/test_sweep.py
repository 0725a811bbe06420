"""The whole way without a mock: render, compile (fake TFLM), pyOCD flashes, read-back, boot, hello, trials, record.

The fake's rules (tests/firmware/fake_tflm/README.md): 3 tensors of 64 bytes and 2 operators are used; the minimum is 24
bytes for each of the 7 tensors above that.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.board.lab_file import RigEntry
from harness.device.bench import Bench, InputPlan
from harness.device.client import Device
from harness.errors import DeviceError
from harness.probe.protocol import FlashImage
from harness.record.schema import SweepRecord
from harness.rig.opening import open_rig
from harness.rig.options import RigOptions
from harness.sweep.flow import keep_record, measure_model, sweep_model
from harness.sweep.request import BuildChoice, SilentProgress, Strategy, SweepRequest
from harness.units import align_up
from tests.host_board.presence import needs_host_board
from tests.patience import PATIENCE_S, patient

from .bare_metal import BOARDS, twin_board
from .conftest import small_model

USED = 3 * 64 + 256 + 2 * 16
MINIMUM = USED + 24 * 7


def outcomes(record: SweepRecord) -> dict[int, tuple[str, str | None]]:
    assert record.search is not None
    return {trial.arena_bytes: (trial.outcome, trial.reason) for trial in record.search.trials}


@pytest.mark.parametrize("board", BOARDS)
def test_a_sweep_on_an_emulated_board_finds_the_minimum(board: str, sweep: Callable[..., SweepRecord]) -> None:
    record = sweep(board)
    assert record.status == "ok", record.error
    assert record.measured is not None
    assert record.search is not None
    assert record.device is not None
    assert record.measured.used_bytes == USED
    assert record.search.min_bytes == align_up(MINIMUM, 16)
    assert record.search.largest_failing_bytes == align_up(MINIMUM, 16) - 16
    assert record.search.flashes == 1
    assert record.device.timing == "instructions"
    assert record.measured.timing == "instructions"


@pytest.mark.parametrize("board", ["nucleo-f446re", "nucleo-f746zg"])
def test_the_firmware_aligns_what_a_chip_wants_aligned(board: str, sweep: Callable[..., SweepRecord]) -> None:
    record = sweep(board, "strict-alignment", runs=0)
    assert record.status == "ok", record.error
    assert record.measured is not None
    assert record.search is not None
    assert record.measured.used_bytes == USED
    assert record.search.min_bytes == align_up(MINIMUM, 16)


@pytest.mark.parametrize("board", ["nucleo-f746zg", "nrf52840dk"])
def test_a_board_without_a_wired_uart_talks_through_the_probe(board: str, sweep: Callable[..., SweepRecord]) -> None:
    record = sweep(board, "silent", transport="rtt")
    assert record.status == "ok", record.error
    assert record.measured is not None
    assert record.search is not None
    assert record.measured.used_bytes == USED
    assert record.search.min_bytes == align_up(MINIMUM, 16)


@pytest.mark.parametrize(
    "faults",
    [("drop=400",), ("duplicate=300",), ("corrupt=350",), ("drop-in=250",), ("echo",), ("garbage=200",)],
    ids=lambda faults: faults[0],
)
def test_a_bad_line_costs_time_and_never_a_number(faults: tuple[str, ...], sweep: Callable[..., SweepRecord]) -> None:
    record = sweep("nucleo-f446re", *faults)
    assert record.status == "ok", record.error
    assert record.search is not None
    assert record.measured is not None
    assert record.measured.used_bytes == USED
    assert record.search.min_bytes == align_up(MINIMUM, 16)
    assert {outcome for outcome, _ in outcomes(record).values()} == {"works", "too_small"}


@pytest.mark.parametrize("fault", ["drop=20", "corrupt=60"])
def test_a_line_that_lets_no_frame_through_is_an_error_of_the_link(
    fault: str, sweep: Callable[..., SweepRecord]
) -> None:
    record = sweep("nucleo-f446re", fault)
    assert record.status == "error"
    assert record.error is not None
    assert record.error.code.startswith("link.")
    assert record.measured is None


def test_silence_is_an_error_of_the_link_and_nothing_is_measured(sweep: Callable[..., SweepRecord]) -> None:
    record = sweep("nucleo-f446re", "silent")
    assert record.status == "error"
    assert record.error is not None
    assert record.error.code.startswith(("link.", "device."))
    assert record.measured is None
    assert record.search is None or record.search.min_bytes is None


def test_a_crystal_of_half_the_speed_is_diagnosed(sweep: Callable[..., SweepRecord]) -> None:
    record = sweep("nucleo-f446re", "clock=0.5")
    assert record.status == "error"
    assert record.error is not None
    assert record.measured is None
    assert "half" in record.error.message


def test_power_that_fails_in_a_trial_is_tried_again_on_a_fresh_boot(sweep: Callable[..., SweepRecord]) -> None:
    record = sweep("nucleo-f446re", "brownout-running=420")
    assert record.status == "ok", record.error
    assert record.search is not None
    assert record.search.min_bytes == align_up(MINIMUM, 16)


def test_faults_halts_and_hangs_below_the_minimum_are_too_small_with_their_reason(
    sweep: Callable[..., SweepRecord],
) -> None:
    record = sweep("nucleo-f746zg", steer=f"fake fault<{MINIMUM + 200}")
    assert record.status == "ok", record.error
    assert record.search is not None
    failing = [trial for trial in record.search.trials if trial.outcome == "too_small"]
    assert record.search.min_bytes == align_up(MINIMUM + 200, 16)
    assert {trial.reason for trial in failing} == {"fault"}
    assert "cfsr 0x00010000" in failing[0].detail, "UNDEFINSTR"
    assert ", in " in failing[0].detail, "the function that the PC is in"


def test_a_fault_with_the_ample_arena_is_the_models_or_devices_and_no_evidence(
    sweep: Callable[..., SweepRecord],
) -> None:
    record = sweep("nucleo-f746zg", steer="fake fault<900000")
    assert record.status == "error"
    assert record.error is not None
    assert record.error.code == "trial.fault"
    assert "pc 0x" in record.error.message
    assert ", in " in record.error.message
    assert record.search is None or record.search.min_bytes is None


def test_an_invoke_that_never_returns_with_the_ample_arena_ends_in_time(sweep: Callable[..., SweepRecord]) -> None:
    record = sweep("nrf52840dk", steer="fake hang<900000", trial_timeout_s=8.0)
    assert record.status == "error"
    assert record.error is not None
    assert record.error.code == "trial.timeout"


def test_an_old_firmware_that_still_runs_is_found_by_its_build_id(sweep: Callable[..., SweepRecord]) -> None:
    """Flashing seems to succeed, another program answers: nothing is measured with it."""
    record = sweep("nucleo-f746zg")
    assert record.device is not None
    board = twin_board("nucleo-f746zg")
    deadline = patient()
    elf = next(Path(record.record_path or "").parent.glob("firmware/*/firmware.elf"))
    from harness.firmware.elf import read_elf

    running = FlashImage(record.device.build_id, record.model.sha256, read_elf(elf).segments)
    wanted = FlashImage("ab" * 16, record.model.sha256, running.segments)
    with open_rig(board, RigOptions()) as rig:
        rig.probe.flash(running, deadline)
        bench = Bench(rig.probe, Device(rig.link), wanted, InputPlan.seeded(1), trial_timeout_s=PATIENCE_S)
        with pytest.raises(DeviceError) as caught:
            bench.boot(deadline)
    assert caught.value.code == "device.wrong_build"
    assert record.device.build_id in caught.value.message


def test_a_sweep_measures_at_both_sizes_and_certifies(sweep: Callable[..., SweepRecord]) -> None:
    record = sweep("nucleo-f746zg", certify=True, runs=5)

    assert record.status == "ok", record.error
    timing, certificate = record.timing, record.certificate
    assert timing is not None
    assert timing.minimum is not None
    assert timing.profile is not None
    assert (timing.timing, timing.ample.runs, timing.minimum.runs) == ("instructions", 5, 5)
    assert timing.minimum.arena_bytes == align_up(MINIMUM, 16)
    assert timing.minimum.output_digest == timing.ample.output_digest
    assert 0 < timing.ample.minimum <= timing.ample.median <= timing.ample.maximum
    assert [row.name for row in timing.profile.operators] == ["FAKE", "FAKE"], "the tag that the fake gives"
    assert timing.profile.unattributed >= 0
    assert timing.clock is None, "an emulated counter is no clock"
    assert certificate is not None
    assert certificate.fails is not None
    assert (certificate.works.arena_bytes, certificate.works.outcome) == (align_up(MINIMUM, 16), "works")
    assert (certificate.fails.arena_bytes, certificate.fails.outcome) == (align_up(MINIMUM, 16) - 16, "too_small")
    assert certificate.flashes == 2
    assert record.search is not None
    assert record.search.flashes == 1


def test_a_measurement_alone_searches_nothing(sweep: Callable[..., SweepRecord]) -> None:
    record = sweep("nucleo-f446re", job=measure_model, runs=3, arena_bytes=align_up(MINIMUM, 16))

    assert record.status == "ok", record.error
    assert record.search is None
    assert record.timing is not None
    assert record.timing.minimum is not None
    assert (record.timing.ample.runs, record.timing.minimum.arena_bytes) == (3, align_up(MINIMUM, 16))


def test_a_measurement_in_too_small_an_arena_is_an_error(sweep: Callable[..., SweepRecord]) -> None:
    record = sweep("nucleo-f446re", job=measure_model, runs=3, arena_bytes=align_up(MINIMUM, 16) - 16)

    assert record.status == "failed"
    assert record.error is not None
    assert record.error.code == "trial.does_not_work"
    assert record.timing is None


def test_the_naive_way_flashes_for_every_size_finds_the_same_and_times_the_ample_firmware_put_back(
    sweep: Callable[..., SweepRecord],
) -> None:
    record = sweep("nucleo-f446re", strategy=Strategy.REFLASH, runs=2, step_bytes=128)

    assert record.status == "ok", record.error
    assert record.search is not None
    assert record.search.min_bytes == align_up(MINIMUM, 128)
    assert record.search.flashes == len(record.search.trials) >= 10
    assert record.timing is not None and record.timing.minimum is not None
    assert record.timing.minimum.arena_bytes == record.search.min_bytes
    assert record.timing.ample.runs == record.timing.minimum.runs == 2


class _Stages(SilentProgress):
    def __init__(self) -> None:
        self.seen: list[str] = []

    def stage(self, text: str) -> None:
        self.seen.append(text)


def test_a_board_that_is_not_there_is_told_before_its_firmware_is_built(
    fake_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_TFLM", str(fake_library))
    (tmp_path / "small.tflite").write_bytes(small_model("a small model"))
    board = "nucleo-f746zg"
    rig = RigEntry(name="desk", board=board, probe="066AFF00000000000000NOBODY")
    stages = _Stages()
    record = keep_record(sweep_model(SweepRequest(tmp_path / "small.tflite", board, rig=rig, results=tmp_path), stages))
    assert record.error is not None and record.error.code == "probe.absent"
    assert stages.seen == ["read", "check", "plan"]


def test_variants_are_built_and_recorded(sweep: Callable[..., SweepRecord]) -> None:
    uncached = sweep(
        "nucleo-f746zg",
        job=measure_model,
        runs=2,
        build=BuildChoice(arena_region="dtcm", optimise="O2", caches=False),
        variant=(("cache", "off"),),
    )

    assert uncached.status == "ok", uncached.error
    assert uncached.variant == {"cache": "off"}
    environment = uncached.environment
    assert environment is not None
    assert (environment.arena_region, environment.optimisation) == ("dtcm", "-O2")
    assert (environment.icache_enabled, environment.dcache_enabled) == (False, False)
    assert environment.flash_accelerator_enabled is False


@pytest.mark.parametrize(
    ("fault", "reached"), [("", 921_600), ("max-baud=300000", 230_400), ("max-baud=120000", 115_200)]
)
def test_the_rate_is_raised_as_far_as_the_line_holds(
    fault: str, reached: int, sweep: Callable[..., SweepRecord]
) -> None:
    record = sweep("nucleo-f746zg")
    assert record.device is not None
    elf = next(Path(record.record_path or "").parent.glob("firmware/*/firmware.elf"))
    from harness.device.line_speed import LineSpeed
    from harness.firmware.elf import read_elf

    board = twin_board("nucleo-f746zg")
    deadline = patient()
    image = FlashImage(record.device.build_id, record.model.sha256, read_elf(elf).segments)
    entry = RigEntry(name="desk", board=board.name, faults=(fault,) if fault else ())
    with open_rig(board, RigOptions(rig=entry)) as rig:
        assert rig.line is not None
        rig.probe.flash(image, deadline)
        device = Device(rig.link)
        hello = Bench(rig.probe, device, image, InputPlan.seeded(1), trial_timeout_s=PATIENCE_S).boot(deadline)
        # a loaded machine is no bad line
        speed = LineSpeed(rig.line, board.uart.baud, board.uart.max_baud, ping_s=2.0, confirm_ms=2500)
        assert speed.raise_rate(device, hello, deadline) == reached
        assert rig.line.baud == reached
        device.ping(bytes(200), deadline)


@needs_host_board
def test_outputs_beyond_the_tolerance_fail_the_sweep_and_keep_what_was_measured(
    sweep: Callable[..., SweepRecord],
) -> None:
    """The stand-in computes something else than LiteRT and TFLM do."""
    record = sweep("nucleo-f446re", reference=True, tolerance_steps=2.0, runs=0)

    assert record.status == "failed"
    assert record.error is not None
    assert record.error.code == "outputs.differ"
    assert record.search is not None
    assert record.search.min_bytes == align_up(MINIMUM, 16)
    assert record.reference is not None
    assert record.reference.agreement == "different"
    assert record.reference.max_difference is not None
    assert record.reference.max_difference > 2
    assert f"by up to {record.reference.max_difference:g} steps from" in record.error.message
    assert [other.agreement for other in record.reference.others] == ["different"]
