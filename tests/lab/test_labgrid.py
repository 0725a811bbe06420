"""Places of a real labgrid coordinator, with a real exporter and labgrid's own client beside us."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.board.lab_file import RigEntry
from harness.errors import ConfigError
from harness.lab.labgrid_places import LabgridError, acquired_rigs, list_places

from .conftest import free_port

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
    address = f"127.0.0.1:{free_port()}"
    (folder / "resources.yaml").write_text(RESOURCES)
    log = (folder / "log").open("w")
    processes = [subprocess.Popen([_program("labgrid-coordinator"), "-l", address], cwd=folder, stdout=log, stderr=log)]
    try:
        _wait_for_port(address)
        exporter = [_program("labgrid-exporter"), "-c", address, "-n", "desk-pc", "resources.yaml"]
        processes.append(subprocess.Popen(exporter, cwd=folder, stdout=log, stderr=log))
        _until(lambda: "desk-pc/desk/NetworkSerialPort" in _client(address, "resources"))
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
            process.wait(timeout=20)
        log.close()


def _client(address: str, *arguments: str, user: str = "") -> str:
    argv = [_program("labgrid-client"), "-x", address, *arguments]
    environment = os.environ | ({"LG_USERNAME": user} if user else {})
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False, env=environment)
    return done.stdout + done.stderr


def _wait_for_port(address: str) -> None:
    host, port = address.split(":")

    def listens() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((host, int(port))) == 0

    _until(listens)


def _until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "labgrid did not come up"


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
    nobody = f"127.0.0.1:{free_port()}"
    assert nobody != coordinator
    with pytest.raises(LabgridError, match=f"coordinator {nobody} does not answer"):
        list_places(nobody)
