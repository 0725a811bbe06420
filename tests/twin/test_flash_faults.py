"""Every defect of probe, flash and chip: what the probe says, and that nothing is written where nothing may be."""

from __future__ import annotations

import math
import signal
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.board.fault_ranges import check_fault
from harness.board.lab_file import RigEntry
from harness.board.twin_faults import FAULTS
from harness.cli.main import main
from harness.deadline import Deadline
from harness.errors import DoesNotFitError, ProbeError, UsageError
from harness.probe import saved_firmware
from harness.probe.protection import ProtectedChipError
from harness.probe.protocol import FlashImage
from harness.probe.pyocd_probe import PyOcdProbe
from harness.rig.opening import open_rig, require_rig
from harness.rig.options import RigOptions
from harness.sim import desk
from harness.sim.device import NoAnswerError
from harness.sim.injection import APPLY, inject
from harness.sim.twin import Twin
from harness.sim.wire import resample
from tests.patience import PATIENCE_S, patient

from .bare_metal import BOARDS, twin_board

PATTERN = bytes((7 * n + n // 256) & 0xFF for n in range(6000))


def image_for(name: str, data: bytes = PATTERN) -> FlashImage:
    return FlashImage("0" * 32, "0" * 64, ((twin_board(name).flash.address, data),))


def soon() -> Deadline:
    return patient()


@pytest.fixture
def probe_of() -> Iterator[Callable[..., PyOcdProbe]]:
    opened: list[PyOcdProbe] = []

    def make(name: str, *faults: str, **options: object) -> PyOcdProbe:
        board = twin_board(name)
        uid = desk.plug(board)
        for fault in faults:
            inject(fault, desk.twin(uid))
        opened.append(PyOcdProbe(board, uid, rig="desk", **options))
        return opened[-1]

    yield make
    for probe in opened:
        probe.close()
        desk.unplug(probe.probe_uid)


def cells(probe: PyOcdProbe, size: int) -> bytes:
    with desk.twin(probe.probe_uid).turn() as chip:
        return bytes(chip.flash.view[:size])


class Looks(Deadline):
    """A deadline that passes after so many looks at it. ``seen`` counts them."""

    __slots__ = ("count", "seen")

    def __init__(self, count: float) -> None:
        super().__init__(math.inf)
        object.__setattr__(self, "count", count)
        object.__setattr__(self, "seen", 0)

    @property
    def passed(self) -> bool:
        object.__setattr__(self, "seen", self.seen + 1)
        return self.seen > self.count


@pytest.mark.parametrize("name", ["nucleo-f446re", "nrf52840dk"])
def test_whenever_the_time_is_over_the_next_flash_makes_up_for_it(name: str, probe_of: Callable) -> None:
    """``--timeout 1`` ended after six seconds, with exit code 0: nobody looked at the deadline."""
    probe, whole = probe_of(name), Looks(math.inf)
    vectors = struct.pack("<II", 0x2000_1000, twin_board(name).flash.address + 0x101)
    probe.flash(image_for(name, vectors + PATTERN[8:]), whole)
    said: list[str] = []
    for looks in (0, 1, 2, 3, 4, whole.seen // 2, whole.seen - 2, whole.seen - 1):
        data = vectors + bytes((byte + 1 + looks) & 0xFF for byte in PATTERN[8:])
        with pytest.raises(ProbeError) as caught:
            probe.flash(image_for(name, data), Looks(looks))
        assert caught.value.code == "flash.timeout"
        assert "--timeout" in caught.value.remedy
        said.append(caught.value.message.removeprefix("rig desk, "))
        if looks == 3:
            probe.close()
        probe.flash(image_for(name, data), soon())
        assert cells(probe, 6000) == data
    assert said[0] == "reading back: the time for it is over; nothing was written to the board"
    assert said[1] == "programming: the time for it is over; nothing was written to the board"
    assert set(said[2:-1]) == {"programming: the time for it is over; its flash may be half written"}
    assert said[-1] == "reading back: the time for it is over; it is programmed, and not read back to its end"


def test_the_time_is_over_while_a_foreign_firmware_is_read(probe_of: Callable, tmp_path: Path) -> None:
    probe = probe_of("nucleo-f446re", save_to=tmp_path)
    probe.flash(image_for("nucleo-f446re"), soon())
    with pytest.raises(ProbeError, match=r"reading the firmware that is on the board: .* nothing was written"):
        probe.flash(image_for("nucleo-f446re", PATTERN[::-1]), Looks(4))
    assert cells(probe, 6000) == PATTERN
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", BOARDS)
def test_an_image_is_programmed_read_back_and_not_programmed_again(name: str, probe_of: Callable) -> None:
    probe = probe_of(name)
    probe.flash(image_for(name), soon())
    assert probe.last_flash.programmed
    assert probe.last_flash.verified_bytes == 6000
    assert cells(probe, 6000) == PATTERN
    probe.flash(image_for(name), soon())
    assert not probe.last_flash.programmed
    probe.flash(image_for(name), soon(), force=True)
    assert probe.last_flash.programmed
    assert probe.read_memory(twin_board(name).flash.address + 100, 20, soon()) == PATTERN[100:120]
    with desk.twin(probe.probe_uid).turn() as chip:
        assert chip.bus.complaints == []


@pytest.mark.parametrize(
    ("fault", "code", "words"),
    [
        ("unpowered", "probe.no_target", "power"),
        ("probe-busy", "probe.busy", "another program"),
        ("probe-old-firmware", "probe.old_firmware", "too old"),
        ("unplug-after=0", "probe.unplugged", "gone"),
        ("unplug-after=150", "probe.unplugged", "gone"),
    ],
)
def test_a_probe_that_fails_is_named_with_rig_step_and_remedy(
    fault: str, code: str, words: str, probe_of: Callable
) -> None:
    probe = probe_of("nucleo-f446re", fault)
    with pytest.raises(ProbeError) as caught:
        probe.flash(image_for("nucleo-f446re"), soon())
    assert caught.value.code == code
    assert caught.value.message.startswith("rig desk, ")
    assert words in caught.value.message + caught.value.remedy
    assert caught.value.exit_code == 5


def test_a_probe_that_is_not_there_is_an_error_of_its_own() -> None:
    probe = PyOcdProbe(twin_board("nrf52840dk"), "sim9-nrf52840dk", rig="desk")
    with pytest.raises(ProbeError) as caught:
        probe.connect(soon())
    assert caught.value.code == "probe.absent"
    assert "sim9-nrf52840dk is not plugged in" in caught.value.message


def test_sleeping_firmware_is_caught_under_reset_and_a_bad_wire_at_a_lower_clock(probe_of: Callable) -> None:
    probe = probe_of("nucleo-f446re", "needs-reset")
    probe.connect(soon())
    assert probe.connection == ("halt at 4 MHz: no_target", "under-reset at 4 MHz: connected")
    slow = probe_of("nrf52840dk", "max-clock=500000")
    slow.connect(soon())
    assert slow.connection[-1] == "under-reset at 0.4 MHz: connected"
    assert len(slow.connection) == 3


def test_no_way_to_connect_lists_the_ways_that_were_tried(probe_of: Callable) -> None:
    probe = probe_of("nucleo-f446re", "max-clock=100000")
    with pytest.raises(ProbeError) as caught:
        probe.connect(soon())
    assert "tried halt at 4 MHz: no_target, under-reset at 4 MHz: no_target" in caught.value.message


def test_a_reset_line_that_is_not_connected_does_not_matter_to_a_system_reset(probe_of: Callable) -> None:
    probe = probe_of("nucleo-f446re", "reset-stuck")
    probe.flash(image_for("nucleo-f446re"), soon())
    boots = desk.twin(probe.probe_uid).boots
    probe.reset(soon())
    assert desk.twin(probe.probe_uid).boots == boots + 1


@pytest.mark.parametrize("name", BOARDS)
def test_a_flash_cell_that_does_not_take_its_value_is_found_by_the_read_back(name: str, probe_of: Callable) -> None:
    """pyOCD itself reports success: it does not verify what it programmed."""
    bad = next(n for n in range(4500, 6000) if PATTERN[n])
    probe = probe_of(name, f"flash-bit={bad}")
    base = twin_board(name).flash.address
    with pytest.raises(ProbeError) as caught:
        probe.flash(image_for(name), soon())
    assert caught.value.code == "flash.verify_failed"
    assert f"flash at 0x{base + bad:08x} (sector {probe._sector_of(base + bad)}) reads 0x00" in caught.value.message


def test_a_sector_that_does_not_erase_is_found_by_the_read_back(probe_of: Callable) -> None:
    probe = probe_of("nucleo-f446re")
    probe.flash(image_for("nucleo-f446re"), soon())
    inject("dead-sector=0", desk.twin(probe.probe_uid))
    with pytest.raises(ProbeError) as caught:
        probe.flash(image_for("nucleo-f446re", PATTERN[::-1]), soon())
    assert caught.value.code == "flash.verify_failed"
    assert "0x08000000 (sector 0)" in caught.value.message


@pytest.mark.parametrize("name", ["nucleo-f446re", "nrf52840dk"])
def test_a_sector_that_does_not_hold_is_found_on_a_blank_flash_too(name: str, probe_of: Callable) -> None:
    probe = probe_of(name, "dead-sector=0")
    with pytest.raises(ProbeError) as caught:
        probe.flash(image_for(name), soon())
    assert caught.value.code == "flash.verify_failed"
    assert "(sector 0)" in caught.value.message


@pytest.mark.parametrize(
    "text", ["no-such", "drop=0", "silent=4", "dead-sector=8", "flash-bit=99999999", "wrong-chip=0x421", "clock=1"]
)
def test_a_defect_that_cannot_be_is_told_before_the_model_is_read(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results"
    arguments = ["gone.tflite", "--board", "sim:nucleo-f446re", "--sim-fault", text, "--results", str(results)]
    assert main(["sweep", *arguments]) == 2
    assert f"fault {text.partition('=')[0]}" in capsys.readouterr().err.replace('"', "")
    assert not results.exists()


def test_a_controller_that_stays_locked_is_told_with_its_state(probe_of: Callable) -> None:
    probe = probe_of("nucleo-f446re", "flash-locked")
    with pytest.raises(ProbeError) as caught:
        probe.flash(image_for("nucleo-f446re"), soon())
    assert caught.value.code in ("flash.erase_failed", "flash.program_failed", "flash.verify_failed")
    assert cells(probe, 16) == b"\xff" * 16


def test_a_failed_erasure_is_not_tried_again_with_a_stronger_one(probe_of: Callable) -> None:
    """What stands in the other sectors stays, whatever fails in the first."""
    probe = probe_of("nucleo-f446re")
    board = twin_board("nucleo-f446re")
    marker = (board.flash.address + 0x4_0000, PATTERN[:512])
    probe.flash(FlashImage("0" * 32, "0" * 64, ((board.flash.address, PATTERN), marker)), soon())
    inject("dead-sector=0", desk.twin(probe.probe_uid))
    with pytest.raises(ProbeError):
        probe.flash(image_for("nucleo-f446re", PATTERN[::-1]), soon())
    assert cells(probe, 0x4_0200)[-512:] == PATTERN[:512]
    assert board.pyocd.erase == "sector"


def test_a_controller_that_is_busy_for_ever_ends_in_time_with_its_state(probe_of: Callable) -> None:
    probe = probe_of("nucleo-f446re", "flash-busy", operation_timeout_s=4.0)
    with pytest.raises(ProbeError) as caught:
        probe.flash(image_for("nucleo-f446re"), soon())
    assert caught.value.code in ("flash.erase_failed", "flash.program_failed", "flash.init_failed", "probe.failed")
    assert "flash controller busy (SR=0x00010000" in caught.value.message


@pytest.mark.parametrize("name", ["nucleo-f746zg", "nucleo-f446re", "nucleo-l476rg"])
def test_an_stm32_with_read_out_protection_is_refused_and_left_alone(name: str, probe_of: Callable) -> None:
    probe = probe_of(name)
    probe.flash(image_for(name), soon())
    probe.close()
    inject("protected", desk.twin(probe.probe_uid))
    with pytest.raises(ProtectedChipError) as caught:
        probe.flash(image_for(name, PATTERN[::-1]), soon())
    assert "RDP" in caught.value.remedy
    assert "STM32CubeProgrammer" in caught.value.remedy
    with pytest.raises(ProtectedChipError):
        probe.erase_protected(soon())
    assert cells(probe, 6000) == PATTERN


def test_a_closed_nrf_is_refused_and_erased_only_on_demand(probe_of: Callable) -> None:
    probe = probe_of("nrf52840dk")
    probe.flash(image_for("nrf52840dk"), soon())
    probe.close()
    inject("protected", desk.twin(probe.probe_uid))
    with pytest.raises(ProtectedChipError) as caught:
        probe.flash(image_for("nrf52840dk", PATTERN[::-1]), soon())
    assert "--erase-protected" in caught.value.remedy
    assert cells(probe, 6000) == PATTERN
    assert probe.erase_protected(soon())
    assert cells(probe, 6000) == b"\xff" * 6000
    assert not probe.erase_protected(soon()), "it is open now"
    probe.flash(image_for("nrf52840dk", PATTERN[::-1]), soon())
    assert cells(probe, 6000) == PATTERN[::-1]


@pytest.mark.parametrize(("name", "id_code"), [("nucleo-f746zg", "0x10000451"), ("nrf52840dk", "0x52832")])
def test_another_chip_than_the_board_has_is_not_written_to(name: str, id_code: str, probe_of: Callable) -> None:
    probe = probe_of(name, f"wrong-chip={id_code}")
    with pytest.raises(ProbeError) as caught:
        probe.flash(image_for(name), soon())
    assert caught.value.code == "probe.wrong_chip"
    assert "nothing was written" in caught.value.message
    assert cells(probe, 16) == b"\xff" * 16


def test_power_that_fails_while_flashing_is_an_error_and_the_next_run_repairs_it(probe_of: Callable) -> None:
    probe = probe_of("nucleo-f446re", "brownout-flashing=300")
    with pytest.raises(ProbeError) as caught:
        probe.flash(image_for("nucleo-f446re"), soon())
    assert caught.value.code in ("probe.no_target", "flash.program_failed", "probe.failed")
    desk.twin(probe.probe_uid).power_on()
    probe.close()
    probe.flash(image_for("nucleo-f446re"), soon())
    assert cells(probe, 6000) == PATTERN


@pytest.mark.parametrize("name", BOARDS)
@pytest.mark.parametrize("at", [2, 40])
def test_ctrl_c_within_an_access_to_the_flash_controller_is_not_lost(name: str, at: int, probe_of: Callable) -> None:
    """It comes in the middle of a store of pyOCD's flash algorithm, that is in a callback of the emulator's. The next
    run repairs what is half written."""
    probe = probe_of(name)
    twin = desk.twin(probe.probe_uid)
    count_down, really_busy = [at], twin.chip.controller.time_busy

    def busy(*arguments: object) -> object:
        count_down[0] -= 1
        if count_down[0] == 0:
            signal.raise_signal(signal.SIGINT)
        return really_busy(*arguments)

    twin.chip.controller.time_busy = busy
    image = image_for(name, PATTERN * 4)
    with pytest.raises(KeyboardInterrupt):
        probe.flash(image, soon())
    assert count_down[0] <= 0
    probe.close()
    probe.flash(image, soon())
    assert cells(probe, len(PATTERN) * 4) == PATTERN * 4


def test_an_image_outside_the_flash_is_refused_before_anything_is_opened() -> None:
    probe = PyOcdProbe(twin_board("nucleo-f746zg"), "not plugged in", rig="desk")
    with pytest.raises(DoesNotFitError) as caught:
        probe.flash(FlashImage("", "", ((0x0020_0000, b"abcd"),)), soon())
    assert "outside the flash of STM32F746ZG" in caught.value.message


def test_a_foreign_firmware_is_kept_once_and_can_be_put_back(tmp_path: Path, probe_of: Callable) -> None:
    probe = probe_of("nucleo-f446re", save_to=tmp_path, own_mark=b"tflm-harness ")
    foreign = b"\x00\x10\x00\x20somebody's bootloader" + bytes(range(200))
    with desk.twin(probe.probe_uid).turn() as chip:
        chip.flash.view[: len(foreign)] = foreign
    before = cells(probe, 1 << 19)
    ours = image_for("nucleo-f446re", b"tflm-harness 1.0" + PATTERN)
    probe.flash(ours, soon())
    kept = probe.last_flash.saved
    assert kept is not None
    assert kept.read_bytes() == before
    probe.flash(image_for("nucleo-f446re", b"tflm-harness 1.1" + PATTERN), soon())
    assert probe.last_flash.saved is None, "our own firmware is not kept"
    probe.restore(saved_firmware.load(kept), soon())
    assert cells(probe, 1 << 19) == before


def test_a_foreign_firmware_is_kept_though_something_of_ours_is_left_further_up(
    tmp_path: Path, probe_of: Callable
) -> None:
    probe = probe_of("nucleo-f446re", save_to=tmp_path, own_mark=b"tflm-harness ")
    ours = image_for("nucleo-f446re", b"tflm-harness 1.0" + PATTERN * 6 + b"tflm-harness 1.0 board=")
    probe.flash(ours, soon())
    with desk.twin(probe.probe_uid).turn() as chip:
        chip.flash.view[:16384] = b"somebody's program".ljust(16384, b"\xff")
    before = cells(probe, 1 << 19)
    assert b"tflm-harness 1.0 board=" in before
    probe.flash(ours, soon())
    assert probe.last_flash.saved is not None
    assert probe.last_flash.saved.read_bytes() == before


@pytest.mark.parametrize("keeps_flash", [True, False])
def test_a_twin_that_keeps_its_flash_has_a_firmware_to_keep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keeps_flash: bool
) -> None:
    """HARNESS_SIM_STATE: what another program flashed is still there, and is somebody's. A fresh twin is blank."""
    board = twin_board("nucleo-f446re")
    state = tmp_path / "state"
    state.mkdir()
    (state / "sim1-nucleo-f446re.flash").write_bytes(b"somebody's bootloader".ljust(board.flash.size_bytes, b"\xff"))
    monkeypatch.setenv("HARNESS_SIM_STATE", str(state) if keeps_flash else "")
    with open_rig(board, RigOptions(save_to=tmp_path / "saved", own_mark=b"tflm-harness ")) as rig:
        rig.probe.flash(image_for("nucleo-f446re", b"tflm-harness 1.0" + PATTERN), soon())
    kept = [path.read_bytes() for path in (tmp_path / "saved").glob("*.bin")]
    assert [data.rstrip(b"\xff") for data in kept] == ([b"somebody's bootloader"] if keeps_flash else [])


@pytest.mark.parametrize(
    ("name", "told"),
    [("", '"." is no saved firmware'), ("gone.bin", "gone.json: No such file"), ("x.elf", "is no saved firmware")],
)
def test_what_is_no_saved_firmware_is_said_so_before_a_probe_is_opened(
    name: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["flash", "--board", "nucleo-f446re", "--restore", name]) == 2
    err = capsys.readouterr().err
    assert told in err
    assert "results/saved-firmware" in err


def test_a_damaged_saved_firmware_is_not_put_back(tmp_path: Path) -> None:
    kept = saved_firmware.save(
        saved_firmware.SavedFirmware("nucleo-f446re", "x", 1, 0x0800_0000, b"abc"), tmp_path, "desk"
    )
    kept.write_bytes(b"abd")
    with pytest.raises(UsageError, match="damaged: it has 3 bytes"):
        saved_firmware.load(kept)


@pytest.mark.parametrize(
    "text",
    [
        "clock=0",
        "drop=-1",
        "garbage=1.0e999",
        "flash-bit=x",
        "drop",
        "no-such",
        "drop=0",
        "garbage=0",
        "silent=4",
        "silent=",
        "drop=1.5",
    ],
)
def test_a_defect_that_cannot_be_is_bad_usage(text: str, probe_of: Callable) -> None:
    probe = probe_of("nucleo-f446re")
    with pytest.raises(UsageError) as caught:
        inject(text, desk.twin(probe.probe_uid))
    assert text.partition("=")[0] in caught.value.message


@pytest.mark.parametrize(
    ("acts", "does_nothing", "wanted"),
    [
        ("dead-sector=7", "dead-sector=8", "from 0 to 7: its flash has 8 sectors"),
        ("flash-bit=524287", "flash-bit=524288", "from 0 to 524287"),
        ("wrong-chip=0x10006431", "wrong-chip=0x10006421", "not 0x421 in the bits 0xfff, which is a STM32F446RE"),
        ("wrong-chip=0xffffffff", "wrong-chip=0x100000000", "of 32 bits"),
        ("max-clock=3999999", "max-clock=4000000", "below 4000000"),
        ("max-baud=999999", "max-baud=1000000", "below 1000000"),
        ("clock=0.949", "clock=1", "not 0.95 to 1.052"),
        ("clock=1.06", "clock=1.01", "not 0.95 to 1.052"),
        ("clock=1000", "clock=0.000001", "from 0.001 to 1000"),
        ("garbage=1000000", "garbage=1000001", "at most 1000000"),
        *(
            (f"{name}=1000000000", f"{name}=1000000001", "at most 1000000000")
            for name in ("unplug-after", "brownout-flashing", "brownout-running", "replug-after", "drop", "drop-in")
        ),
    ],
)
def test_a_number_that_can_do_nothing_on_the_board_is_refused_with_those_that_can(
    acts: str, does_nothing: str, wanted: str
) -> None:
    board = twin_board("nucleo-f446re")
    assert check_fault(acts, board)[0] == acts.partition("=")[0]
    with pytest.raises(UsageError) as caught:
        check_fault(does_nothing, board)
    assert caught.value.message == f"fault {does_nothing} does nothing on sim:nucleo-f446re"
    assert wanted in caught.value.remedy


def test_a_fault_of_the_lab_that_can_do_nothing_is_told_before_the_firmware_is_built() -> None:
    board = twin_board("nucleo-f446re")
    entry = RigEntry(name="worn", board=board.name, faults=("dead-sector=99",))
    with pytest.raises(UsageError, match="dead-sector=99 does nothing"):
        require_rig(board, entry)


def test_a_clock_that_is_refused_is_one_that_no_byte_notices() -> None:
    for factor in (0.95, 1.052):
        there, back = resample(PATTERN, int(115200 * factor), 115200), resample(PATTERN, 115200, int(115200 * factor))
        assert there == back == PATTERN
    assert resample(PATTERN, 115200, int(115200 * 0.94)) != PATTERN
    assert resample(PATTERN, int(115200 * 1.06), 115200) != PATTERN


def test_every_fault_that_may_be_named_can_be_put_in() -> None:
    assert set(APPLY) == set(FAULTS)


def test_a_twin_that_is_closed_while_a_debugger_uses_it_answers_no_more() -> None:
    """As a served twin that is stopped: the probe server's thread is in the middle of something."""
    for _ in range(8):
        uid = desk.plug(twin_board("nucleo-f446re"))
        twin, ended, under_way = desk.twin(uid), [], threading.Event()

        def debug(twin: Twin = twin, ended: list[str] = ended, under_way: threading.Event = under_way) -> None:
            try:
                while True:
                    twin.run_until_stopped(0.005)
                    under_way.set()
            except NoAnswerError as exc:
                ended.append(str(exc))

        debugger = threading.Thread(target=debug)
        debugger.start()
        assert under_way.wait(PATIENCE_S)
        desk.unplug(uid)
        debugger.join(PATIENCE_S)
        assert ended == ["the twin was closed"]
