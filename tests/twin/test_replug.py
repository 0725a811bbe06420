"""A twin whose serial port vanishes and comes back under another name, as a USB port does that enumerates anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.deadline import Deadline
from harness.link.serial_link import SerialLink
from harness.record.schema import SweepRecord
from harness.sim.twin import Twin
from harness.sim.wire import PseudoTerminal
from tests.patience import patient

from .bare_metal import compile_firmware
from .conftest import burn

BOARD = "nucleo-f446re"


def read_until(link: SerialLink, end: bytes) -> bytes:
    deadline, data = patient(), b""
    while not data.endswith(end) and not deadline.passed:
        data += link.read(deadline.sooner(0.5))
    return data


def test_the_link_goes_on_at_the_port_that_came_back(make_twin: Callable[[str], Twin], firmware_dir: Path) -> None:
    twin = make_twin(BOARD)
    link = SerialLink(twin.endpoint.url, find=lambda: twin.endpoint.url)
    former = link.url
    burn(twin, compile_firmware("hello", BOARD, firmware_dir))
    twin.assert_reset(True)
    twin.assert_reset(False)
    assert read_until(link, b"data=00001234\n").startswith(b"hello from the twin\n")
    assert isinstance(twin.endpoint, PseudoTerminal)
    with twin.turn():
        twin.endpoint.replug()
    assert link.read(Deadline.after(0)) == b""
    assert link.url == twin.endpoint.url != former
    link.write(b"a", patient())
    assert read_until(link, b"aaa") == b"aaa"
    assert twin.failure is None
    link.close()


@pytest.mark.parametrize("after", [300, 1000])
def test_a_sweep_goes_on_and_finds_the_same_minimum(after: int, sweep: Callable[..., SweepRecord]) -> None:
    record = sweep("nucleo-f446re", f"replug-after={after}")
    assert record.status == "ok", record.error
    assert record.search is not None
    assert record.search.min_bytes == sweep("nucleo-f446re").search.min_bytes
