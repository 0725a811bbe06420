"""A serial line on a TCP port: plain bytes (``socket://``) or RFC 2217 (``rfc2217://``), one client at a time.

The other end of `SerialLink`'s URLs, for boards that are emulated on another machine.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
from typing import Any

_BUFFER_LIMIT = 1 << 20


class SerialServer:
    """The host's end of a twin's line, served. ``url`` is what pyserial opens."""

    def __init__(self, port: int, *, host: str = "127.0.0.1", rfc2217: bool = True) -> None:
        self._listener = socket.create_server((host, port))
        self._listener.setblocking(False)
        bound = self._listener.getsockname()[1]
        self.url = f"{'rfc2217' if rfc2217 else 'socket'}://{host}:{bound}"
        self._rfc2217 = rfc2217
        self._client: socket.socket | None = None
        self._manager: Any = None
        self._settings = _Settings()
        self._pending = bytearray()
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)

    def host_baud(self) -> int:
        """What the client set; 0 (unknown) for plain sockets."""
        return self._settings.baudrate if self._rfc2217 else 0

    def read(self) -> bytes:
        self._accept()
        self._drain()
        if self._client is None:
            return b""
        try:
            data = self._client.recv(65536)
        except BlockingIOError:
            return b""
        except OSError:
            data = b""
        if not data:
            self._hang_up()
            return b""
        return b"".join(self._manager.filter(data)) if self._manager else data

    def write(self, data: bytes) -> None:
        if self._client is None:
            return
        self._queue(b"".join(self._manager.escape(data)) if self._manager else data)

    def _queue(self, data: bytes) -> None:
        self._pending += data
        del self._pending[: max(0, len(self._pending) - _BUFFER_LIMIT)]
        self._drain()

    def _drain(self) -> None:
        while self._pending and self._client is not None:
            try:
                sent = self._client.send(self._pending[:65536])
            except BlockingIOError:
                return
            except OSError:
                self._hang_up()
                return
            del self._pending[:sent]

    def _accept(self) -> None:
        try:
            client, _ = self._listener.accept()
        except (BlockingIOError, OSError):
            return
        if self._client is not None:
            client.close()
            return
        client.setblocking(False)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._client = client
        if self._rfc2217:
            from serial import rfc2217

            self._manager = rfc2217.PortManager(self._settings, _Writer(self))

    def _hang_up(self) -> None:
        if self._client is not None:
            self._client.close()
        self._client = self._manager = None
        self._pending.clear()

    def wait(self, seconds: float) -> None:
        watched: list[Any] = [self._wake_read, self._client or self._listener]
        ready, _, _ = select.select(watched, [self._client] if self._pending and self._client else [], [], seconds)
        if self._wake_read in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake_read, 4096)

    def wake(self) -> None:
        with contextlib.suppress(BlockingIOError, OSError):
            os.write(self._wake_write, b"!")

    def close(self) -> None:
        self._hang_up()
        self._listener.close()
        for descriptor in (self._wake_read, self._wake_write):
            with contextlib.suppress(OSError):
                os.close(descriptor)


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
        self._server._queue(data)
