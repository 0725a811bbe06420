"""Ports of the network whose server has one client already: told at once, where pyserial 3.5 waits on.

Such a server says so in a line of text and hangs up (ours, ser2net). One that lets a second client wait cannot be told
from one that is slow.
"""

from __future__ import annotations

import errno
import queue
import select
import socket
from typing import Any

import serial
from serial import rfc2217

#: What is looked for in the text of a server that hangs up. ser2net 4: "Port already in use".
_TAKEN = b"in use"


def taken(url: str) -> serial.SerialException:
    return serial.SerialException(errno.EBUSY, f"could not open port {url}: its server has another client")


class WatchedRfc2217(rfc2217.Serial):  # type: ignore[misc]
    """pyserial's, whose ``open`` ends when the server hangs up, not only when its time is over."""

    _hung_up = False

    def open(self) -> None:
        try:
            super().open()
        except OSError as exc:
            if self._hung_up or isinstance(exc, ConnectionError):
                raise self._refusal() from exc
            raise

    def _telnet_read_loop(self) -> None:
        super()._telnet_read_loop()
        self._hung_up = self.is_open
        for option in self._telnet_options:  # nothing more to wait for
            option.state, option.active = rfc2217.INACTIVE, False

    def _reconfigure_port(self) -> None:
        """The first thing that ``open`` does after the server agreed to be a serial port."""
        if self._hung_up:
            raise serial.SerialException("the server hung up")
        super()._reconfigure_port()

    def _refusal(self) -> serial.SerialException:
        said = _drained(self._read_buffer)
        if _TAKEN in said.lower():
            return taken(str(self.portstr))
        return serial.SerialException(f"the server hung up before it agreed to be a serial port: {said[:80]!r}")


def _drained(received: Any) -> bytes:
    """The bytes of pyserial's queue, in which None is the end."""
    said = b""
    try:
        while True:
            said += received.get_nowait() or b""
    except queue.Empty:
        return said


def refuse_taken(url: str, connection: socket.socket, wait_s: float) -> None:
    """Raises what is raised for a busy port, where a plain socket has just been opened to a server that is taken
    and says so within ``wait_s``.

    pyserial drops what is there when it opens: what is left of the text may be its end only.
    """
    ready, _, _ = select.select([connection], [], [], wait_s)
    if not ready:
        return
    said = connection.recv(64, socket.MSG_PEEK).lower()
    if not said or (said.startswith(b"port already") and _TAKEN in said):
        connection.close()
        raise taken(url)
