"""A probe on another machine, waited for with an end.

pyOCD 0.46.0's client reads on for ever when its server closes the connection, and when it falls silent; its socket
waits 0.1 s at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

#: No request takes a server so long: the largest moves some kilobytes.
_SILENCE_S = 30.0


def bound_waits(probe: Any, clock: Callable[[], float] = time.monotonic) -> None:
    """Let each request to the server of a remote probe that is not open yet end in a ConnectionError, where it would
    never be answered. After one, all further ones end at once."""
    host, port = probe._socket._address
    probe._socket = _bounded_socket(host, port, clock)


def _bounded_socket(host: str, port: int, clock: Callable[[], float]) -> Any:
    from pyocd.utility.sockets import ClientSocket

    class BoundedSocket(ClientSocket):  # type: ignore[misc]
        """pyOCD's, which tries again after each time-out. Silence is counted from the last byte, either way."""

        _stirred_s = 0.0
        _end = ""

        def connect(self) -> None:
            try:
                super().connect()
            except TimeoutError:
                raise self._lost(f"no connection in {self._timeout:g} s") from None
            except OSError as exc:
                raise self._lost(f"no connection: {exc.strerror or exc}") from exc
            self._stirred_s = clock()

        def write(self, data: bytes) -> None:
            if self._end:
                raise self._lost(self._end)
            self._stirred_s = clock()
            left = memoryview(data)
            while left:
                left = left[self._bounded(partial(self._socket.send, left)) or 0 :]

        def read(self, packet_size: int | None = None) -> bytes:
            while (data := self._bounded(partial(super().read, packet_size))) is None:
                pass
            if not data:
                raise self._lost("it closed the connection")
            return bytes(data)

        def _bounded(self, transfer: Callable[[], Any]) -> Any:
            """What ``transfer`` returns; None after a time-out of the socket's, while the silence is not too long."""
            try:
                moved = transfer()
            except TimeoutError:
                if clock() - self._stirred_s < _SILENCE_S:
                    return None
                raise self._lost(f"no answer for {_SILENCE_S:g} s") from None
            except OSError as exc:
                raise self._lost(exc.strerror or str(exc)) from exc
            self._stirred_s = clock()
            return moved

        def _lost(self, why: str) -> ConnectionError:
            self._end = why
            return ConnectionError(f"connection lost to the server of the probe, {host}:{port}: {why}")

    return BoundedSocket(host, port)
