"""Places of a real labgrid coordinator, with a real exporter and labgrid's own client beside us."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

from harness.board.lab_file import RigEntry
from harness.errors import ConfigError
from harness.lab.labgrid_places import LabgridError, acquired_rigs, list_places
from tests.patience import PATIENCE_S, wait_until

from .conftest import PORT_TRIES, free_port, silent_port

Client = Callable[..., str]
RESOURCES = """
desk:
  uart-raw:
    cls: NetworkSerialPort
    host: lab.example
    port: 4001
    protocol: raw
  uart:
    cls: NetworkSerialPort
    host: lab.example
    port: 4002
"""


def _program(name: str) -> str:
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None or importlib.util.find_spec("labgrid") is None:
        pytest.skip("labgrid is not installed: pip install 'tflm-harness[labgrid]'")
    return found


@pytest.fixture(scope="module")
def coordinator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its address; two serial ports are exported, and two places match one each."""
    folder = tmp_path_factory.mktemp("labgrid")
    (folder / "resources.yaml").write_text(RESOURCES)
    log = (folder / "log").open("w")
    address, process = _started_coordinator(folder, log)
    processes = [process]
    try:
        exporter = [_program("labgrid-exporter"), "-c", address, "-n", "desk-pc", "resources.yaml"]
        processes.append(subprocess.Popen(exporter, cwd=folder, stdout=log, stderr=log))
        wait_until(lambda: "desk-pc/desk/NetworkSerialPort" in _client(address, "resources"), "the ports are exported")
        for place, resource, tags in (
            ("raw", "uart-raw", ["harness-board=sim:nucleo-f446re", "harness-probe=remote:lab.example:5555"]),
            ("desk", "uart", ["harness-board=nucleo-f746zg", "harness-probe=remote:lab.example:5556"]),
            ("other", "uart", []),
        ):
            _client(address, "-p", place, "create")
            _client(address, "-p", place, "add-match", f"desk-pc/desk/NetworkSerialPort/{resource}")
            if tags:
                _client(address, "-p", place, "set-tags", *tags)
        yield address
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait(timeout=PATIENCE_S)
        log.close()


def _client(address: str, *arguments: str, user: str = "") -> str:
    argv = [_program("labgrid-client"), "-x", address, *arguments]
    environment = os.environ | ({"LG_USERNAME": user} if user else {})
    done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE_S, check=False, env=environment)
    return done.stdout + done.stderr


def _started_coordinator(folder: Path, log: IO[str]) -> tuple[str, subprocess.Popen[bytes]]:
    """One that listens, and its address: on another port where somebody was faster."""
    for _ in range(PORT_TRIES):
        port = free_port()
        argv = [_program("labgrid-coordinator"), "-l", f"127.0.0.1:{port}"]
        process = subprocess.Popen(argv, cwd=folder, stdout=log, stderr=log)
        if _comes_up(process, port):
            return f"127.0.0.1:{port}", process
    raise AssertionError("labgrid's coordinator does not start")


def _comes_up(process: subprocess.Popen[bytes], port: int) -> bool:
    """False when it has ended instead."""
    wait_until(lambda: process.poll() is not None or _listens(port), "labgrid's coordinator comes up")
    return process.poll() is None


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_places_are_listed_without_being_taken(coordinator: str) -> None:
    assert list_places(coordinator) == (
        RigEntry(name="desk", board="nucleo-f746zg"),
        RigEntry(name="raw", board="sim:nucleo-f446re"),
    )
    assert "acquired: None" in _client(coordinator, "-p", "desk", "show")


def test_places_become_rigs_for_a_run_and_are_released(coordinator: str) -> None:
    with acquired_rigs(coordinator, lambda _rig: True) as found:
        assert list(found.rigs) == [
            RigEntry(
                name="desk",
                board="nucleo-f746zg",
                probe="remote:lab.example:5556",
                port="rfc2217://lab.example:4002",
            ),
            RigEntry(
                name="raw",
                board="sim:nucleo-f446re",
                probe="remote:lab.example:5555",
                port="socket://lab.example:4001",
            ),
        ]
        assert found.notes == ()
        assert "acquired: None" not in _client(coordinator, "-p", "raw", "show")
    assert "acquired: None" in _client(coordinator, "-p", "raw", "show")
    assert "acquired: None" in _client(coordinator, "-p", "desk", "show")


def test_only_what_is_wanted_is_taken(coordinator: str) -> None:
    with acquired_rigs(coordinator, lambda rig: rig.board == "nucleo-f746zg") as found:
        assert [rig.name for rig in found.rigs] == ["desk"]
        assert "acquired: None" in _client(coordinator, "-p", "raw", "show")


def test_a_place_of_somebody_else_is_left_to_them(coordinator: str) -> None:
    _client(coordinator, "-p", "desk", "acquire", user="eve")
    try:
        with acquired_rigs(coordinator, lambda _rig: True) as found:
            assert [rig.name for rig in found.rigs] == ["raw"]
            (note,) = found.notes
            assert note.startswith("place desk is held by ") and note.endswith("/eve")
        assert "/eve" in _client(coordinator, "-p", "desk", "show")
    finally:
        _client(coordinator, "-p", "desk", "release", user="eve")


def test_a_place_is_released_when_the_run_fails(coordinator: str) -> None:
    with pytest.raises(ZeroDivisionError), acquired_rigs(coordinator, lambda rig: rig.name == "desk"):
        raise ZeroDivisionError
    assert "acquired: None" in _client(coordinator, "-p", "desk", "show")


def test_a_place_whose_tags_make_no_rig_is_told(coordinator: str) -> None:
    _client(coordinator, "-p", "desk", "set-tags", "harness-board=No Such Board")
    try:
        with (
            pytest.raises(ConfigError, match="place desk: "),
            acquired_rigs(coordinator, lambda rig: rig.name == "desk"),
        ):
            pass
        assert "acquired: None" in _client(coordinator, "-p", "desk", "show")
    finally:
        _client(coordinator, "-p", "desk", "set-tags", "harness-board=nucleo-f746zg")


def test_a_coordinator_that_is_not_there_is_told(coordinator: str) -> None:
    with silent_port() as port:
        nobody = f"127.0.0.1:{port}"
        assert nobody != coordinator
        with pytest.raises(LabgridError, match=f"coordinator {nobody} does not answer"):
            list_places(nobody)
