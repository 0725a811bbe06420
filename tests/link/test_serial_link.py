"""Serial ports that are busy, denied, absent, unplugged, or back under another name: pseudo-terminals, fake opens."""

from __future__ import annotations

import os
import pty
import socket
import termios
import threading
import tty
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import serial

from harness.deadline import Deadline
from harness.errors import LinkError
from harness.link.port_opening import PortOpening, connect
from harness.link.port_owner import group_of, port_owner
from harness.link.ports import SerialPort, list_ports
from harness.link.serial_link import SerialLink
from harness.link.serial_server import SerialServer
from tests.patience import PATIENCE_S, patient, wait_until


@dataclass
class FakeSystem:
    """Opens fail with these errors, one after the other; then they succeed. Time passes only by waiting."""

    errors: list[Exception]
    now_s: float = 0.0
    opened: list[str] = field(default_factory=list)

    def connect(self, url: str, _baud: int) -> Any:
        self.opened.append(url)
        if self.errors:
            raise self.errors.pop(0)
        return object()

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def opening(self, owner: str = "") -> PortOpening:
        return PortOpening(
            connect=self.connect, owner=lambda _device: owner, clock=lambda: self.now_s, sleep=self.sleep
        )


def busy(count: int) -> list[Exception]:
    return [serial.SerialException(16, "could not open port /dev/ttyACM0: [Errno 16] busy") for _ in range(count)]


def refused(opening: PortOpening, url: str = "/dev/ttyACM0") -> LinkError:
    with pytest.raises(LinkError) as caught:
        SerialLink(url, opening=opening)
    return caught.value


def test_a_busy_port_is_waited_for() -> None:
    system = FakeSystem(busy(40))
    SerialLink("/dev/ttyACM0", opening=system.opening())
    assert (len(system.opened), system.now_s) == (41, 10.0)


def test_a_port_that_stays_busy_names_who_has_it() -> None:
    system = FakeSystem(busy(1000))
    error = refused(system.opening("minicom (process 812)"))
    assert error.message == "/dev/ttyACM0 is in use by minicom (process 812), for 15 s and more"
    assert (error.code, error.exit_code, system.now_s) == ("link.busy", 6, 15.0)


def test_modem_manager_has_a_remedy_of_its_own() -> None:
    error = refused(FakeSystem(busy(1000)).opening("probably ModemManager (process 7)"))
    assert "ID_MM_DEVICE_IGNORE" in error.remedy


def test_a_lock_of_another_pyserial_is_a_busy_port() -> None:
    system = FakeSystem([serial.SerialException(11, "Could not exclusively lock port") for _ in range(3)])
    SerialLink("/dev/ttyACM0", opening=system.opening())
    assert len(system.opened) == 4


@pytest.mark.parametrize(
    ("text", "url", "code", "tries"),
    [
        ("could not open port 'COM12': PermissionError(13, 'Toegang geweigerd.', None, 5)", "COM12", "link.busy", 61),
        ("could not open port 'COM9': FileNotFoundError(2, 'Introuvable', None, 2)", "COM9", "link.no_port", 1),
        ("could not open port 'COM9': OSError(22, 'falscher Parameter', None, 87)", "COM9", "link.open", 1),
    ],
)
def test_windows_errors_are_read_without_their_language(text: str, url: str, code: str, tries: int) -> None:
    system = FakeSystem([serial.SerialException(text) for _ in range(100)])
    assert refused(system.opening(), url).code == code
    assert len(system.opened) == tries
    assert set(system.opened) == {url}, "the name is left to pyserial as it is"


def test_a_port_without_permission_names_the_group_and_the_command(tmp_path: Path) -> None:
    device = tmp_path / "ttyACM0"
    device.touch()
    group = group_of(str(device))
    error = refused(FakeSystem([serial.SerialException(13, "Permission denied")]).opening(), str(device))
    assert error.code == "link.denied"
    assert error.message == f"no permission to open {device}, which belongs to group {group}"
    assert error.remedy == f"sudo usermod -aG {group} $USER, then log out and in again"


def test_a_port_that_is_not_there_is_not_waited_for() -> None:
    error = refused(PortOpening(sleep=lambda _seconds: pytest.fail("waited")), "/dev/no-such-port")
    assert error.code == "link.no_port"


def test_the_process_that_has_the_port_is_found_by_its_open_files(tmp_path: Path) -> None:
    device = tmp_path / "ttyACM0"
    device.touch()
    for number, name, opened in (("7", "ModemManager", None), ("812", "minicom", device), ("900", "sh", None)):
        (tmp_path / number / "fd").mkdir(parents=True)
        (tmp_path / number / "comm").write_text(name + "\n")
        if opened:
            (tmp_path / number / "fd" / "3").symlink_to(opened)
    assert port_owner(str(device), tmp_path) == "minicom (process 812)"
    (tmp_path / "812" / "fd" / "3").unlink()
    assert port_owner(str(device), tmp_path) == "probably ModemManager (process 7)"
    assert port_owner(str(device), tmp_path / "absent") == ""


@pytest.mark.parametrize(
    ("url", "opened_as"),
    [
        ("rfc2217://lab:4001", "rfc2217://lab:4001?timeout=30"),
        ("rfc2217://lab:4001?", "rfc2217://lab:4001?timeout=30"),
        ("RFC2217://lab:4001?ign_set_control", "RFC2217://lab:4001?ign_set_control&timeout=30"),
        ("rfc2217://lab:4001?timeout=5", "rfc2217://lab:4001?timeout=5"),
        ("socket://lab:4001", "socket://lab:4001"),
        ("/dev/ttyACM0", "/dev/ttyACM0"),
    ],
)
def test_a_server_of_a_port_is_given_time_to_agree(url: str, opened_as: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """pyserial's own 3 s for each setting are short for a busy computer."""
    asked: list[str] = []

    def port_of(asked_url: str, **_: Any) -> Any:
        asked.append(asked_url)
        return serial.Serial()

    monkeypatch.setattr(serial, "serial_for_url", port_of)
    with pytest.raises(serial.SerialException, match="Port must be configured"):
        connect(url, 115200)
    assert asked == [opened_as]


@pytest.mark.parametrize("rfc2217", [True, False], ids=["rfc2217", "socket"])
def test_a_served_port_that_another_client_has_is_busy(rfc2217: bool) -> None:
    """pyserial waited half a minute for a server that had one client already, and said that it is no RFC 2217."""
    server = SerialServer(0, rfc2217=rfc2217)
    first = SerialLink(server.url)
    quick = PortOpening(patience_s=0, connect=partial(connect, raw_wait_s=PATIENCE_S), owner=lambda _device: "")
    assert refused(quick, server.url).code == "link.busy"
    assert_connected(server, first)
    first.close()
    second = SerialLink(server.url)
    assert_connected(server, second)
    second.close()
    server.close()


def assert_connected(server: SerialServer, link: SerialLink) -> None:
    """Both ways; what a server says before it has accepted somebody is lost."""
    link.write(b"?", patient())
    wait_until(lambda: server.read() == b"?", "the server hears its client")
    server.write(b"hello")
    said = b""
    while len(said) < 5:
        said += link.read(patient())
    assert said == b"hello"


def test_a_server_that_hangs_up_is_told_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        hang_up = threading.Thread(target=lambda: listener.accept()[0].close())
        hang_up.start()
        error = refused(PortOpening(), f"rfc2217://127.0.0.1:{listener.getsockname()[1]}")
        hang_up.join()
    assert (error.code, error.exit_code) == ("link.open", 6)
    assert "hung up before it agreed to be a serial port" in error.message


class Board:
    """A pty: what pyserial opens is ``device``; ``unplug`` closes the other end."""

    def __init__(self) -> None:
        self.end, slave = pty.openpty()
        self.device = os.ttyname(slave)
        tty.setraw(slave)
        self._slave = slave

    def says(self, data: bytes) -> None:
        os.write(self.end, data)

    def unplug(self) -> None:
        for descriptor in (self.end, self._slave):
            os.close(descriptor)


@pytest.fixture
def plug() -> Callable[[], Board]:
    return Board


def test_a_second_reader_is_kept_out(plug: Callable[[], Board]) -> None:
    board = plug()
    link = SerialLink(board.device)
    quick = PortOpening(patience_s=0, owner=lambda _device: "")
    assert refused(quick, board.device).code == "link.busy"
    link.close()
    board.unplug()


def test_a_port_that_vanishes_in_the_middle_is_an_error_of_the_link_after_what_came_before(
    plug: Callable[[], Board],
) -> None:
    board = plug()
    link = SerialLink(board.device)
    board.says(b"abc")
    assert link.read(patient()) == b"abc"
    board.unplug()
    with pytest.raises(LinkError) as caught:
        link.read(patient())
    assert caught.value.code == "link.gone"
    assert board.device in caught.value.message


def test_a_port_that_comes_back_under_another_name_is_found_and_gone_on_with(plug: Callable[[], Board]) -> None:
    """Found at the third look, as a USB device that enumerates takes a moment; at the rate that was set."""
    first, second = plug(), plug()
    looks = iter([LinkError("no such port yet"), LinkError("no such port yet"), second.device])

    def find() -> str:
        look = next(looks)
        if isinstance(look, Exception):
            raise look
        return look

    waited: list[float] = []
    link = SerialLink(first.device, find=find, opening=PortOpening(sleep=waited.append))
    link.set_baud(230400)
    first.unplug()
    assert link.read(Deadline.after(0)) == b"", "what was on its way is lost"
    second.says(b"back")
    assert link.read(patient()) == b"back"
    assert link.url == second.device
    assert link.baud == 230400
    assert termios.tcgetattr(second.end)[5] == termios.B230400
    assert len(waited) == 2
    link.write(b"hello", patient())
    assert os.read(second.end, 100) == b"hello"
    link.close()
    second.unplug()


def test_a_port_that_does_not_come_back_is_gone_after_the_patience(plug: Callable[[], Board]) -> None:
    board, now = plug(), [0.0]

    def find() -> str:
        raise LinkError("no such port")

    def sleep(seconds: float) -> None:
        now[0] += seconds

    opening = PortOpening(clock=lambda: now[0], sleep=sleep, connect=connect)
    link = SerialLink(board.device, find=find, opening=opening)
    board.unplug()
    with pytest.raises(LinkError, match="is gone"):
        link.read(patient())
    assert now[0] == 15.0


@dataclass
class FakeComport:
    """What pyserial's comports() yields; a port that is not on USB has None in most fields."""

    device: str
    description: str | None = None
    vid: int | None = None
    pid: int | None = None
    serial_number: str | None = None


def test_ports_without_usb_numbers_are_listed_last(tmp_path: Path) -> None:
    there = tmp_path / "ttyACM0"
    there.touch()
    found = list_ports(
        lambda: [
            FakeComport("COM1"),
            FakeComport(str(there), "STM32 STLink", 0x0483, 0x374B, "0669FF30"),
            FakeComport("/dev/ttyS9", "n/a", 0x1A86, None, None),
        ]
    )
    assert found[0] == SerialPort(str(there), "STM32 STLink", "0483:374b", "0669FF30", True)
    assert [(port.device, port.usb_id, port.usb_serial) for port in found[1:]] == [
        ("/dev/ttyS9", "", ""),
        ("COM1", "", ""),
    ]
