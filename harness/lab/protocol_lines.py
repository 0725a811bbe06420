"""The end of a link's transcript as lines that a person reads: what was asked and answered before a job went wrong."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from pathlib import Path

from harness.errors import LinkError, UsageError
from harness.link.transcript import read_transcript
from harness.units import safe_text
from harness.wire.frame import Frame, FrameReader, Noise
from harness.wire.messages import from_frame

_ARROWS = {"out": "->", "in": "<-"}
_LINE_CHARS = 160


def protocol_tail(path: Path, count: int = 20) -> tuple[str, ...]:
    """The last ``count`` lines; empty where there is no transcript that can be read."""
    try:
        return tuple(deque(_lines(path), maxlen=count))
    except UsageError:
        return ()


def _lines(path: Path) -> Iterator[str]:
    readers = {"out": FrameReader(), "in": FrameReader()}
    for passage in read_transcript(path):
        for item in readers[passage.direction].feed(passage.data):
            yield f"{passage.seconds:9.3f} {_ARROWS[passage.direction]} {_describe(item)}"


def _describe(item: Frame | Noise) -> str:
    if isinstance(item, Noise):
        return safe_text(str(item), _LINE_CHARS)
    try:
        return safe_text(str(from_frame(item)), _LINE_CHARS)
    except LinkError as exc:
        return safe_text(f"frame that cannot be read: {exc.message}", _LINE_CHARS)
