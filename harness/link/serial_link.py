"""A serial port, by device name or pyserial URL (``/dev/ttyACM0``, ``COM7``, ``rfc2217://host:port``, ``socket://``)."""

from __future__ import annotations

import errno
from typing import Any
from urllib.parse import urlsplit

import serial

from harness.board.lab_file import redacted_url
from harness.deadline import Deadline
from harness.errors import LinkError

#: How long one system call waits; deadlines are checked in between. Short, as pyserial's own wait cannot be ended.
_POLL_S = 0.05
_WRITE_TIMEOUT_S = 5.0


class SerialLink:
    """Implements ``Link``. The port is opened exclusively: two readers would steal each other's bytes."""

    def __init__(self, url: str, baud: int = 115200) -> None:
        #: As shown: without the password that a URL may hold.
        self.url = redacted_url(url)
        self._secret = url
        try:
            self._port: Any = serial.serial_for_url(url, do_not_open=True)
            self._port.baudrate = baud
            self._port.timeout = _POLL_S
            if "://" not in url:
                self._port.write_timeout = _WRITE_TIMEOUT_S  # pyserial's network ports have none
                self._port.exclusive = True
            self._port.open()
        except (serial.SerialException, OSError, ValueError) as exc:
            # pyserial writes the URL into its errors, so its error is not the cause of ours
            raise _open_error(self.url, exc, url) from (exc if self.url == url else None)

    def set_baud(self, baud: int) -> None:
        """Change the rate of this side; what the device said at the old rate must have arrived."""
        try:
            self._port.baudrate = baud
        except (serial.SerialException, OSError, ValueError) as exc:
            raise self._gone(exc) from self._cause(exc)

    @property
    def baud(self) -> int:
        return int(self._port.baudrate)

    def write(self, data: bytes, deadline: Deadline) -> None:  # noqa: ARG002 - pyserial has one write timeout
        try:
            self._port.write(data)
        except serial.SerialTimeoutException as exc:
            raise LinkError(
                f"{self.url} takes no data for {_WRITE_TIMEOUT_S:g} s",
                remedy="check that the device runs and that no flow control is on",
                code="link.write_blocked",
            ) from exc
        except (serial.SerialException, OSError, TypeError) as exc:
            raise self._gone(exc) from self._cause(exc)

    def read(self, deadline: Deadline) -> bytes:
        try:
            while True:
                data: bytes = self._port.read(1)
                if data:
                    return data + self._read_waiting()
                if deadline.passed:
                    return b""
        except (serial.SerialException, OSError, TypeError) as exc:
            # pyserial raises TypeError when another thread or a vanished device closed the port under it
            raise self._gone(exc) from self._cause(exc)

    def _read_waiting(self) -> bytes:
        """What has arrived besides; a port that vanishes here is told by the next read, with nothing lost before it."""
        try:
            waiting: bytes = self._port.read(self._port.in_waiting)
        except (serial.SerialException, OSError, TypeError):
            return b""
        return waiting

    def discard_input(self) -> None:
        try:
            self._port.reset_input_buffer()
        except (serial.SerialException, OSError) as exc:
            raise self._gone(exc) from self._cause(exc)

    def close(self) -> None:
        self._port.close()

    def _cause(self, exc: Exception) -> Exception | None:
        return exc if self.url == self._secret else None

    def _gone(self, exc: Exception) -> LinkError:
        return LinkError(
            f"the port {self.url} is gone: {_without(str(exc), self._secret, self.url)}",
            remedy="plug it in again, and check that no other program has it open",
            code="link.gone",
        )


def _without(text: str, url: str, shown: str) -> str:
    """pyserial's words, with the URL as it may be shown; its password stands there by itself in some of them."""
    if url == shown:
        return text
    text = text.replace(url, shown)
    try:
        password = urlsplit(url).password
    except ValueError:
        return "an address that cannot be read"
    return text.replace(password, "***") if password else text


def _open_error(url: str, exc: Exception, secret: str) -> LinkError:
    number = getattr(exc, "errno", None)
    if number == errno.EACCES:
        remedy = "join the group that owns the device (ls -l), then log in again"
        return LinkError(f"no permission to open {url}", remedy=remedy, code="link.denied")
    if number == errno.EBUSY:
        remedy = "close the other program (a terminal, ModemManager) and run again"
        return LinkError(f"{url} is in use", remedy=remedy, code="link.busy")
    if number in {errno.ENOENT, errno.ENXIO, errno.ENODEV}:
        return LinkError(f"there is no port {url}", remedy="harness doctor lists the ports", code="link.no_port")
    return LinkError(
        f"cannot open {url}: {_without(str(exc), secret, url)}",
        remedy="harness doctor lists the ports",
        code="link.open",
    )
