"""The protocol client: requests out, answers in, with bounded retransmission that is counted and recorded.

Nothing is taken for an answer but a whole frame with this session's nonce, the request's sequence number and the
answer's type. Everything else is counted and dropped.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from harness.deadline import Deadline
from harness.errors import DeviceError, LinkError
from harness.link.protocol import Link
from harness.units import safe_text
from harness.wire import messages as wire
from harness.wire.frame import Frame, FrameReader, Noise, encode_frame

A = TypeVar("A")


class SilenceError(LinkError):
    """No answer before the deadline. ``stage`` is where the device said it was working, None if it never spoke."""

    default_code = "link.silent"

    def __init__(self, message: str, *, stage: wire.Stage | None, remedy: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.stage = stage


class RebootedError(DeviceError):
    """The device lost the session: it has rebooted since the hello."""

    default_code = "device.rebooted"


class UnsupportedError(DeviceError):
    """The device said that it cannot do this."""

    default_code = "device.unsupported"


class RefusedError(DeviceError):
    """The device did not carry out a request. ``reason`` is its own."""

    default_code = "device.refused"

    def __init__(self, message: str, *, reason: wire.RefusalReason, remedy: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.reason = reason


class VersionMismatchError(DeviceError):
    """The device speaks another major version of the protocol."""

    default_code = "device.protocol_version"


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """``first_s`` is the wait before the first retransmission; each next one doubles it up to ``longest_s``. A device
    that has said nothing after ``silent_tries`` sendings is silent; one that works is asked until the deadline. After a
    damaged answer it is asked again at once, up to ``hurried_tries`` times: a line that spoils bytes at regular
    distances lets an answer through in some of them."""

    first_s: float = 0.25
    longest_s: float = 5.0
    silent_tries: int = 6
    hurried_tries: int = 16


@dataclass(slots=True)
class LinkCounts:
    """What the line did to a session; part of the record."""

    requests: int = 0
    retransmissions: int = 0
    damaged: int = 0
    stale: int = 0
    noise_bytes: int = 0


def random_nonces() -> Iterator[int]:
    """Nonces of sessions: random and never 0, so that no earlier session can be mistaken for this one."""
    while True:
        yield secrets.randbelow(0xFFFFFFFF) + 1


class Device:
    """One device behind a link. ``on_text`` gets the lines that it prints outside frames."""

    def __init__(
        self,
        link: Link,
        *,
        nonces: Iterator[int] | None = None,
        policy: RetryPolicy | None = None,
        on_text: Callable[[str], None] | None = None,
    ) -> None:
        self.link = link
        self.counts = LinkCounts()
        self._nonces = nonces or random_nonces()
        self._policy = policy or RetryPolicy()
        self._on_text = on_text or (lambda _text: None)
        self._reader = FrameReader()
        self._inbox: deque[Frame | Noise] = deque()
        self._nonce = 0
        self._sequence = 0

    def forget(self) -> None:
        """Drop what has arrived: after a reset it is from before."""
        self.link.discard_input()
        self._reader = FrameReader()
        self._inbox.clear()

    def await_boot_line(self, deadline: Deadline) -> bool:
        """Listen until the device prints its boot line; False when it did not by the deadline."""
        while not deadline.passed:
            while self._inbox:
                piece = self._inbox.popleft()
                if isinstance(piece, Noise):
                    self._hear(piece, opening=True)
                    if piece.is_text and piece.text.startswith(wire.BOOT_LINE_PREFIX):
                        return True
                else:
                    self.counts.stale += 1
            data = self.link.read(deadline)
            self._inbox.extend(self._reader.feed(data))
        return False

    def hello(self, deadline: Deadline) -> wire.Hello:
        """Open a session. Raises VersionMismatchError with both numbers for another major version."""
        self._nonce = next(self._nonces)
        self._sequence = 0
        hello = self._ask(wire.HelloRequest(), wire.Hello, deadline, opening=True)
        if hello.major != wire.PROTOCOL_MAJOR:
            raise _version_error(hello.major, hello.minor)
        return hello

    def environment(self, deadline: Deadline) -> wire.Environment:
        return self._ask(wire.EnvironmentRequest(), wire.Environment, deadline)

    def sizes(self, deadline: Deadline) -> dict[str, wire.SizeRow]:
        """sizeof of TFLM's structs as compiled, by name."""
        rows: list[wire.SizeRow] = self._pieces(wire.SizesRequest, wire.Sizes, "rows", deadline)
        return {row.name: row for row in rows}

    def set_input(self, setting: wire.SetInput, deadline: Deadline) -> None:
        self._ask(setting, wire.InputSet, deadline)

    def write_input(self, index: int, data: bytes, chunk_bytes: int, deadline: Deadline) -> int:
        """Upload a STAGED input, chunk by chunk, each acknowledged. Returns the device's digest of what it holds."""
        digest = 0
        for offset in range(0, len(data), chunk_bytes):
            chunk = data[offset : offset + chunk_bytes]
            answer = self._ask(wire.WriteInput(index, offset, chunk), wire.InputWritten, deadline)
            if answer.next_offset != offset + len(chunk):
                raise DeviceError(
                    f"the device holds {answer.next_offset} bytes of input {index}, {offset + len(chunk)} were sent",
                    remedy="run again; if it stays, the firmware is at fault",
                )
            digest = answer.digest
        return digest

    def trial(self, arena_bytes: int, deadline: Deadline, *, invoke: bool = True) -> wire.TrialReport:
        """One arena size. Raises SilenceError, RebootedError: what they mean is the verdict's business."""
        report = self._ask(wire.TrialRequest(arena_bytes, int(invoke)), wire.TrialReport, deadline)
        if report.arena_bytes != arena_bytes:
            raise DeviceError(
                f"asked for a trial of {arena_bytes} bytes, the device reports one of {report.arena_bytes}",
                remedy="the firmware is at fault: rebuild it",
            )
        return report

    def measure(self, warm_up: int, runs: int, deadline: Deadline, *, reset_state: bool = False) -> wire.MeasureReport:
        return self._ask(wire.MeasureRequest(warm_up, runs, int(reset_state)), wire.MeasureReport, deadline)

    def cycles(self, deadline: Deadline) -> list[int]:
        """The stored samples of the last measurement."""
        return self._pieces(wire.CyclesRequest, wire.Cycles, "cycles", deadline)

    def profile(self, deadline: Deadline) -> tuple[wire.Profile, list[wire.ProfileRow]]:
        """Invoke once under the profiler: the summary, and every row that the device kept."""
        summary = self._ask(wire.ProfileRequest(1, 0), wire.Profile, deadline)
        rows = self._pieces(partial(wire.ProfileRequest, 0), wire.Profile, "rows", deadline, opened=summary)
        return summary, rows

    def allocations(self, deadline: Deadline) -> wire.Allocations:
        return self._ask(wire.AllocationsRequest(), wire.Allocations, deadline)

    def read_object(self, kind: wire.ReadObject, index: int, chunk_bytes: int, deadline: Deadline) -> bytes:
        """All bytes of an output, an input or the log."""
        data = b""
        while True:
            answer = self._ask(wire.ReadRequest(kind, index, len(data), chunk_bytes), wire.ReadReply, deadline)
            if answer.offset != len(data):
                raise DeviceError(f"asked for bytes at {len(data)}, got those at {answer.offset}", remedy="run again")
            data += answer.data
            if not answer.data or len(data) >= answer.total_bytes:
                return data

    def tensor_digests(self, deadline: Deadline) -> dict[tuple[int, int], int]:
        """(subgraph, tensor) → FNV-1a-64 of its bytes, after a trial with all tensors preserved."""
        rows: list[wire.TensorDigestRow] = self._pieces(wire.TensorDigestsRequest, wire.TensorDigests, "rows", deadline)
        return {(row.subgraph, row.tensor): row.digest for row in rows}

    def operator_digests(self, deadline: Deadline, *, tensor: int = wire.OWN_OUTPUTS) -> tuple[list[int], int]:
        """Invoke once: FNV-1a-64 of each operator's outputs, right after it; with ``tensor``, of that tensor right
        before each operator and at the end. The second value says how many there were: a device may keep fewer. Raises
        UnsupportedError where the device is older than protocol 1.2, or its TFLM sends no profiler events."""
        answer = self._ask(wire.OperatorDigestsRequest(1, 0, tensor), wire.OperatorDigests, deadline)
        digests = list(answer.digests)
        while len(digests) < answer.total:
            request = wire.OperatorDigestsRequest(0, len(digests), tensor)
            more = self._ask(request, wire.OperatorDigests, deadline)
            if not more.digests:
                raise DeviceError(
                    f"the device keeps {answer.total} digests and gave {len(digests)}", remedy="run again"
                )
            digests += more.digests
        return digests, answer.made

    def fault(self, deadline: Deadline, *, clear: bool = True) -> wire.FaultRecord:
        return self._ask(wire.FaultRequest(int(clear)), wire.FaultRecord, deadline)

    def reset(self, deadline: Deadline) -> None:
        self._ask(wire.ResetRequest(), wire.Resetting, deadline)

    def request_baud(self, baud: int, deadline: Deadline, *, confirm_ms: int = 1000) -> int:
        """Ask for another rate; the caller then changes its own side and pings. Returns the rate the divider gives."""
        return self._ask(wire.BaudRequest(baud, confirm_ms), wire.BaudReply, deadline).baud

    def ping(self, data: bytes, deadline: Deadline) -> None:
        """Send ``data`` there and back. Raises DeviceError when other bytes return."""
        if self._ask(wire.PingRequest(data), wire.Ping, deadline).data != data:
            raise DeviceError("the device echoed other bytes than were sent", remedy="the firmware is at fault")

    def counters(self, deadline: Deadline) -> wire.Counters:
        return self._ask(wire.CountersRequest(), wire.Counters, deadline)

    def restart(self, deadline: Deadline) -> bool:
        """Reset the model's state (variable tensors, resource variables)."""
        return bool(self._ask(wire.RestartRequest(), wire.Restarted, deadline).ok)

    def self_test(self, kind: wire.SelfTest, deadline: Deadline) -> None:
        """Provoke a fault, a hang or a stack overflow: the device answers, then does it."""
        self._ask(wire.SelfTestRequest(kind), wire.SelfTesting, deadline)

    def _pieces(
        self,
        request: Callable[[int], Any],
        answer_type: type[Any],
        name: str,
        deadline: Deadline,
        *,
        opened: Any = None,
    ) -> list[Any]:
        """All of a list that comes in pieces, each with the number of its first item; ``opened`` is the first piece,
        where it has come. Raises DeviceError for a gap: a shorter list would be another measurement."""
        found: list[Any] = []
        piece = opened
        while True:
            piece = piece or self._ask(request(len(found)), answer_type, deadline)
            items = getattr(piece, name)
            missing = len(found) < piece.total and not items
            if piece.first != len(found) or missing or len(found) + len(items) > piece.total:
                raise DeviceError(
                    f"{answer_type.__name__} has a gap: {len(found)} of {piece.total} have come, the next piece "
                    f"has {len(items)} from number {piece.first} on",
                    remedy="run again; if it stays, the firmware is at fault: rebuild it",
                    code="device.gap",
                )
            found += items
            if len(found) == piece.total:
                return found
            piece = None

    def _ask(self, request: Any, answer_type: type[A], deadline: Deadline, *, opening: bool = False) -> A:
        """Send a request until its answer comes, the device is found rebooted, or the wait is over."""
        self._sequence = (self._sequence + 1) & 0xFFFF
        self.counts.requests += 1
        data = encode_frame(wire.to_frame(request, self._nonce, self._sequence))
        wait_s, stage, tries, hurried = self._policy.first_s, None, 0, 0
        damaged_before = self.counts.damaged
        while True:
            if tries or hurried:
                self.counts.retransmissions += 1
            self.link.write(data, deadline)
            resend = deadline.sooner(wait_s)
            while True:
                record = self._receive(resend, opening=opening, hurry=hurried < self._policy.hurried_tries)
                if record is None:
                    break
                if isinstance(record, wire.Working):
                    stage = record.stage
                    continue
                return _accept(request, answer_type, record)
            if not resend.passed:  # an answer came and was spoilt: ask for it again at once
                hurried += 1
                continue
            tries += 1
            if deadline.passed or (stage is None and tries >= self._policy.silent_tries):
                raise _silence(request, stage, tries + hurried, self.counts.damaged - damaged_before)
            wait_s = min(2 * wait_s, self._policy.longest_s)

    def _receive(self, deadline: Deadline, *, opening: bool, hurry: bool) -> Any:
        """The next message of this session that belongs to the current request; None when the deadline passed, or, with
        ``hurry``, when a damaged frame has arrived and nothing after it."""
        while True:
            damaged = self.counts.damaged
            while self._inbox:
                piece = self._inbox.popleft()
                if isinstance(piece, Noise):
                    self._hear(piece, opening=opening)
                elif piece.nonce != self._nonce or piece.sequence != self._sequence or piece.type < 0x80:
                    self.counts.stale += 1
                else:
                    return wire.from_frame(piece)
            if hurry and self.counts.damaged > damaged:
                return None
            data = self.link.read(deadline)
            if data:
                self._inbox.extend(self._reader.feed(data))
            elif deadline.passed:
                return None

    def _hear(self, noise: Noise, *, opening: bool) -> None:
        """Text is passed on; a boot line in the middle of a session means that the session is over."""
        if not noise.is_text:
            self.counts.damaged += 1
            self.counts.noise_bytes += len(noise.data)
            return
        text = safe_text(noise.text)
        self._on_text(text)
        if noise.text.startswith(wire.BOOT_LINE_PREFIX) and not opening:
            raise RebootedError(f"the device rebooted: {text}", remedy="see the fault record")


def _accept(request: Any, answer_type: type[A], record: Any) -> A:
    if isinstance(record, wire.Refused):
        raise _refusal(request, record)
    if not isinstance(record, answer_type):
        raise DeviceError(
            f"the device answered {type(request).__name__} with {type(record).__name__}",
            remedy="the firmware is at fault: rebuild it",
        )
    return record


def _silence(request: Any, stage: wire.Stage | None, tries: int, damaged: int) -> SilenceError:
    name = type(request).__name__.removesuffix("Request")
    if stage is None and damaged:
        return SilenceError(
            f"what the device answers to {name} is damaged on the line each time"
            f" ({tries} sendings, {damaged} frames with a wrong checksum)",
            stage=None,
            remedy="try another cable, a shorter one, or a port without a hub; harness monitor shows what arrives",
        )
    if stage is None:
        return SilenceError(
            f"the device does not answer {name} ({tries} sendings)",
            stage=None,
            remedy="check power, port and baud rate; harness monitor shows what arrives",
        )
    return SilenceError(
        f"{name} did not end in time; the device was last in stage {stage.name.lower()}",
        stage=stage,
        remedy="allow more with --trial-timeout, or look at a loop in the model that does not end",
    )


def _refusal(request: Any, refused: wire.Refused) -> DeviceError:
    name = type(request).__name__.removesuffix("Request")
    detail = f": {safe_text(refused.detail)}" if refused.detail else ""
    match refused.reason:
        case wire.RefusalReason.NO_SESSION:
            return RebootedError(
                "the device does not know this session: it has rebooted", remedy="see the fault record"
            )
        case wire.RefusalReason.UNSUPPORTED:
            return UnsupportedError(f"the device cannot do {name}{detail}", remedy="")
        case wire.RefusalReason.WRONG_VERSION:
            return _version_error(refused.major, refused.minor)
        case _:
            return RefusedError(
                f"the device refused {name} ({refused.reason.name.lower()}{detail})",
                reason=refused.reason,
                remedy="reset the device and run again",
            )


def _version_error(major: int, minor: int) -> VersionMismatchError:
    return VersionMismatchError(
        f"the device speaks protocol {major}.{minor}, this harness {wire.PROTOCOL_MAJOR}.{wire.PROTOCOL_MINOR}",
        remedy="rebuild and flash the firmware with this version of the harness",
    )
