"""``--pace``: a paced line passes bytes at its rate, both ways. In virtual time, and once on the wall's clock."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import serial

from harness.sim.twin import Twin
from harness.sim.wire import Wire
from tests.patience import PATIENCE_S

from .bare_metal import compile_firmware, twin_board
from .conftest import burn

BAUD = 115200


@dataclass
class FakeEnd:
    """The host's end: what arrived, what is to be read."""

    url: str = "fake"
    seen: bytearray = field(default_factory=bytearray)
    sends: bytes = b""

    def host_baud(self) -> int:
        return BAUD

    def read(self) -> bytes:
        data, self.sends = self.sends, b""
        return data

    def write(self, data: bytes) -> None:
        self.seen += data

    def wait(self, seconds: float) -> None:
        raise NotImplementedError

    def wake(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


@pytest.mark.parametrize(("baud", "seconds"), [(115200, 0.1), (921600, 0.0125)])
def test_what_the_board_sends_arrives_at_its_rate(baud: int, seconds: float) -> None:
    now, end = [10.0], FakeEnd()
    end.host_baud = lambda: baud  # type: ignore[method-assign]
    wire = Wire(end, paced=True, clock=lambda: now[0])
    data = bytes(n % 251 for n in range(1152))
    for byte in data:
        wire.send(byte, baud)
    wire.flush()
    assert not end.seen
    assert wire.busy_s() == pytest.approx(seconds)
    now[0] += seconds / 2 + 1e-6
    wire.flush()
    assert bytes(end.seen) == data[:576]
    now[0] += seconds / 2
    wire.flush()
    assert bytes(end.seen) == data
    assert wire.busy_s() == 0
    assert wire.next_s() is None


def test_what_the_host_sends_is_received_at_its_rate_and_nothing_is_lost() -> None:
    now, end = [10.0], FakeEnd(sends=bytes(range(100)))
    wire = Wire(end, paced=True, clock=lambda: now[0])

    def take() -> bytes:
        taken = bytearray()
        while (byte := wire.receive(BAUD)) is not None:
            taken.append(byte)
        return bytes(taken)

    assert take() == b""
    assert wire.next_s() == pytest.approx(10 / BAUD)
    now[0] += 50.5 * 10 / BAUD
    assert take() == bytes(range(50))
    now[0] += 1.0
    assert take() == bytes(range(50, 100)), "a late receiver catches up"
    end.sends = b"z"
    assert take() == b"", "the next byte takes its time again"
    now[0] += 10.5 / BAUD
    assert take() == b"z"


def test_a_line_without_pace_passes_everything_at_once() -> None:
    end = FakeEnd(sends=b"abc")
    wire = Wire(end, clock=lambda: 0.0)
    wire.send(65, BAUD)
    wire.flush()
    assert bytes(end.seen) == b"A"
    assert [wire.receive(BAUD) for _ in range(4)] == [97, 98, 99, None]
    assert wire.next_s() is None


@pytest.mark.parametrize("board", ["nucleo-f446re", "nrf52840dk"])
def test_a_paced_twin_takes_the_lines_time_for_an_echo(board: str, firmware_dir: Path) -> None:
    """Every byte comes back three times: 600 bytes take 52 ms at 115200 baud, at least."""
    twin = Twin(twin_board(board), pace=True)
    try:
        with serial.Serial(twin.endpoint.url, BAUD, timeout=PATIENCE_S) as port:
            burn(twin, compile_firmware("hello", board, firmware_dir))
            twin.assert_reset(True)
            twin.assert_reset(False)
            port.readline()
            assert port.readline() == b"data=00001234\n"
            started = time.monotonic()
            port.write(b"x" * 200)
            assert port.read(600) == b"x" * 600
            assert time.monotonic() - started >= 600 * 10 / BAUD
    finally:
        twin.close()
