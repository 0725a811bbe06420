"""A fake device, named as one: it keeps state as a board does (session, last answer, fault record), allocates nothing.

Below ``minimum`` it misbehaves in a chosen way. The lossy link damages what passes, by a seeded generator.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from harness.deadline import Deadline
from harness.device.bench import Bench
from harness.device.client import Device, RetryPolicy
from harness.probe.protocol import FlashImage
from harness.wire import messages as wire
from harness.wire.frame import Frame, FrameReader, encode_frame
from harness.wire.input_plan import InputPlan
from tests.patience import PATIENCE_S

IMAGE = FlashImage(build_id="ab" * 16, model_sha256="cd" * 32)
OUTPUT_DIGEST = 0x1122334455667788


@dataclass
class FakeDevice:
    """``below`` says what happens in a trial smaller than ``minimum``: it gets the device and the size, and returns a
    TrialReport, or None after it has done something else (died, gone silent)."""

    minimum: int = 1000
    below: Callable[[FakeDevice, int], wire.TrialReport | None] = lambda _device, size: report(size, "ALLOC_FAILED")
    build_id: bytes = bytes.fromhex(IMAGE.build_id)
    major: int = 1
    minor: int = 0
    boots: int = 0
    trials: list[int] = field(default_factory=list)
    fault: wire.FaultRecord | None = None
    out: bytearray = field(default_factory=bytearray)
    hangs: bool = False
    counter: Callable[[], int] = field(default_factory=lambda: iter(range(1000, 1 << 40, 1000)).__next__)
    run_cycles: tuple[int, ...] = (100, 90, 95)
    operator_cycles: tuple[int, ...] = (60, 30)
    kept_events: int = 100
    invoke_cycles: int = 100
    piece_changes: Callable[[wire.Cycles], wire.Cycles] = lambda piece: piece
    measure_changes: dict[str, Any] = field(default_factory=dict)
    _nonce: int | None = None
    _last: tuple[int, bytes] | None = None
    _reader: FrameReader = field(default_factory=FrameReader)

    def boot(self) -> None:
        self.boots += 1
        self._nonce, self._last, self._reader, self.hangs = None, None, FrameReader(), False
        self.out += b"\xff\xfe" + wire.boot_line("fake", self.build_id)

    def die(self, record: wire.FaultRecord | None) -> None:
        """Fault, and come up again."""
        self.fault = record
        self.boot()

    def take(self, data: bytes) -> None:
        for piece in self._reader.feed(data):
            if isinstance(piece, Frame) and piece.type < 0x80 and not self.hangs:
                self._answer(piece)

    def _answer(self, frame: Frame) -> None:
        if frame.type == wire.NUMBERS[wire.HelloRequest]:
            self._nonce, self._last = frame.nonce, None
        elif frame.nonce != self._nonce:
            self._send(wire.Refused(wire.RefusalReason.NO_SESSION), frame)
            return
        if self._last and self._last[0] == frame.sequence:
            self.out += self._last[1]
            return
        boots = self.boots
        answer = self._carry_out(wire.from_frame(frame), frame)
        if answer is not None and boots == self.boots:
            self._last = (frame.sequence, self._send(answer, frame))

    def _send(self, record: Any, frame: Frame) -> bytes:
        data = encode_frame(wire.to_frame(record, frame.nonce, frame.sequence))
        self.out += data
        return data

    def _carry_out(self, request: Any, frame: Frame) -> Any:
        match request:
            case wire.HelloRequest():
                if request.major != self.major:
                    return wire.Refused(wire.RefusalReason.WRONG_VERSION, self.major, self.minor)
                return self._hello()
            case wire.SetInput():
                return wire.InputSet(request.index)
            case wire.FaultRequest():
                record, self.fault = self.fault, None
                return record
            case wire.TrialRequest():
                self._send(wire.Working(wire.Stage.ALLOCATE, request.arena_bytes), frame)
                self.trials.append(request.arena_bytes)
                if request.arena_bytes < self.minimum:
                    return self.below(self, request.arena_bytes)
                return report(request.arena_bytes, "OK")
            case wire.CountersRequest():
                return wire.Counters(self.counter(), 500, 0, 0)
            case wire.MeasureRequest():
                return measure_report(self.run_cycles, **self.measure_changes)
            case wire.CyclesRequest():
                kept = self.run_cycles[request.first :][:28]
                return self.piece_changes(wire.Cycles(request.first, len(self.run_cycles), kept))
            case wire.ProfileRequest():
                kept = self.operator_cycles[: self.kept_events]
                rows = tuple(wire.ProfileRow("CONV_2D", cycles) for cycles in kept[request.first :][:6])
                return wire.Profile(request.first, len(kept), len(self.operator_cycles), self.invoke_cycles, rows)
            case wire.PingRequest():
                return wire.Ping(request.data)
            case _:
                return wire.Refused(wire.RefusalReason.UNSUPPORTED)

    def _hello(self) -> wire.Hello:
        return wire.Hello(
            major=self.major,
            minor=self.minor,
            build_id=self.build_id,
            model_sha256=bytes.fromhex(IMAGE.model_sha256),
            board="fake",
            tflm_commit="0" * 40,
            kernels=wire.KernelSet.REFERENCE,
            interpreter=wire.InterpreterKind.PLAIN,
            abi=wire.Abi.ILP32,
            timing=wire.TimingKind.INSTRUCTIONS,
            clock_hz=0,
            capacity_bytes=1 << 20,
            base_address=0x20000000,
            base_alignment=16,
            chunk_bytes=64,
            capabilities=0,
            boot_count=self.boots,
            fault_pending=int(self.fault is not None),
        )


def report(size: int, status: str, digest: int = OUTPUT_DIGEST, **changes: Any) -> wire.TrialReport:
    values: dict[str, Any] = {
        "arena_bytes": size,
        "status": wire.TrialStatus[status],
        "stage": wire.Stage.CHECK,
        "used_bytes": 900 if status == "OK" else wire.UNKNOWN_U32,
        "head_bytes": wire.UNKNOWN_U32,
        "tail_bytes": wire.UNKNOWN_U32,
        "output_digest": digest if status == "OK" else 0,
        "guard": wire.GuardState.INTACT,
        "guard_offset": 0,
        "stack_used_bytes": 500,
        "allocate_cycles": 10,
        "invoke_cycles": 10,
        "detail": "" if status == "OK" else "Failed to allocate",
    }
    return wire.TrialReport(**{**values, **changes})


def measure_report(cycles: tuple[int, ...], **changes: Any) -> wire.MeasureReport:
    values: dict[str, Any] = {
        "runs": len(cycles),
        "stored": len(cycles),
        "min_cycles": min(cycles),
        "max_cycles": max(cycles),
        "sum_cycles": sum(cycles) & (1 << 64) - 1,
        "first_cycles": cycles[0],
        "output_digest": OUTPUT_DIGEST,
        "first_deviation": wire.UNKNOWN_U32,
        "failed_run": wire.UNKNOWN_U32,
        "used_bytes": 900,
        "stack_used_bytes": 500,
        "guard": wire.GuardState.INTACT,
    }
    return wire.MeasureReport(**{**values, **changes})


def fault_record(kind: str, size: int, **changes: Any) -> wire.FaultRecord:
    values: dict[str, Any] = dict.fromkeys(("pc", "lr", "sp", "cfsr", "hfsr", "mmfar", "bfar", "signal"), 0)
    values |= {"kind": wire.FaultKind[kind], "stage": wire.Stage.ALLOCATE, "arena_bytes": size, "text": ""}
    return wire.FaultRecord(**{**values, **changes})


@dataclass
class FakeLink:
    """Implements ``Link`` on a fake device's memory."""

    device: FakeDevice

    def write(self, data: bytes, deadline: Deadline) -> None:  # noqa: ARG002
        self.device.take(data)

    def read(self, deadline: Deadline) -> bytes:
        if not self.device.out:
            threading.Event().wait(deadline.remaining_s)  # silence lasts as long as the caller would wait
        data = bytes(self.device.out)
        self.device.out.clear()
        return data

    def discard_input(self) -> None:
        self.device.out.clear()

    def close(self) -> None:
        pass


@dataclass
class FakeProbe:
    """Implements ``Probe``: reset is a boot of the fake device."""

    device: FakeDevice

    def flash(self, image: FlashImage, deadline: Deadline) -> int:  # noqa: ARG002
        return 1

    def reset(self, deadline: Deadline) -> None:  # noqa: ARG002
        self.device.boot()

    def read_memory(self, address: int, size: int, deadline: Deadline) -> bytes:
        raise NotImplementedError

    def close(self) -> None:
        pass


class LossyLink:
    """Drops, doubles and garbles bytes in both directions, each with probability ``rate``."""

    def __init__(self, link: Any, rate: float, seed: int) -> None:
        self._link = link
        self._rate = rate
        self._rng = random.Random(seed)

    def write(self, data: bytes, deadline: Deadline) -> None:
        self._link.write(self._damage(data), deadline)

    def read(self, deadline: Deadline) -> bytes:
        return self._damage(self._link.read(deadline))

    def discard_input(self) -> None:
        self._link.discard_input()

    def close(self) -> None:
        self._link.close()

    def _damage(self, data: bytes) -> bytes:
        out = bytearray()
        for byte in data:
            kind = self._rng.random() / self._rate if self._rate else 1.0
            if kind >= 1:
                out.append(byte)
            elif kind > 2 / 3:
                out += bytes([byte, byte])
            elif kind > 1 / 3:
                out.append(self._rng.randrange(256))
        return bytes(out)


class LosesAnswer:
    """Loses the ``number``-th frame (from 0) of one type on its way from the device, and nothing else."""

    def __init__(self, link: Any, answer: type[Any], number: int) -> None:
        self._link = link
        self._type = wire.NUMBERS[answer]
        self._left = number
        self._rest = b""
        self.lost = 0

    def write(self, data: bytes, deadline: Deadline) -> None:
        self._link.write(data, deadline)

    def read(self, deadline: Deadline) -> bytes:
        *whole, self._rest = (self._rest + self._link.read(deadline)).split(b"\0")
        return b"".join(frame + b"\0" for frame in whole if not self._is_lost(frame + b"\0"))

    def _is_lost(self, data: bytes) -> bool:
        if not any(isinstance(piece, Frame) and piece.type == self._type for piece in FrameReader().feed(data)):
            return False
        self._left -= 1
        self.lost += self._left == -1
        return self._left == -1

    def discard_input(self) -> None:
        self._link.discard_input()

    def close(self) -> None:
        self._link.close()


QUICK = RetryPolicy(first_s=0.01, longest_s=0.02, silent_tries=8)


def nonces(first: int = 1) -> Iterator[int]:
    number = first
    while True:
        yield number
        number += 1


def fake_bench(device: FakeDevice, link: Any = None, *, trial_timeout_s: float = PATIENCE_S) -> Bench:
    client = Device(link or FakeLink(device), nonces=nonces(), policy=QUICK)
    return Bench(
        FakeProbe(device),
        client,
        IMAGE,
        InputPlan.seeded(1),
        trial_timeout_s=trial_timeout_s,
        boot_timeout_s=PATIENCE_S,
    )
