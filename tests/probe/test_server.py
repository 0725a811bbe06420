"""The server of a probe: what a client that is gone has left behind, and how it ends.

A client that was killed, or gave up, between a lock and its unlock left the probe locked for all others, for ever; the
server's threads waited for that lock at the end of the process too, so that one SIGTERM did nothing.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from harness.probe.remote import bound_waits
from harness.probe.server import ProbeServer
from tests.patience import PATIENCE_S, wait_until

tcp_client = pytest.importorskip("pyocd.probe.tcp_client_probe", reason="pyOCD is not installed")
from pyocd.probe.debug_probe import DebugProbe  # noqa: E402


class Probe(DebugProbe):  # type: ignore[misc]
    """Says whether it is open and connected."""

    unique_id = "P1"
    description = "a probe"
    wire_protocol = None
    state = "closed"

    def open(self) -> None:
        self.state = "open"

    def close(self) -> None:
        self.state = "closed"

    def connect(self, protocol: Any = None) -> None:  # noqa: ARG002
        self.state = "connected"

    def disconnect(self) -> None:
        self.state = "open"


@pytest.fixture
def probe() -> Probe:
    return Probe()


@pytest.fixture
def server(probe: Probe) -> Iterator[ProbeServer]:
    served = ProbeServer(probe)
    yield served
    served.close()


def client(server: ProbeServer) -> Any:
    """One of pyOCD's, open."""
    remote = tcp_client.TCPClientProbe(f"127.0.0.1:{server.port}")
    bound_waits(remote)
    remote.open()
    return remote


def vanish(remote: Any) -> None:
    """As a process that is killed: the connection ends, and no word is said before."""
    remote._socket.close()


def test_the_lock_of_a_client_that_is_gone_is_released(server: ProbeServer) -> None:
    first = client(server)
    first.lock()
    first.lock()
    second = client(server)
    got = threading.Thread(target=second.lock, daemon=True)
    got.start()
    vanish(first)
    got.join(PATIENCE_S)
    assert not got.is_alive()
    second.unlock()
    vanish(second)


def test_what_a_client_that_is_gone_left_open_is_closed(server: ProbeServer, probe: Probe) -> None:
    first = client(server)
    first.connect()
    second = client(server)
    second.connect()
    vanish(first)
    assert probe.state == "connected"
    vanish(second)
    wait_until(lambda: probe.state == "closed", "the probe is closed with its last client")


def test_a_client_that_says_goodbye_leaves_nothing_to_take_back(server: ProbeServer, probe: Probe) -> None:
    first = client(server)
    for remote in (client(server), client(server)):
        remote.lock()
        remote.unlock()
        remote.close()
    first.connect()
    assert probe.state == "connected"
    first.disconnect()
    first.close()
    wait_until(lambda: probe.state == "closed", "the probe is closed with its last client")


def test_the_end_hangs_up_on_clients_that_wait_for_each_other_and_frees_the_port(probe: Probe) -> None:
    server = ProbeServer(probe)
    holder, waiting = client(server), client(server)
    holder.lock()

    def wait() -> None:
        with contextlib.suppress(ConnectionError):
            waiting.lock()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    ended = threading.Thread(target=server.close, daemon=True)
    ended.start()
    ended.join(PATIENCE_S)
    assert not ended.is_alive()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    with socket.create_server(("127.0.0.1", server.port)):
        pass
    assert not [one.name for one in threading.enumerate() if not one.daemon and "process_request" in one.name]
