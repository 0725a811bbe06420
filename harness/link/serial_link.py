"""A serial port, by device name or pyserial URL (``/dev/ttyACM0``, ``COM7``, ``rfc2217://host:port``, ``socket://``)."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from typing import Any

import serial

from harness.board.lab_file import redacted_url
from harness.deadline import Deadline
from harness.errors import HarnessError, LinkError
from harness.link.port_opening import OPEN_ERRORS, WRITE_TIMEOUT_S, PortOpening, without_password

log = logging.getLogger(__name__)

#: pyserial raises TypeError when another thread or a vanished device closed the port under it.
_GONE = (serial.SerialException, OSError, TypeError)


class SerialLink:
    """Implements ``Link``. The port is opened exclusively: two readers would steal each other's bytes.

    ``find`` names the port anew after it vanished: a USB port that comes back may have another name (ttyACM0 →
    ttyACM1). What was on its way then is lost, as on a bad line. Without it a vanished port is LinkError ``link.gone``.
    """

    def __init__(
        self,
        url: str,
        baud: int = 115200,
        *,
        find: Callable[[], str] | None = None,
        opening: PortOpening | None = None,
    ) -> None:
        self._opening = opening or PortOpening()
        self._find = find
        self._take(url, baud)

    def _take(self, url: str, baud: int) -> None:
        self._port: Any = self._opening.open(url, baud)
        #: As shown: without the password that a URL may hold.
        self.url = redacted_url(url)
        self._secret = url
        self._baud = baud

    def set_baud(self, baud: int) -> None:
        """Change the rate of this side; what the device said at the old rate must have arrived."""
        self._baud = baud
        try:
            self._port.baudrate = baud
        except OPEN_ERRORS as exc:
            self._find_again(exc)

    @property
    def baud(self) -> int:
        return self._baud

    def write(self, data: bytes, deadline: Deadline) -> None:  # noqa: ARG002 - pyserial has one write timeout
        try:
            self._port.write(data)
        except serial.SerialTimeoutException as exc:
            raise LinkError(
                f"{self.url} takes no data for {WRITE_TIMEOUT_S:g} s",
                remedy="check that the device runs and that no flow control is on",
                code="link.write_blocked",
            ) from exc
        except _GONE as exc:
            self._find_again(exc)

    def read(self, deadline: Deadline) -> bytes:
        while True:
            try:
                data: bytes = self._port.read(1)
            except _GONE as exc:
                self._find_again(exc)
                data = b""
            if data:
                return data + self._read_waiting()
            if deadline.passed:
                return b""

    def _read_waiting(self) -> bytes:
        """What has arrived besides; a port that vanishes here is told by the next read, with nothing lost before it."""
        try:
            waiting: bytes = self._port.read(self._port.in_waiting)
        except _GONE:
            return b""
        return waiting

    def discard_input(self) -> None:
        try:
            self._port.reset_input_buffer()
        except _GONE as exc:
            self._find_again(exc)

    def close(self) -> None:
        self._port.close()

    def _find_again(self, exc: Exception) -> None:
        """The port that came back, under whatever name. Raises LinkError when it does not, within the patience."""
        gone = LinkError(
            f"the port {self.url} is gone: {without_password(str(exc), self._secret)}",
            remedy=(
                "does the program that serves this port still run there?"
                if "://" in self.url
                else "plug it in again, and check that no other program has it open"
            ),
            code="link.gone",
        )
        cause = exc if self.url == self._secret else None
        if self._find is None:
            raise gone from cause
        with contextlib.suppress(*_GONE):
            self._port.close()
        former, opening = self.url, self._opening
        started = opening.clock()
        while True:
            try:
                self._take(self._find(), self._baud)
            except HarnessError as still:
                log.debug("looking for %s: %s", former, still.message)
                if opening.clock() - started >= opening.patience_s:
                    raise gone from cause
            else:
                log.warning("%s was gone for a moment; it is %s now", former, self.url)
                return
            opening.sleep(opening.step_s)
