"""``harness sim serve``: a twin in a process of its own, flashed and heard over TCP as a rig on another machine."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import serial

from tests.patience import PATIENCE_S

from .bare_metal import compile_firmware
from .conftest import small_model

HARNESS = [sys.executable, "-m", "harness"]


@pytest.fixture(params=[[], ["--raw"]], ids=["rfc2217", "socket"])
def served(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    command = [*HARNESS, "sim", "serve", "--board", "nucleo-f446re", "--json", *request.param]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())
    finally:
        process.send_signal(signal.SIGTERM if request.param else signal.SIGINT)
        assert process.wait(timeout=PATIENCE_S) == 0
        process.stdout.close()


def _flash(elf: Path, served: dict[str, Any], board: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """``harness flash`` of the served twin, which the lab file calls ``board``."""
    entry = {"name": "far", "board": board, "probe": served["probe"], "port": served["port"]}
    (folder / "lab.yaml").write_text(json.dumps({"rigs": [entry]}))
    return subprocess.run(
        [*HARNESS, "flash", "--board", board, str(elf), "--json"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


def test_a_served_twin_is_flashed_over_tcp_and_talks_on_its_serial_port(
    served: dict[str, Any], firmware_dir: Path, tmp_path: Path
) -> None:
    elf = compile_firmware("hello", "nucleo-f446re", firmware_dir)
    patience = f"?timeout={PATIENCE_S}" if served["port"].startswith("rfc2217") else ""
    # a monitor has the port meanwhile: a program that is not asked is flashed all the same, and its boot can be watched
    with serial.serial_for_url(served["port"] + patience, baudrate=115200, timeout=PATIENCE_S) as port:
        done = _flash(elf, served, served["board"], tmp_path)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["programmed"] is True
        port.write(b"ab")
        assert port.read_until(b"aaabbb").endswith(b"aaabbb")


def test_a_served_twin_that_is_entered_as_a_board_is_refused(
    served: dict[str, Any], firmware_dir: Path, tmp_path: Path
) -> None:
    """The records then said ``board nucleo-f446re, timing cycles``."""
    elf = compile_firmware("hello", "nucleo-f446re", firmware_dir)
    done = _flash(elf, served, "nucleo-f446re", tmp_path)
    assert done.returncode == 2, done.stderr
    error = json.loads(done.stdout)["error"]
    assert error["code"] == "rig.is_twin"
    assert error["message"] == "rig far: its probe is that of a twin, not of a board"
    assert error["remedy"].startswith("write board: sim:nucleo-f446re")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--host", "203.0.113.7"), "cannot serve on 203.0.113.7: it is no address of this computer"),
        (("--host", "nobody.invalid"), "cannot serve on nobody.invalid: it is no address of this computer"),
        (("--serial-port", "{taken}"), "cannot serve on TCP port {taken}: Address already in use"),
        (("--probe-port", "{taken}"), "cannot serve on TCP port {taken}: Address already in use"),
    ],
)
def test_an_address_or_a_port_that_cannot_be_had_is_told(options: tuple[str, str], message: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        arguments = [text.format(taken=port) for text in options]
        done = subprocess.run(
            [*HARNESS, "sim", "serve", "--board", "nucleo-f446re", *arguments],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
    assert done.returncode == 5
    assert done.stderr.startswith(f"error: {message.format(taken=port)}\n"), done.stderr


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


@pytest.mark.parametrize("raw", [[], ["--raw"]], ids=["rfc2217", "socket"])
def test_a_server_that_dies_in_a_measurement_is_noticed(raw: list[str], tmp_path: Path, fake_library: Path) -> None:
    """Who asks first sees it: the probe in the reset before the runs, or the link, whose probe is then told goodbye."""
    command = [*HARNESS, "sim", "serve", "--board", "nucleo-f446re", "--json", *raw]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            served = json.loads(server.stdout.readline())
            entry = {"name": "far", "board": served["board"], "probe": served["probe"], "port": served["port"]}
            (tmp_path / "lab.yaml").write_text(json.dumps({"rigs": [entry]}))
            (tmp_path / "small.tflite").write_bytes(small_model("a small model"))
            measure = [*HARNESS, "measure", "small.tflite", "--board", "sim:nucleo-f446re", "--json"]
            with subprocess.Popen(
                [*measure, "--runs", "1000000", "--no-reference"],
                cwd=tmp_path,
                env={**os.environ, "HARNESS_TFLM": str(fake_library)},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            ) as client:
                assert client.stderr is not None
                assert any("measure in" in line for line in client.stderr)
                server.kill()
                killed = time.monotonic()
                told, _ = client.communicate(timeout=PATIENCE_S)
        finally:
            server.kill()
    code = json.loads(told)["results"][0]["error"]["code"]
    assert (code, client.returncode) in {("link.gone", 6), ("probe.remote_unreachable", 5)}, told
    assert time.monotonic() - killed < 25, told


def test_one_signal_ends_the_server_whatever_its_clients_wait_for() -> None:
    """A client held the probe's lock and another one waited for it: the first SIGTERM was without effect."""
    command = [*HARNESS, "sim", "serve", "--board", "nucleo-f446re", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            port = int(json.loads(server.stdout.readline())["probe"].rpartition(":")[2])
            address = ("127.0.0.1", port)
            with socket.create_connection(address) as holder, socket.create_connection(address) as waiting:
                holder.sendall(b'{"id": 1, "request": "lock"}\n')
                assert json.loads(holder.recv(4096)) == {"id": 1, "status": 0}
                waiting.sendall(b'{"id": 1, "request": "hello", "arguments": [1]}\n{"id": 2, "request": "lock"}\n')
                assert json.loads(waiting.recv(4096)) == {"id": 1, "status": 0}
                server.send_signal(signal.SIGTERM)
                assert server.wait(timeout=PATIENCE_S) == 0
            with socket.create_server(address):
                pass
        finally:
            server.kill()
