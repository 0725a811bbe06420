"""A probe on another machine, waited for with an end.

pyOCD 0.46.0's client reads on for ever when its server closes the connection, and when it falls silent.
"""

from __future__ import annotations

from typing import Any

#: No request takes a server so long: the largest moves some kilobytes.
_SILENCE_S = 30.0


def bound_waits(probe: Any) -> None:
    """Let each request to the server of a remote probe that is not open yet end in a ConnectionError, where it would
    never be answered. After one, all further ones end at once."""
    host, port = probe._socket._address
    probe._socket = _bounded_socket(host, port)


def _bounded_socket(host: str, port: int) -> Any:
    from pyocd.utility.sockets import ClientSocket

    class BoundedSocket(ClientSocket):  # type: ignore[misc]
        """pyOCD's, which tries again after each time-out of ten seconds."""

        _silent_s = 0.0
        _end = ""

        def write(self, data: bytes) -> Any:
            if self._end:
                raise self._lost()
            self._silent_s = 0.0
            return super().write(data)

        def read(self, packet_size: int | None = None) -> bytes:
            try:
                data: bytes = super().read(packet_size)
            except TimeoutError:
                self._silent_s += self._timeout
                if self._silent_s < _SILENCE_S:
                    raise
                self._end = f"no answer for {self._silent_s:g} s"
                raise self._lost() from None
            if not data:
                self._end = "it closed the connection"
                raise self._lost()
            return data

        def _lost(self) -> ConnectionError:
            return ConnectionError(f"connection lost to the server of the probe, {host}:{port}: {self._end}")

    return BoundedSocket(host, port)
