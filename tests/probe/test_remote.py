"""A remote probe whose server is gone: every request ends, and says so."""

from __future__ import annotations

import socket
from types import SimpleNamespace

import pytest

from harness.probe.remote import bound_waits
from harness.probe.trouble import Place, translate

sockets = pytest.importorskip("pyocd.utility.sockets", reason="pyOCD is not installed")


def connected() -> tuple[socket.socket, SimpleNamespace]:
    """The server's end, and a probe whose client is connected to it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        probe = SimpleNamespace(_socket=sockets.ClientSocket(*listener.getsockname()))
        bound_waits(probe)
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


def test_a_server_that_says_nothing_ends_the_request_in_time() -> None:
    server, probe = connected()
    probe._socket.set_timeout(0.01)
    with pytest.raises(ConnectionError, match="no answer for 30 s"):
        probe._socket.readline()
    server.close()
    probe._socket.close()


def test_an_answer_in_pieces_is_read_whole() -> None:
    server, probe = connected()
    server.sendall(b'{"id"')
    assert bytes(probe._socket.read()) == b'{"id"'
    server.sendall(b": 1}\n")
    assert bytes(probe._socket.readline()) == b": 1}\n"
    server.close()
    probe._socket.close()
