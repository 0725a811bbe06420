"""The serial line of a twin: a pseudo-terminal on the host's side, bauds and defects on the way."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from harness.errors import MissingDependencyError

#: A receiver that samples in the middle of each bit still reads the tenth one right.
_BAUD_TOLERANCE = 0.045
_BUFFER_LIMIT = 1 << 20
#: Start, eight bits of data, stop.
_BITS_PER_BYTE = 10


class Endpoint(Protocol):
    """The host's end of the line. ``url`` is what pyserial opens."""

    url: str

    def host_baud(self) -> int:
        """What the host's port is set to; 0 when that cannot be told."""

    def read(self) -> bytes:
        """What the host sent, at once; ``b""`` for nothing."""

    def write(self, data: bytes) -> None: ...

    def wait(self, seconds: float) -> None:
        """Until the host sends something, `wake` is called, or the time is over."""

    def wake(self) -> None: ...

    def close(self) -> None: ...


class PseudoTerminal:
    """A pty pair. What the board sends while nobody has the port open is lost, as on a real board."""

    def __init__(self) -> None:
        if sys.platform == "win32":
            raise MissingDependencyError(
                "a twin's serial port is a pseudo-terminal, which Windows does not have",
                remedy="run the twin under Linux or macOS: harness sim serve, and use socket://host:port here",
            )
        import pty
        import termios
        import tty

        self._termios = termios
        self._master, slave = pty.openpty()
        self.url = os.ttyname(slave)
        tty.setraw(slave)
        os.close(slave)
        os.set_blocking(self._master, False)
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self._pending = bytearray()
        self._bauds = {
            getattr(termios, name): int(name[1:]) for name in dir(termios) if name[0] == "B" and name[1:].isdigit()
        }
        self._poll = select.poll()
        self._poll.register(self._master, select.POLLIN)
        self._hangup = True

    def replug(self) -> None:
        """Vanish, and come back under another name, as a USB port does that enumerates anew."""
        import pty
        import tty

        master, slave = pty.openpty()
        self.url = os.ttyname(slave)
        tty.setraw(slave)
        os.close(slave)
        os.dup2(master, self._master)  # the former one is closed by this, for a thread that waits for it too
        os.close(master)
        os.set_blocking(self._master, False)
        self._pending.clear()
        self._hangup = True

    def host_baud(self) -> int:
        try:
            return self._bauds.get(self._termios.tcgetattr(self._master)[5], 0)
        except self._termios.error:
            return 0

    def read(self) -> bytes:
        self._drain()
        try:
            data = os.read(self._master, 65536)
        except BlockingIOError:
            self._hangup = False
            return b""
        except OSError as exc:
            if exc.errno == errno.EIO:
                self._hangup = True
                return b""
            raise
        self._hangup = False
        return data

    def write(self, data: bytes) -> None:
        if self._is_closed_by_host():
            self._pending.clear()
            return
        self._pending += data
        del self._pending[: max(0, len(self._pending) - _BUFFER_LIMIT)]
        self._drain()

    def _is_closed_by_host(self) -> bool:
        return any(event & select.POLLHUP for _, event in self._poll.poll(0))

    def _drain(self) -> None:
        while self._pending:
            try:
                written = os.write(self._master, self._pending[:4096])
            except BlockingIOError:
                return
            except OSError:
                self._pending.clear()
                return
            del self._pending[:written]

    def wait(self, seconds: float) -> None:
        watched = [self._wake_read] if self._hangup else [self._wake_read, self._master]
        ready, _, _ = select.select(watched, [self._master] if self._pending else [], [], min(seconds, 0.02))
        if self._wake_read in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake_read, 4096)
        if self._hangup:
            self._hangup = self._is_closed_by_host()

    def wake(self) -> None:
        with contextlib.suppress(BlockingIOError, OSError):
            os.write(self._wake_write, b"!")

    def close(self) -> None:
        for descriptor in (self._master, self._wake_read, self._wake_write):
            with contextlib.suppress(OSError):
                os.close(descriptor)


@dataclass(slots=True)
class LineFaults:
    """What goes wrong on the line. Counts run over all bytes of one direction."""

    garbage_at_boot: bytes = b""
    drop_every: int = 0  # device → host
    duplicate_every: int = 0
    corrupt_every: int = 0
    silent: bool = False
    echo: bool = False
    drop_to_device_every: int = 0
    #: Above this rate nothing arrives as it was sent; 0: any rate holds.
    max_baud: int = 0
    _sent: int = field(default=0, repr=False)
    _taken: int = field(default=0, repr=False)

    def at_rate(self, data: bytes, baud: int) -> bytes:
        """What a cable that is too long leaves of it."""
        if self.max_baud and baud > self.max_baud:
            return bytes(byte ^ (0x81 | 0x10 << at % 3) for at, byte in enumerate(data))
        return data

    def to_host(self, data: bytes) -> bytes:
        if self.silent:
            return b""
        out = bytearray()
        for byte in data:
            self._sent += 1
            if self.drop_every and self._sent % self.drop_every == 0:
                continue
            if self.corrupt_every and self._sent % self.corrupt_every == 0:
                byte ^= 0x55
            out.append(byte)
            if self.duplicate_every and self._sent % self.duplicate_every == 0:
                out.append(byte)
        return bytes(out)

    def to_device(self, data: bytes) -> bytes:
        if not self.drop_to_device_every:
            return data
        out = bytearray()
        for byte in data:
            self._taken += 1
            if self._taken % self.drop_to_device_every:
                out.append(byte)
        return bytes(out)


class Wire:
    """Both directions between a UART model and the host's end.

    ``paced``: each byte takes its ten bits of the sender's rate, both ways, on ``clock`` (seconds).
    """

    def __init__(self, endpoint: Endpoint, *, paced: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self.endpoint = endpoint
        self.paced = paced
        self._clock = clock
        #: On their way to the host: (when they have passed, byte).
        self._outgoing: deque[tuple[float, int]] = deque()
        self._out_free_at = 0.0
        self._in_due_at = 0.0
        self.faults = LineFaults()
        self._burst = bytearray()
        self._burst_baud = 0
        self._incoming: deque[int] = deque()
        self.sent_bytes = 0
        self.received_bytes = 0
        #: How much faster the board's clock is than its firmware believes.
        self.clock_factor = 1.0
        self._alarm: tuple[int, Callable[[], None]] | None = None

    def after_bytes(self, count: int, action: Callable[[], None]) -> None:
        """Call ``action`` once, when ``count`` more bytes have been sent to the host."""
        self._alarm = (self.sent_bytes + count, action)

    # --- the device's side ------------------------------------------------------------------------------------

    def send(self, byte: int, baud: int) -> None:
        baud = int(baud * self.clock_factor)
        if self._burst and baud != self._burst_baud:
            self.flush()
        self._burst_baud = baud
        self._burst.append(byte)
        self.sent_bytes += 1
        if self._alarm and self.sent_bytes >= self._alarm[0]:
            action, self._alarm = self._alarm[1], None
            action()
        if len(self._burst) >= 1024:
            self.flush()

    def receive(self, baud: int) -> int | None:
        """The next byte as a receiver at ``baud`` sees it."""
        if not self._incoming:
            data = self.endpoint.read()
            if not data:
                return None
            if self.faults.echo:
                self.endpoint.write(data)
            seen = resample(data, self.endpoint.host_baud(), int(baud * self.clock_factor))
            self._incoming.extend(self.faults.to_device(self.faults.at_rate(seen, baud)))
            if not self._incoming:
                return None
            self._in_due_at = max(self._clock(), self._in_due_at) + _byte_s(baud)
        if self.paced:
            if self._clock() < self._in_due_at:
                return None
            self._in_due_at += _byte_s(baud)
        self.received_bytes += 1
        return self._incoming.popleft()

    def flush(self) -> None:
        """Hand what was sent to the host. Called after each slice."""
        if self._burst:
            data, self._burst = bytes(self._burst), bytearray()
            seen = self.faults.at_rate(resample(data, self._burst_baud, self.endpoint.host_baud()), self._burst_baud)
            self._put(self.faults.to_host(seen), len(data) * _byte_s(self._burst_baud))
        self._deliver()

    def _put(self, data: bytes, seconds: float) -> None:
        """``data`` is what the host sees of bytes that take ``seconds`` to pass."""
        if not self.paced:
            self.endpoint.write(data)
            return
        start = max(self._clock(), self._out_free_at)
        self._outgoing.extend((start + seconds * (n + 1) / len(data), byte) for n, byte in enumerate(data))
        self._out_free_at = start + seconds

    def _deliver(self) -> None:
        now, passed = self._clock(), bytearray()
        while self._outgoing and self._outgoing[0][0] <= now:
            passed.append(self._outgoing.popleft()[1])
        if passed:
            self.endpoint.write(bytes(passed))

    def busy_s(self) -> float:
        """How long the line is still taken by what the board has sent."""
        return max(0.0, self._out_free_at - self._clock())

    def next_s(self) -> float | None:
        """Until the next byte has passed, either way; None while there is none, or the line is not paced."""
        if not self.paced:
            return None
        due = [self._outgoing[0][0]] if self._outgoing else []
        due += [self._in_due_at] if self._incoming else []
        return max(0.0, min(due) - self._clock()) if due else None

    def board_reset(self) -> None:
        """What was on its way to the board is lost."""
        self.flush()
        self._incoming.clear()
        if self.faults.garbage_at_boot:
            self.endpoint.write(self.faults.garbage_at_boot)


def _byte_s(baud: int) -> float:
    return _BITS_PER_BYTE / baud if baud else 0.0


def resample(data: bytes, sender_baud: int, receiver_baud: int) -> bytes:
    """What a UART at ``receiver_baud`` makes of back-to-back 8N1 frames sent at ``sender_baud``.

    0 stands for an unknown baud, taken to be the other one's.
    """
    if not sender_baud or not receiver_baud or abs(sender_baud - receiver_baud) <= _BAUD_TOLERANCE * receiver_baud:
        return data
    bits = [bit for byte in data for bit in (0, *((byte >> n) & 1 for n in range(8)), 1)]
    width = sender_baud / receiver_baud  # of a receiver's bit, in sender's bits
    out = bytearray()
    position = 0.0
    while True:
        start = _next_start(bits, position)
        if start is None:
            return bytes(out)
        samples = [_level(bits, start + (n + 0.5) * width) for n in range(10)]
        if samples[0] == 0:
            out.append(sum(bit << n for n, bit in enumerate(samples[1:9])))
        position = start + 9.5 * width


def _level(bits: list[int], position: float) -> int:
    index = int(position)
    return bits[index] if index < len(bits) else 1


def _next_start(bits: list[int], position: float) -> int | None:
    index = int(position)
    if index < len(bits) and bits[index] == 0 and position > index:
        index += 1  # in the middle of a low bit: no edge
    while index < len(bits):
        if bits[index] == 0 and (index == 0 or bits[index - 1] == 1):
            return index
        index += 1
    return None
