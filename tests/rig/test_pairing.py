"""Which probe and port a board gets: by serial numbers and pyOCD's table, never by order, never by a prompt."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.board.catalogue import list_boards, load_hardware_board
from harness.board.record import HardwareBoard
from harness.errors import ProbeError, UsageError
from harness.link.ports import SerialPort
from harness.probe.attached import AttachedProbe
from harness.rig.discover import propose
from harness.rig.lock import RigLock
from harness.rig.pairing import choose_probe, find_probe, normalised_serial, port_of, refuse_swapped
from tests.patience import PATIENCE_S

F746 = load_hardware_board("nucleo-f746zg")
BOARDS = [board for board in list_boards() if isinstance(board, HardwareBoard) and board.kind == "hardware"]


def stlink(uid: str, board: str = "NUCLEO-F746ZG") -> AttachedProbe:
    return AttachedProbe(uid, "STM32 STLink", board, "stm32f746zgtx")


def port(device: str, serial: str, usb_id: str = "0483:374b") -> SerialPort:
    return SerialPort(device, "STM32 STLink", usb_id, serial, True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("066aff49", "066AFF49"),
        ("066AFF49\x00", "066AFF49"),
        (" 066AFF49 ", "066AFF49"),
        ("\x06\xff\x49", "06FF49"),
        ("", ""),
        (None, ""),
        ("\x00", ""),
    ],
)
def test_serial_numbers_are_compared_in_one_form(text: str | None, expected: str) -> None:
    assert normalised_serial(text) == expected


def test_the_port_is_the_one_with_the_probes_serial_number_whatever_the_order() -> None:
    ports = (port("/dev/ttyACM0", "AAAA"), port("/dev/ttyUSB0", "", "1a86:7523"), port("/dev/ttyACM1", "066aff49"))
    assert port_of("066AFF49", ports).device == "/dev/ttyACM1"


def test_no_port_and_several_ports_are_lists_and_not_a_guess() -> None:
    with pytest.raises(ProbeError) as none:
        port_of("066AFF49", (port("/dev/ttyACM0", "AAAA"), port("COM1", "", "")))
    assert none.value.code == "rig.no_port"
    assert "/dev/ttyACM0 (AAAA)" in none.value.message
    assert "COM1 (no serial number)" in none.value.message
    with pytest.raises(ProbeError) as twin:
        port_of("sim1-nucleo-f746zg", (port("/dev/ttyACM0", "AAAA"),))
    assert twin.value.code == "rig.no_port"
    assert "--board sim:NAME" in twin.value.remedy
    with pytest.raises(UsageError) as several:
        port_of("AAAA", (port("/dev/ttyACM0", "AAAA"), port("/dev/ttyACM1", "aaaa")))
    assert several.value.code == "rig.ambiguous"
    assert several.value.exit_code == 2


def test_the_only_such_board_is_taken_none_ends_with_5_and_several_with_2() -> None:
    other = stlink("BBBB", "NUCLEO-L476RG")
    assert choose_probe(F746, (other, stlink("AAAA"))).uid == "AAAA"
    with pytest.raises(ProbeError) as none:
        choose_probe(F746, (other,))
    assert none.value.exit_code == 5
    assert "BBBB (NUCLEO-L476RG)" in none.value.message
    with pytest.raises(UsageError) as several:
        choose_probe(F746, (stlink("AAAA"), stlink("CCCC")))
    assert several.value.exit_code == 2
    assert "AAAA" in several.value.message
    assert "CCCC" in several.value.message


def test_a_probe_is_named_by_its_id_or_the_only_beginning() -> None:
    probes = (stlink("066AFF49"), stlink("066BCC00"))
    assert find_probe("066bcc00", probes).uid == "066BCC00"
    assert find_probe("066A", probes).uid == "066AFF49"
    with pytest.raises(UsageError):
        find_probe("066", probes)
    with pytest.raises(ProbeError):
        find_probe("99", probes)


def test_the_port_of_another_boards_probe_is_refused() -> None:
    probes = (stlink("AAAA"), stlink("BBBB"))
    refuse_swapped("AAAA", port("/dev/ttyACM0", "aaaa"), probes)
    refuse_swapped("AAAA", port("/dev/ttyUSB0", "FT12", "0403:6001"), probes)
    refuse_swapped("AAAA", port("/dev/ttyS0", "", ""), probes)
    with pytest.raises(ProbeError) as caught:
        refuse_swapped("AAAA", port("/dev/ttyACM1", "bbbb"), probes)
    assert caught.value.code == "rig.swapped"
    assert caught.value.message == "the port /dev/ttyACM1 belongs to the probe BBBB (NUCLEO-F746ZG), not to AAAA"


def test_discovery_pairs_by_serial_number_and_asks_where_it_cannot_tell() -> None:
    probes = (stlink("AAAA"), stlink("BBBB"), stlink("CCCC", "SOMETHING-ELSE"))
    ports = (port("/dev/ttyACM1", "aaaa"), port("/dev/ttyACM0", "ZZZZ"))
    found = propose(probes, ports, BOARDS)
    assert [(entry.name, entry.probe, entry.port) for entry in found.entries] == [
        ("nucleo-f746zg-1", "AAAA", "usb:aaaa"),
        ("nucleo-f746zg-2", "BBBB", ""),
    ]
    assert len(found.questions) == 2
    assert "BBBB" in found.questions[0]
    assert "CCCC" in found.questions[1]


def test_a_rig_is_held_by_one_process_and_names_its_owner(tmp_path: Path) -> None:
    import os

    with RigLock("rig left", tmp_path):
        with pytest.raises(ProbeError) as caught:
            RigLock("rig left", tmp_path)
        assert caught.value.code == "rig.busy"
        assert f"by process {os.getpid()}, for 0 min" in caught.value.message
        RigLock("rig right", tmp_path).release()
    RigLock("rig left", tmp_path).release()


def test_a_dead_owners_lock_is_free(tmp_path: Path) -> None:
    import subprocess
    import sys

    imports = "import os; from pathlib import Path; from harness.rig.lock import RigLock"
    code = f"{imports}; RigLock('rig', Path({str(tmp_path)!r})); os._exit(9)"
    assert subprocess.run([sys.executable, "-c", code], timeout=PATIENCE_S).returncode == 9
    RigLock("rig", tmp_path).release()


def test_several_boards_end_with_a_list_and_no_question_where_there_is_no_terminal(tmp_path: Path) -> None:
    """Two emulated probes of one board, standard input closed: pyOCD itself would ask which."""
    import json
    import os
    import subprocess
    import sys

    code = (
        "import json; from harness.probe.attached import attached_probes; from harness.rig.pairing import find_probe\n"
        "probes = tuple(probe for probe in attached_probes() if 'sim' in probe.uid)\n"
        "try: find_probe('sim', probes)\n"
        "except Exception as exc: print(json.dumps([exc.code, int(exc.exit_code), exc.message]))\n"
    )
    pytest.importorskip("unicorn", reason="the extra [sim] is not installed")
    environment = {**os.environ, "HARNESS_SIM_BOARDS": "nucleo-f446re,nucleo-f446re"}
    argv = [sys.executable, "-c", code]
    done = subprocess.run(
        argv,
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    error_code, exit_code, message = json.loads(done.stdout)
    assert (error_code, exit_code) == ("rig.ambiguous", 2)
    assert "sim1-nucleo-f446re" in message
    assert "sim2-nucleo-f446re" in message
