"""The host board's firmware: answers the protocol on a file descriptor, runs TFLM in its own process, and may crash.

Structured as the C firmware is: one request at a time, the last answer kept for a repeated request, one trial per boot.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from harness.sim.host.interpreter import CAPACITY_BYTES, HostInterpreter, TflmLog, model_io
from harness.sim.host.state import RetainedMemory
from harness.wire import generator
from harness.wire import messages as wire
from harness.wire.fields import PayloadError
from harness.wire.frame import Frame, FrameReader, encode_frame

#: ReadReply and WriteInput take up to 224 bytes; a pseudo-terminal loses none.
CHUNK_BYTES = 224
#: A message of TFLM as far as a report's text field takes it.
DETAIL_CHARS = 120
_CAPABILITIES = (wire.Capability.MEASURE, wire.Capability.STAGED_INPUT)


@dataclass(frozen=True, slots=True)
class Image:
    """What was flashed: the model, what kind of interpreter runs it, and the identity that hello tells."""

    model: bytes
    build_id: bytes
    model_sha256: bytes
    interpreter: wire.InterpreterKind
    tflm_commit: str


@dataclass(slots=True)
class InputSource:
    """Where one input comes from (``SetInput``), and the bytes that were uploaded for it."""

    kind: wire.InputKind = wire.InputKind.ZERO
    value: int = 0
    element_bytes: int = 0
    staged: bytearray = field(default_factory=bytearray)
    digest: int = generator.FNV_OFFSET


class Refusal(Exception):
    """The request is answered with ``Refused``."""

    def __init__(self, reason: wire.RefusalReason, detail: str = "") -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


class HostFirmware:
    """One boot. ``serve`` does not return before the descriptor closes or a reset is asked for."""

    def __init__(self, port: int, image: Image, memory: RetainedMemory, log: TflmLog) -> None:
        self._port = port
        self._image = image
        self._memory = memory
        self._log = log
        self._nonce: int | None = None
        self._last: tuple[int, bytes] | None = None
        self._current = Frame(0, 0, 0, b"")
        self._interpreter: HostInterpreter | None = None
        self._input_types, self._output_types, self._tensors = model_io(image.model)
        self._sources = [InputSource() for _ in self._input_types]
        self._outputs: list[bytes] = []
        self._samples: list[int] = []
        self._tried = False
        self._worked = False
        self._received = 0
        self._handlers: dict[type, Callable[[Any], Any]] = {
            wire.HelloRequest: self._hello,
            wire.EnvironmentRequest: self._environment,
            wire.SetInput: self._set_input,
            wire.WriteInput: self._write_input,
            wire.TrialRequest: self._trial,
            wire.MeasureRequest: self._measure,
            wire.CyclesRequest: self._cycles,
            wire.AllocationsRequest: self._allocations,
            wire.ReadRequest: self._read,
            wire.TensorDigestsRequest: self._tensor_digests,
            wire.FaultRequest: self._fault,
            wire.ResetRequest: self._reset,
            wire.PingRequest: lambda request: wire.Ping(request.data),
            wire.CountersRequest: self._counters,
            wire.RestartRequest: self._restart,
        }

    def serve(self) -> None:
        self._send(wire.boot_line("host", self._image.build_id))
        self._memory.enter(wire.Stage.READY)
        reader = FrameReader()
        while data := os.read(self._port, 4096):
            for piece in reader.feed(data):
                if isinstance(piece, Frame) and self._answer(piece):
                    return

    def _answer(self, frame: Frame) -> bool:
        """Answer one frame; True when the board shall reset."""
        self._received += 1
        if frame.type >= 0x80:
            return False  # an echo of our own
        if frame.type == wire.NUMBERS[wire.HelloRequest]:
            self._nonce, self._last = frame.nonce, None
        elif frame.nonce != self._nonce:
            self._send(
                encode_frame(wire.to_frame(_refused(wire.RefusalReason.NO_SESSION), frame.nonce, frame.sequence))
            )
            return False
        if self._last and self._last[0] == frame.sequence:
            self._send(self._last[1])
            return False
        self._current = frame
        answer = encode_frame(wire.to_frame(self._carry_out(frame), frame.nonce, frame.sequence))
        self._last = (frame.sequence, answer)
        self._send(answer)
        return frame.type == wire.NUMBERS[wire.ResetRequest]

    def _carry_out(self, frame: Frame) -> Any:
        try:
            request = wire.from_frame(frame)
            handler = self._handlers.get(type(request))
            if handler is None:
                return _refused(wire.RefusalReason.UNSUPPORTED, "host board")
            return handler(request)
        except PayloadError as exc:
            known = frame.type in wire.MESSAGES
            return _refused(wire.RefusalReason.BAD_REQUEST if known else wire.RefusalReason.UNSUPPORTED, exc.message)
        except Refusal as refusal:
            return _refused(refusal.reason, refusal.detail)

    def _send(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._port, data) :]

    def _work(self, stage: wire.Stage, arena_bytes: int = 0) -> None:
        """Note the stage where a crash leaves it, and tell the host."""
        self._memory.enter(stage, arena_bytes or None)
        working = wire.Working(stage, arena_bytes)
        self._send(encode_frame(wire.to_frame(working, self._current.nonce, self._current.sequence)))

    def _hello(self, request: wire.HelloRequest) -> Any:
        if request.major != wire.PROTOCOL_MAJOR:
            return _refused(wire.RefusalReason.WRONG_VERSION)
        image = self._image
        return wire.Hello(
            major=wire.PROTOCOL_MAJOR,
            minor=wire.PROTOCOL_MINOR,
            build_id=image.build_id,
            model_sha256=image.model_sha256,
            board="host",
            tflm_commit=image.tflm_commit,
            kernels=wire.KernelSet.REFERENCE,
            interpreter=image.interpreter,
            abi=wire.Abi.LP64,
            timing=wire.TimingKind.HOST_NS,
            clock_hz=1_000_000_000,
            capacity_bytes=CAPACITY_BYTES,
            base_address=wire.UNKNOWN_U64,
            base_alignment=16,  # new uint8_t[] of glibc: malloc aligns to 16
            chunk_bytes=CHUNK_BYTES,
            capabilities=self._capabilities(),
            boot_count=self._memory.boots,
            fault_pending=int(self._memory.fault is not None),
            input_count=min(len(self._input_types), 255),
            output_count=min(len(self._output_types), 255),
        )

    def _capabilities(self) -> int:
        own = (
            wire.Capability.ALLOCATIONS
            if self._image.interpreter is wire.InterpreterKind.RECORDING
            else wire.Capability.TENSOR_DIGESTS
        )
        return sum(1 << bit for bit in (*_CAPABILITIES, own))

    def _environment(self, _request: wire.EnvironmentRequest) -> wire.Environment:
        return wire.Environment(
            compiler="",
            optimisation="",
            arena_region="heap",
            core_clock_hz=0,
            flash_wait_states=255,
            icache_enabled=255,
            dcache_enabled=255,
            flash_accelerator_enabled=255,
            flash_bytes=0,
            ram_bytes=0,
            stack_bytes=0,
            baud=0,
        )

    def _set_input(self, request: wire.SetInput) -> wire.InputSet:
        indices = range(len(self._sources)) if request.index == wire.ALL_INPUTS else [request.index]
        for index in indices:
            source = self._source(index)
            source.kind, source.value, source.element_bytes = request.kind, request.value, request.element_bytes
        return wire.InputSet(request.index)

    def _source(self, index: int) -> InputSource:
        if index >= len(self._sources):
            raise Refusal(wire.RefusalReason.BAD_REQUEST, f"{len(self._sources)} inputs")
        return self._sources[index]

    def _write_input(self, request: wire.WriteInput) -> wire.InputWritten:
        source = self._source(request.index)
        if request.offset not in {0, len(source.staged)}:
            raise Refusal(wire.RefusalReason.BAD_REQUEST, f"{len(source.staged)} bytes are here")
        source.staged[request.offset :] = request.data
        if request.offset == 0:
            source.digest = generator.FNV_OFFSET
        source.digest = generator.digest(request.data, start=source.digest)
        return wire.InputWritten(request.index, len(source.staged), source.digest)

    def _trial(self, request: wire.TrialRequest) -> wire.TrialReport:
        if self._tried:
            raise Refusal(wire.RefusalReason.WRONG_STATE, "one trial per boot")
        self._tried = True
        if request.arena_bytes > CAPACITY_BYTES:
            return self._report(request, wire.TrialStatus.ARENA_TOO_LARGE, wire.Stage.READY)
        self._log.clear()
        self._work(wire.Stage.ALLOCATE, request.arena_bytes)
        try:
            started = time.perf_counter_ns()
            interpreter = HostInterpreter(self._image.model, request.arena_bytes, self._image.interpreter, self._log)
            allocate_ns = time.perf_counter_ns() - started
        except (RuntimeError, ValueError) as exc:
            return self._report(request, wire.TrialStatus.ALLOC_FAILED, wire.Stage.ALLOCATE, str(exc))
        self._interpreter = interpreter
        if not request.invoke:
            return self._report(request, wire.TrialStatus.OK, wire.Stage.ALLOCATE, allocate_ns=allocate_ns)
        self._work(wire.Stage.INPUT, request.arena_bytes)
        try:
            self._apply_inputs(interpreter)
        except (ValueError, IndexError, TypeError) as exc:
            return self._report(request, wire.TrialStatus.INPUT_FAILED, wire.Stage.INPUT, str(exc))
        self._work(wire.Stage.INVOKE, request.arena_bytes)
        try:
            started = time.perf_counter_ns()
            interpreter.invoke()
            invoke_ns = time.perf_counter_ns() - started
            self._memory.enter(wire.Stage.CHECK)
            self._outputs = interpreter.outputs(len(self._output_types))
        except (RuntimeError, ValueError, IndexError) as exc:
            return self._report(request, wire.TrialStatus.INVOKE_FAILED, self._memory.stage, str(exc))
        self._worked = True
        return self._report(
            request, wire.TrialStatus.OK, wire.Stage.CHECK, allocate_ns=allocate_ns, invoke_ns=max(1, invoke_ns)
        )

    def _report(
        self,
        request: wire.TrialRequest,
        status: wire.TrialStatus,
        stage: wire.Stage,
        why: str = "",
        *,
        allocate_ns: int = 0,
        invoke_ns: int = 0,
    ) -> wire.TrialReport:
        detail = self._log.tail(DETAIL_CHARS) or why
        recorded = self._interpreter.allocations() if self._interpreter and status is wire.TrialStatus.OK else None
        if status is wire.TrialStatus.OK:
            detail = ""
        return wire.TrialReport(
            arena_bytes=request.arena_bytes,
            status=status,
            stage=stage,
            used_bytes=recorded.total_bytes if recorded else wire.UNKNOWN_U32,
            head_bytes=recorded.head_bytes if recorded else wire.UNKNOWN_U32,
            tail_bytes=recorded.tail_bytes if recorded else wire.UNKNOWN_U32,
            output_digest=generator.digest(*self._outputs) if stage is wire.Stage.CHECK else 0,
            guard=wire.GuardState.NOT_CHECKED,
            guard_offset=0,
            stack_used_bytes=wire.UNKNOWN_U32,
            allocate_cycles=allocate_ns,
            invoke_cycles=invoke_ns,
            detail=detail,
        )

    def _apply_inputs(self, interpreter: HostInterpreter) -> None:
        import math

        import numpy as np

        for index, source in enumerate(self._sources):
            dtype, shape = interpreter.input_layout(index)
            count = math.prod(shape)
            size = count * np.dtype(dtype).itemsize
            interpreter.set_input(index, self._input_bytes(index, source, count, size))

    def _input_bytes(self, index: int, source: InputSource, count: int, size: int) -> bytes:
        match source.kind:
            case wire.InputKind.SEED:
                return generator.generate_input(source.value, index, self._input_types[index], count)
            case wire.InputKind.PATTERN:
                return source.value.to_bytes(8, "little")[: source.element_bytes] * count
            case wire.InputKind.STAGED:
                if len(source.staged) != size:
                    raise ValueError(f"input {index}: {len(source.staged)} bytes uploaded, {size} needed")
                return bytes(source.staged)
            case wire.InputKind.ZERO:
                return bytes(size)
            case _:
                raise ValueError(f"input {index}: source {source.kind.name} is not on this board")

    def _ready(self) -> HostInterpreter:
        """The interpreter of a trial that worked in this boot."""
        if self._interpreter is None or not self._worked:
            raise Refusal(wire.RefusalReason.WRONG_STATE, "no trial has worked since boot")
        return self._interpreter

    def _measure(self, request: wire.MeasureRequest) -> wire.MeasureReport:
        interpreter = self._ready()
        self._work(wire.Stage.MEASURE)
        self._samples, digest, deviation, failed = [], 0, wire.UNKNOWN_U32, wire.UNKNOWN_U32
        for run in range(-request.warm_up, request.runs):
            if request.reset_state:
                interpreter.reset()
            self._apply_inputs(interpreter)
            started = time.perf_counter_ns()
            try:
                interpreter.invoke()
            except RuntimeError:
                failed = max(run, 0)
                break
            elapsed = max(1, time.perf_counter_ns() - started)
            if run < 0:
                continue
            self._samples.append(elapsed)
            self._outputs = interpreter.outputs(len(self._output_types))
            now = generator.digest(*self._outputs)
            digest = digest or now
            if now != digest and deviation == wire.UNKNOWN_U32:
                deviation = run
        recorded = interpreter.allocations()
        return wire.MeasureReport(
            runs=len(self._samples),
            stored=min(len(self._samples), 0xFFFF),
            min_cycles=min(self._samples, default=0),
            max_cycles=max(self._samples, default=0),
            sum_cycles=sum(self._samples),
            first_cycles=self._samples[0] if self._samples else 0,
            output_digest=digest,
            first_deviation=deviation,
            failed_run=failed,
            used_bytes=recorded.total_bytes if recorded else wire.UNKNOWN_U32,
            stack_used_bytes=wire.UNKNOWN_U32,
            guard=wire.GuardState.NOT_CHECKED,
        )

    def _cycles(self, request: wire.CyclesRequest) -> wire.Cycles:
        part = self._samples[request.first : request.first + 28]
        return wire.Cycles(request.first, min(len(self._samples), 0xFFFF), tuple(part))

    def _allocations(self, _request: wire.AllocationsRequest) -> wire.Allocations:
        recorded = self._ready().allocations()
        if recorded is None:
            raise Refusal(wire.RefusalReason.UNSUPPORTED, "the interpreter does not record")
        return wire.Allocations(recorded.total_bytes, recorded.head_bytes, recorded.tail_bytes, recorded.rows)

    def _read(self, request: wire.ReadRequest) -> wire.ReadReply:
        data = self._object(request)
        part = data[request.offset : request.offset + min(request.size, CHUNK_BYTES)]
        return wire.ReadReply(request.object, request.index, request.offset, len(data), part)

    def _object(self, request: wire.ReadRequest) -> bytes:
        match request.object:
            case wire.ReadObject.LOG:
                return self._log.read()
            case wire.ReadObject.OUTPUT:
                self._ready()
                if request.index < len(self._outputs):
                    return self._outputs[request.index]
                raise Refusal(wire.RefusalReason.BAD_REQUEST, f"{len(self._outputs)} outputs")
            case _:
                raise Refusal(wire.RefusalReason.UNSUPPORTED)

    def _tensor_digests(self, request: wire.TensorDigestsRequest) -> wire.TensorDigests:
        interpreter = self._ready()
        if self._image.interpreter is not wire.InterpreterKind.PRESERVE_ALL:
            raise Refusal(wire.RefusalReason.UNSUPPORTED, "only with all tensors preserved")
        rows = tuple(
            wire.TensorDigestRow(subgraph, tensor, generator.digest(interpreter.tensor(subgraph, tensor)))
            for subgraph, tensor in self._tensors[request.first : request.first + 20]
        )
        return wire.TensorDigests(request.first, len(self._tensors), rows)

    def _fault(self, request: wire.FaultRequest) -> wire.FaultRecord:
        record = self._memory.fault
        if request.clear:
            self._memory.note_fault(None)
        return record or wire.FaultRecord(wire.FaultKind.NONE, wire.Stage.UNKNOWN, 0, 0, 0, 0, 0, 0, 0, 0, 0, "")

    def _reset(self, _request: wire.ResetRequest) -> wire.Resetting:
        return wire.Resetting()

    def _counters(self, _request: wire.CountersRequest) -> wire.Counters:
        return wire.Counters(time.perf_counter_ns(), wire.UNKNOWN_U32, self._received, 0)

    def _restart(self, _request: wire.RestartRequest) -> wire.Restarted:
        self._ready().reset()
        return wire.Restarted(1)


def _refused(reason: wire.RefusalReason, detail: str = "") -> wire.Refused:
    return wire.Refused(reason, detail=detail)
