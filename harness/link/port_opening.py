"""Opening a serial port: a busy one is waited for, and what stays in the way is named."""

from __future__ import annotations

import errno
import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import serial

from harness.board.lab_file import redacted_url, secrets_of
from harness.errors import LinkError
from harness.link.port_owner import group_of, port_owner

log = logging.getLogger(__name__)

#: How long one system call waits; deadlines are checked in between. Short, as pyserial's own wait cannot be ended.
_POLL_S = 0.05
WRITE_TIMEOUT_S = 5.0
#: pyserial gives an RFC 2217 server 3 s to agree on each setting, which a busy computer or a far one may exceed.
_AGREEMENT_S = 30
#: What pyserial and the operating systems raise for a port that does not open.
OPEN_ERRORS = (serial.SerialException, OSError, ValueError)
#: TIOCEXCL says EBUSY, a lock of another pyserial EAGAIN.
_BUSY = {errno.EBUSY, errno.EAGAIN}
_ABSENT = {errno.ENOENT, errno.ENXIO, errno.ENODEV}
#: Under Windows pyserial puts the error into its text only; the class and number in it are the same in every language.
_IN_TEXT = re.compile(r"\b[A-Z]\w*Error\((\d+),")


def connect(url: str, baud: int, *, raw_wait_s: float = 0.25) -> Any:
    """pyserial's port, open and, where the system can, exclusive: two readers would steal each other's bytes.

    A plain socket says nothing when it is opened: ``raw_wait_s`` is how long its server may take to say it is taken.
    """
    port: Any = _watched(serial.serial_for_url(_patient(url), do_not_open=True))
    port.baudrate = baud
    port.timeout = _POLL_S
    if "://" not in url:
        port.write_timeout = WRITE_TIMEOUT_S  # pyserial's network ports have none
        port.exclusive = True
    port.open()
    if url.lower().startswith("socket://"):
        from harness.link.served_port import refuse_taken

        refuse_taken(url, port._socket, raw_wait_s)
    return port


def _watched(port: Any) -> Any:
    """The port, or one in place of pyserial's RFC 2217 that does not wait for a server that hung up."""
    if not type(port).__module__.endswith("rfc2217"):
        return port
    from harness.link.served_port import WatchedRfc2217

    watched = WatchedRfc2217(None)
    watched.port = port.port
    return watched


def _patient(url: str) -> str:
    """An RFC 2217 URL that names no time of its own, with ours."""
    _, _, options = url.partition("?")
    if not url.lower().startswith("rfc2217://") or "timeout=" in options:
        return url
    return f"{url}{'&' if options else '' if url.endswith('?') else '?'}timeout={_AGREEMENT_S}"


@dataclass(frozen=True, slots=True)
class PortOpening:
    """How a port is opened, and found again: a busy or vanished one is tried every ``step_s`` for ``patience_s``.

    A port that was just plugged in is held by ModemManager for about ten seconds.
    """

    patience_s: float = 15.0
    step_s: float = 0.25
    connect: Callable[[str, int], Any] = connect
    owner: Callable[[str], str] = port_owner
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def open(self, url: str, baud: int) -> Any:
        """Raises LinkError, without the password that a URL may hold."""
        started, waited = self.clock(), False
        while True:
            try:
                return self.connect(url, baud)
            except OPEN_ERRORS as exc:
                if not _is_busy(url, exc) or self.clock() - started >= self.patience_s:
                    # pyserial writes the URL into its errors, so its error is not the cause of ours
                    raise self._failed(url, exc) from (exc if redacted_url(url) == url else None)
            if not waited:
                log.warning("%s is in use; waiting up to %g s for it", redacted_url(url), self.patience_s)
                waited = True
            self.sleep(self.step_s)

    def _failed(self, url: str, exc: Exception) -> LinkError:
        shown, number = redacted_url(url), error_number(exc)
        if _is_busy(url, exc):
            owner = self.owner(url)
            return LinkError(
                f"{shown} is in use by {owner or 'another program'}, for {self.patience_s:g} s and more",
                remedy="stop ModemManager for this port (udev: ENV{ID_MM_DEVICE_IGNORE}=1), then run again"
                if "ModemManager" in owner
                else "close the other program (a terminal, ModemManager) and run again",
                code="link.busy",
            )
        if number in {errno.EACCES, errno.EPERM}:
            group = group_of(url)
            remedy = f"sudo usermod -aG {group} $USER" if group else "join the group that owns the device (ls -l)"
            return LinkError(
                f"no permission to open {shown}" + (f", which belongs to group {group}" if group else ""),
                remedy=f"{remedy}, then log out and in again",
                code="link.denied",
            )
        if number in _ABSENT:
            return LinkError(f"there is no port {shown}", remedy="harness doctor lists the ports", code="link.no_port")
        return LinkError(
            f"cannot open {shown}: {without_password(str(exc), url)}",
            remedy=(
                "does the program that serves this port run there, and is the address right?"
                if "://" in shown
                else "harness doctor lists the ports"
            ),
            code="link.open",
        )


def error_number(exc: Exception) -> int | None:
    """The errno of what pyserial raised, wherever it put it."""
    number = getattr(exc, "errno", None)
    if number is None:
        found = _IN_TEXT.search(str(exc))
        number = int(found.group(1)) if found else None
    return number


def _is_busy(url: str, exc: Exception) -> bool:
    """Windows denies access to a port that another program has open; there are no permissions to lack."""
    number = error_number(exc)
    return number in _BUSY or (number == errno.EACCES and url.upper().lstrip("\\.?").startswith("COM"))


def without_password(text: str, url: str) -> str:
    """pyserial's words, with the URL as it may be shown; its password stands there by itself in some of them."""
    shown = redacted_url(url)
    if url == shown:
        return text
    text = text.replace(url, shown)
    try:
        urlsplit(url)
    except ValueError:
        return "an address that cannot be read"
    for secret in secrets_of(url):
        text = text.replace(secret, "***")
    return text
