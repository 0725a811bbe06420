"""Transcripts: what went over a link, as JSON lines; written beside any link, replayed in place of one.

First line: ``{"schema": "harness.transcript", "schema_version": 1}``; then one line per piece of data:
``{"t": seconds since the start, "dir": "out" | "in", "hex": "…"}`` (out: host to device).
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.bounded_file import read_bounded
from harness.deadline import Deadline
from harness.errors import LinkError, UsageError
from harness.link.protocol import Link

SCHEMA = "harness.transcript"


@dataclass(frozen=True, slots=True)
class Passage:
    """One piece of a transcript."""

    seconds: float
    direction: str  # "out" | "in"
    data: bytes


class TranscribedLink:
    """A link whose traffic is written down. Implements ``Link``."""

    def __init__(self, link: Link, path: Path) -> None:
        self._link = link
        self._start = time.monotonic()
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("w", encoding="ascii")
        except OSError as exc:
            raise _unwritable(path, exc) from exc
        self._put({"schema": SCHEMA, "schema_version": 1})

    def write(self, data: bytes, deadline: Deadline) -> None:
        self._note("out", data)
        self._link.write(data, deadline)

    def read(self, deadline: Deadline) -> bytes:
        data = self._link.read(deadline)
        if data:
            self._note("in", data)
        return data

    def discard_input(self) -> None:
        self._link.discard_input()

    def close(self) -> None:
        with contextlib.suppress(OSError):  # each line was flushed, or its loss reported
            self._file.close()
        self._link.close()

    def _note(self, direction: str, data: bytes) -> None:
        self._put({"t": round(time.monotonic() - self._start, 6), "dir": direction, "hex": data.hex()})

    def _put(self, line: dict[str, Any]) -> None:
        try:
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()
        except OSError as exc:
            raise _unwritable(self._path, exc) from exc


def _unwritable(path: Path, exc: OSError) -> UsageError:
    text = f"cannot write the transcript {path}: {exc.strerror or exc}"
    return UsageError(
        text, remedy="name another file with --transcript, or free some space", code="transcript.unwritable"
    )


def read_transcript(path: Path) -> list[Passage]:
    """The passages of a transcript file. A last line cut short (the tool was killed) is left out."""
    try:
        lines = read_bounded(path).decode("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as exc:
        raise UsageError(f"cannot read the transcript {path}: {exc}", remedy="check the path") from exc
    passages = list(_passages(path, lines))
    if not lines or _header_version(lines[0]) != 1:
        raise UsageError(f"{path} is not a transcript", remedy="--transcript of harness sweep writes one")
    return passages


def _header_version(line: str) -> int | None:
    try:
        header = json.loads(line)
    except json.JSONDecodeError:
        return None
    if not isinstance(header, dict) or header.get("schema") != SCHEMA:
        return None
    version = header.get("schema_version")
    return version if isinstance(version, int) else None


def _passages(path: Path, lines: list[str]) -> Iterator[Passage]:
    for number, line in enumerate(lines[1:], start=2):
        passage = _passage(line)
        if passage is not None:
            yield passage
        elif number < len(lines):
            remedy = "the file is damaged: take another"
            raise UsageError(f"{path}, line {number} is not a passage of a transcript", remedy=remedy)


def _passage(line: str) -> Passage | None:
    try:
        entry = json.loads(line)
        passage = Passage(float(entry["t"]), str(entry["dir"]), bytes.fromhex(entry["hex"]))
    except (ValueError, KeyError, TypeError):
        return None
    return passage if passage.direction in {"in", "out"} else None


class ReplayedLink:
    """A transcript in the place of a device: gives what came in after checking what goes out. Implements ``Link``."""

    def __init__(self, passages: list[Passage]) -> None:
        self._outgoing = b"".join(p.data for p in passages if p.direction == "out")
        self._passages = passages
        self._next = 0
        self._sent = 0

    def write(self, data: bytes, deadline: Deadline) -> None:  # noqa: ARG002 - a replay does not wait
        expected = self._outgoing[self._sent : self._sent + len(data)]
        if data != expected:
            raise LinkError(
                f"the transcript goes on with {expected.hex()}, not with {data.hex()} (byte {self._sent} sent)",
                remedy="replay with the nonces and options of the recorded run",
                code="link.replay_differs",
            )
        self._sent += len(data)

    def read(self, deadline: Deadline) -> bytes:  # noqa: ARG002
        recorded_out = 0
        for passage in self._passages[: self._next]:
            recorded_out += len(passage.data) if passage.direction == "out" else 0
        while self._next < len(self._passages):
            passage = self._passages[self._next]
            if passage.direction == "out":
                recorded_out += len(passage.data)
                if recorded_out > self._sent:
                    return b""
            self._next += 1
            if passage.direction == "in":
                return passage.data
        return b""

    def discard_input(self) -> None:
        """Input that was discarded is not in the transcript."""

    def close(self) -> None:
        pass
