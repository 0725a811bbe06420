"""A remote probe whose server is gone: every request ends, and says so."""

from __future__ import annotations

import itertools
import json
import socket
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from harness.board.catalogue import load_hardware_board
from harness.errors import ExitCode, ProbeError
from harness.probe.remote import bound_waits
from harness.probe.session import open_session
from harness.probe.trouble import Place, translate
from tests.patience import PATIENCE_S, patient

sockets = pytest.importorskip("pyocd.utility.sockets", reason="pyOCD is not installed")


def connected(clock: Callable[[], float] = time.monotonic) -> tuple[socket.socket, SimpleNamespace]:
    """The server's end, and a probe whose client is connected to it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        probe = SimpleNamespace(_socket=sockets.ClientSocket(*listener.getsockname()))
        bound_waits(probe, clock)
        probe._socket.connect()
        return listener.accept()[0], probe


def test_a_server_that_closes_ends_the_request_and_all_further_ones() -> None:
    server, probe = connected()
    server.close()
    with pytest.raises(ConnectionError, match="it closed the connection"):
        probe._socket.readline()
    with pytest.raises(ConnectionError, match="it closed the connection") as caught:
        probe._socket.write(b"{}\n")
    assert translate(caught.value, Place("far", "reset")).code == "probe.remote_unreachable"
    probe._socket._socket.close()


def test_silence_is_counted_by_the_clock() -> None:
    """pyOCD opens a remote probe with a time-out of 0.1 s. Three of them were taken for thirty seconds."""
    times = iter([0, 0, 0, 1, 2, 29, 30])
    server, probe = connected(lambda: next(times))
    probe._socket.set_timeout(0.01)
    probe._socket.write(b"{}\n")
    with pytest.raises(ConnectionError, match="no answer for 30 s"):
        probe._socket.readline()
    assert list(times) == [], "asked as long as it takes"
    server.close()
    probe._socket._socket.close()


def test_a_server_that_takes_no_data_ends_the_request_in_time() -> None:
    times = itertools.count(0, 0.5)
    server, probe = connected(lambda: next(times))
    probe._socket.set_timeout(0.01)
    with pytest.raises(ConnectionError, match="no answer for 30 s") as caught:
        probe._socket.write(bytes(50_000_000))
    assert translate(caught.value, Place("far", "programming")).code == "probe.remote_unreachable"
    server.close()
    probe._socket._socket.close()


def test_a_request_that_is_taken_in_pieces_is_sent_whole() -> None:
    server, probe = connected()
    probe._socket.set_timeout(0.01)
    sent = threading.Thread(target=lambda: probe._socket.write(bytes(10_000_000)))
    sent.start()
    got = 0
    while got < 10_000_000:
        got += len(server.recv(1 << 20))
    sent.join(PATIENCE_S)
    server.close()
    probe._socket.close()


@pytest.mark.parametrize("address", [("127.0.0.1", 9), ("nobody.invalid", 5555)])
def test_a_server_that_is_not_there_is_named(address: tuple[str, int]) -> None:
    probe = SimpleNamespace(_socket=sockets.ClientSocket(*address))
    bound_waits(probe)
    with pytest.raises(ConnectionError, match="no connection") as caught:
        probe._socket.connect()
    told = translate(caught.value, Place("far", "connecting"))
    assert told.code == "probe.remote_unreachable"
    assert "rig far, connecting" in told.message
    assert f"{address[0]}:{address[1]}" in told.message


def test_a_probe_that_is_lost_while_it_connects_is_told_as_such() -> None:
    """Its description is asked through the connection: what that raised was told as a file's error, exit 2."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=lambda: _hang_up_after_hello(listener.accept()[0]), daemon=True).start()
        board = load_hardware_board("nucleo-f446re")
        with pytest.raises(ProbeError, match="rig far, connecting: the remote probe's server") as caught:
            open_session(board, f"remote:127.0.0.1:{listener.getsockname()[1]}", "far", patient())
    assert caught.value.code == "probe.remote_unreachable"
    assert caught.value.exit_code is ExitCode.PROBE


def _hang_up_after_hello(client: socket.socket) -> None:
    with client, client.makefile("rw") as lines:
        for _ in range(2):  # hello, open
            lines.write(json.dumps({"id": json.loads(lines.readline())["id"], "status": 0}) + "\n")
            lines.flush()
        lines.readline()


def test_an_answer_in_pieces_is_read_whole() -> None:
    server, probe = connected()
    server.sendall(b'{"id"')
    assert bytes(probe._socket.read()) == b'{"id"'
    server.sendall(b": 1}\n")
    assert bytes(probe._socket.readline()) == b": 1}\n"
    server.close()
    probe._socket.close()
