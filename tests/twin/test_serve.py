"""``harness sim serve``: a twin in a process of its own, flashed and heard over TCP as a rig on another machine."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import serial

from tests.patience import PATIENCE_S

from .bare_metal import compile_firmware

HARNESS = [sys.executable, "-m", "harness"]


@pytest.fixture(params=[[], ["--raw"]], ids=["rfc2217", "socket"])
def served(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    command = [*HARNESS, "sim", "serve", "--board", "nucleo-f446re", "--json", *request.param]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=PATIENCE_S) == 0
        process.stdout.close()


def test_a_served_twin_is_flashed_over_tcp_and_talks_on_its_serial_port(
    served: dict[str, Any], firmware_dir: Path, tmp_path: Path
) -> None:
    elf = compile_firmware("hello", "nucleo-f446re", firmware_dir)
    entry = {"name": "far", "board": served["board"], "probe": served["probe"], "port": served["port"]}
    (tmp_path / "lab.yaml").write_text(json.dumps({"rigs": [entry]}))
    done = subprocess.run(
        [*HARNESS, "flash", "--board", "sim:nucleo-f446re", str(elf), "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["programmed"] is True
    patience = f"?timeout={PATIENCE_S}" if served["port"].startswith("rfc2217") else ""
    with serial.serial_for_url(served["port"] + patience, baudrate=115200, timeout=PATIENCE_S) as port:
        port.write(b"ab")
        assert port.read_until(b"aaabbb").endswith(b"aaabbb")


def test_a_probe_server_that_is_not_there_is_told_as_such(tmp_path: Path, firmware_dir: Path) -> None:
    elf = compile_firmware("hello", "nucleo-f446re", firmware_dir)
    entry = {"name": "far", "board": "sim:nucleo-f446re", "probe": "remote:127.0.0.1:9", "port": "socket://127.0.0.1:9"}
    (tmp_path / "lab.yaml").write_text(json.dumps({"rigs": [entry]}))
    done = subprocess.run(
        [*HARNESS, "flash", "--board", "sim:nucleo-f446re", str(elf), "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode in (5, 6)
    assert "9" in json.loads(done.stdout)["error"]["message"]
