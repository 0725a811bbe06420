"""``harness lab serve``: a rig of one computer used from another, here over the loopback."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import serial

from tests.patience import PATIENCE_S

HARNESS = [sys.executable, "-m", "harness"]
pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("unicorn") is None, reason="the extra [sim] is not installed"),
    pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal"),
]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """pyOCD sees one emulated probe on this computer, and locks are our own."""
    return os.environ | {"HARNESS_SIM_BOARDS": "nucleo-f446re", "XDG_STATE_HOME": str(tmp_path / "state")}


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[int]:
    """A lab file with a rig whose serial port is a pseudo-terminal: the board's end of it."""
    board_end, port = os.openpty()
    entry = {"name": "near", "board": "nucleo-f446re", "probe": "sim1-nucleo-f446re", "port": os.ttyname(port)}
    (tmp_path / "lab.yaml").write_text(json.dumps({"rigs": [entry, {"name": "here", "board": "host"}]}))
    yield board_end
    os.close(board_end)
    os.close(port)


@pytest.fixture
def served(desk: int, tmp_path: Path, environment: dict[str, str]) -> Iterator[dict[str, Any]]:
    assert desk > 0
    command = [*HARNESS, "lab", "serve", "--json"]
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line, process.wait(timeout=PATIENCE_S)
        (entry,) = json.loads(line)["rigs"]
        yield entry
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=PATIENCE_S) == 0
        process.stdout.close()


def test_the_other_side_gets_an_entry_on_the_loopback(served: dict[str, Any]) -> None:
    assert (served["name"], served["board"]) == ("near", "nucleo-f446re")
    assert served["probe"].startswith("remote:127.0.0.1:") and not served["probe"].endswith(":0")
    assert served["port"].startswith("rfc2217://127.0.0.1:")


def test_bytes_go_both_ways(served: dict[str, Any], desk: int) -> None:
    with serial.serial_for_url(f"{served['port']}?timeout={PATIENCE_S}", baudrate=115200, timeout=PATIENCE_S) as port:
        port.write(b"to the board\x00\xff\n")
        got = b""
        while len(got) < 15:
            got += os.read(desk, 100)
        assert got == b"to the board\x00\xff\n"
        os.write(desk, b"to the host\x00\xff")
        assert port.read(13) == b"to the host\x00\xff"


def test_the_probe_is_found_and_read_by_the_other_side(served: dict[str, Any], tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "lab.yaml").write_text(json.dumps({"rigs": [served]}))
    address = served["probe"].removeprefix("remote:")
    command = [
        sys.executable,
        "-m",
        "pyocd",
        "cmd",
        "-t",
        "cortex_m",
        "-u",
        f"remote:{address}",
        "-c",
        "read32 0x08000000",
    ]
    done = subprocess.run(command, cwd=other, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    assert "08000000:" in done.stdout


def test_a_rig_that_is_served_is_nobody_elses(
    served: dict[str, Any], tmp_path: Path, environment: dict[str, str]
) -> None:
    command = [*HARNESS, "lab", "serve", "near"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 5
    assert f"rig {served['name']} (probe sim1-nucleo-f446re) is in use by process" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("nobody",), 'no rig "nobody"'),
        (("near", "near", "--probe-port", "5555"), "2 rigs cannot share one port"),
        (("near", "here"), "here is the host board"),
        (("--lab", "gone.yaml"), "gone.yaml"),
    ],
)
def test_mistakes_are_told(
    desk: int, tmp_path: Path, environment: dict[str, str], arguments: tuple[str, ...], text: str
) -> None:
    assert desk > 0
    command = [*HARNESS, "lab", "serve", *arguments]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 2
    assert text in done.stderr
