"""What every probe can do: the debug probe of a real board, of a twin, and the host board's process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from harness.deadline import Deadline


@dataclass(frozen=True, slots=True)
class FlashImage:
    """What is put on a board. ``segments`` are (address, bytes); the host board takes the model itself, no segments,
    and runs it with ``interpreter`` (empty: its own).

    ``build_id`` is what the firmware answers in its hello: 32 hex digits.
    """

    build_id: str
    model_sha256: str
    segments: tuple[tuple[int, bytes], ...] = ()
    model_path: str = ""
    interpreter: str = ""


class Probe(Protocol):
    """Does one thing at a time and keeps no policy: no retry, no prompt, no print. Raises ProbeError."""

    def flash(self, image: FlashImage, deadline: Deadline) -> int:
        """Program the image, read it back and compare it whole. Leaves the core halted or in reset. Returns how often
        it programmed: 0 when that image was on the board already."""

    def reset(self, deadline: Deadline) -> None:
        """Reset and run: one fresh boot."""

    def read_memory(self, address: int, size: int, deadline: Deadline) -> bytes: ...

    def close(self) -> None: ...
