"""A serial line on a TCP port: plain bytes (``socket://``) or RFC 2217 (``rfc2217://``), one client at a time.

The other end of `SerialLink`'s URLs, for boards that are emulated on another machine. A thread of its own answers the
client, whether or not the board listens. A second client is told that the port is taken, as ser2net does.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
from typing import Any

_BUFFER_LIMIT = 1 << 20
_JOIN_TIMEOUT_S = 5.0
_BUFFERED_READS = 64
_TAKEN = b"port already in use\r\n"
#: How long a client that is turned away has to read that and hang up.
_TURN_AWAY_S = 2.0


class SerialServer:
    """The host's end of a twin's line, served. ``url`` is what pyserial opens."""

    def __init__(self, port: int, *, host: str = "127.0.0.1", rfc2217: bool = True) -> None:
        self._listener = socket.create_server((host, port))
        bound = self._listener.getsockname()[1]
        self.url = f"{'rfc2217' if rfc2217 else 'socket'}://{host}:{bound}"
        self._rfc2217 = rfc2217
        self._client: socket.socket | None = None
        self._manager: Any = None
        self._settings = _Settings()
        self._lock = threading.RLock()
        self._outgoing = bytearray()
        self._incoming = bytearray()
        self._stirred = threading.Event()
        self._closed = False
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self._thread = threading.Thread(target=self._run, name=f"serial {self.url}", daemon=True)
        self._thread.start()

    # --- the board's side -------------------------------------------------------------------------------------

    def host_baud(self) -> int:
        """What the client set; 0 (unknown) for plain sockets."""
        return self._settings.baudrate if self._rfc2217 else 0

    def read(self) -> bytes:
        if not self._incoming:
            return b""
        with self._lock:
            data = bytes(self._incoming)
            self._incoming.clear()
        return data

    def write(self, data: bytes) -> None:
        """What is sent while nobody is connected is lost, as on a real port."""
        with self._lock:
            if self._client is None:
                return
            self.queue(b"".join(self._manager.escape(data)) if self._manager else data)

    def queue(self, data: bytes) -> None:
        """Bytes for the client, as they are."""
        with self._lock:
            self._outgoing += data
            del self._outgoing[: max(0, len(self._outgoing) - _BUFFER_LIMIT)]
        self._poke()

    def wait(self, seconds: float) -> None:
        self._stirred.wait(seconds)
        self._stirred.clear()

    def wake(self) -> None:
        self._stirred.set()

    def close(self) -> None:
        self._closed = True
        self._poke()
        self._thread.join(_JOIN_TIMEOUT_S)
        self._hang_up()
        self._listener.close()
        for descriptor in (self._wake_read, self._wake_write):
            with contextlib.suppress(OSError):
                os.close(descriptor)

    # --- the client's side ------------------------------------------------------------------------------------

    def _poke(self) -> None:
        with contextlib.suppress(BlockingIOError, OSError):
            os.write(self._wake_write, b"!")

    def _run(self) -> None:
        while not self._closed:
            client = self._client
            watched: list[Any] = [self._wake_read, self._listener, *([client] if client else [])]
            ready, writable, _ = select.select(watched, [client] if client and self._outgoing else [], [], 1.0)
            if self._wake_read in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake_read, 4096)
            if client in ready:
                self._receive()
            if self._listener in ready:
                for _ in range(_BUFFERED_READS):  # what the former client left may end in its goodbye
                    if not self._receive():
                        break
                self._accept()
            if writable:
                self._send()

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        if self._client is not None:
            threading.Thread(target=_turn_away, args=(client,), daemon=True).start()
            return
        client.setblocking(False)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            self._client = client
            self._outgoing.clear()
            self._incoming.clear()
            if self._rfc2217:
                from serial import rfc2217

                self._manager = rfc2217.PortManager(self._settings, _Writer(self))

    def _receive(self) -> bool:
        """Whether there was something, so that there may be more."""
        if self._client is None:
            return False
        try:
            data = self._client.recv(65536)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            self._hang_up()
            return False
        with self._lock:
            self._incoming += b"".join(self._manager.filter(data)) if self._manager else data
        self._stirred.set()
        return True

    def _send(self) -> None:
        with self._lock:
            if self._client is None:
                return
            try:
                sent = self._client.send(self._outgoing[:65536])
            except BlockingIOError:
                return
            except OSError:
                self._hang_up()
                return
            del self._outgoing[:sent]

    def _hang_up(self) -> None:
        with self._lock:
            if self._client is not None:
                self._client.close()
            self._client = self._manager = None
            self._outgoing.clear()


def _turn_away(client: socket.socket) -> None:
    """What it sent meanwhile is read to its end: a connection that is closed over unread bytes loses the text."""
    client.settimeout(_TURN_AWAY_S)
    with client, contextlib.suppress(OSError):
        client.sendall(_TAKEN)
        client.shutdown(socket.SHUT_WR)
        while client.recv(4096):
            pass


class _Settings:
    """What pyserial's PortManager sets and asks of a serial port."""

    def __init__(self) -> None:
        self.baudrate = 115200
        self.bytesize = 8
        self.parity = "N"
        self.stopbits = 1
        self.xonxoff = self.rtscts = self.dtr = self.rts = self.break_condition = False
        self.cts = self.dsr = self.cd = True
        self.ri = False

    def reset_input_buffer(self) -> None:
        """Nothing is buffered here."""

    def reset_output_buffer(self) -> None:
        """Nothing is buffered here."""


class _Writer:
    """The connection, as PortManager writes its answers to it."""

    def __init__(self, server: SerialServer) -> None:
        self._server = server

    def write(self, data: bytes) -> None:
        self._server.queue(data)
