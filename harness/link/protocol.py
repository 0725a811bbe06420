"""What every link can do: serial port, RTT, the host board's pseudo-terminal, a replayed transcript."""

from __future__ import annotations

from typing import Protocol

from harness.deadline import Deadline


class Link(Protocol):
    """Moves bytes, keeps no policy. Raises LinkError when the port is gone."""

    def write(self, data: bytes, deadline: Deadline) -> None: ...

    def read(self, deadline: Deadline) -> bytes:
        """At least one byte, or ``b""`` when the deadline passed in silence."""

    def discard_input(self) -> None:
        """Drop what has arrived and not been read."""

    def close(self) -> None: ...
