"""The messages of protocol 1.2: what host and device say to each other.

The host asks, the device answers with the same nonce and sequence number. A repeated request (same nonce and sequence)
is not carried out again: the device repeats its last answer. Before and during work that takes time (trial, measure,
profile) a device sends ``Working``; it is not an answer. A request whose nonce is not that of the last ``HelloRequest``
since boot is answered with ``Refused(NO_SESSION)``: that is how the host learns of a reboot. What a device cannot do
it answers with ``Refused(UNSUPPORTED)``.

At boot a device prints one line of text between zero bytes: ``\\0tflm-harness 1.2 board=… build=…\\r\\n\\0``.

Later minor versions append fields with defaults, add messages and add values to enumerations; they change nothing that
is here. ``HelloRequest``, ``Refused`` and the frame format are the same in every major version.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from harness.wire.fields import U8, U16, U32, U64, Array, Blob, FixedBytes, OpenEnum, PayloadError, Text, decode_record
from harness.wire.fields import encode_record as encode_message
from harness.wire.frame import Frame

PROTOCOL_MAJOR = 1
PROTOCOL_MINOR = 2

#: How the boot line begins; a terminal shows it, the host may use it to notice a reboot.
BOOT_LINE_PREFIX = "tflm-harness "

#: Written where a device cannot tell a number of bytes or an address.
UNKNOWN_U32 = 0xFFFFFFFF
UNKNOWN_U64 = 0xFFFFFFFFFFFFFFFF
#: ``SetInput.index`` for all inputs.
ALL_INPUTS = 0xFF
#: ``OperatorDigestsRequest.tensor`` for the outputs of each operator.
OWN_OUTPUTS = 0xFFFF


class Stage(OpenEnum):
    """Where a device is, or was when it faulted."""

    BOOT = 0
    READY = 1
    CONSTRUCT = 2  # interpreter and resolver
    ALLOCATE = 3  # AllocateTensors
    INPUT = 4
    INVOKE = 5
    CHECK = 6  # guards, digest
    MEASURE = 7
    PROFILE = 8
    UNKNOWN = 255


class KernelSet(OpenEnum):
    REFERENCE = 0
    CMSIS_NN = 1
    UNKNOWN = 255


class InterpreterKind(OpenEnum):
    PLAIN = 0
    RECORDING = 1
    PRESERVE_ALL = 2
    UNKNOWN = 255


class Abi(OpenEnum):
    ILP32 = 0
    LP64 = 1
    UNKNOWN = 255


class TimingKind(OpenEnum):
    """What the numbers called cycles count. Only CYCLES may be shown as time on hardware."""

    CYCLES = 0
    INSTRUCTIONS = 1
    HOST_NS = 2
    SYSTICK = 3  # processor clock by SysTick, where there is no cycle counter
    UNKNOWN = 255


class Capability(OpenEnum):
    """Bit numbers in ``Hello.capabilities``."""

    MEASURE = 0
    PROFILE = 1
    ALLOCATIONS = 2
    TENSOR_DIGESTS = 3
    STAGED_INPUT = 4
    BAUD = 5
    GUARDS = 6
    RETRIAL_WITHOUT_RESET = 7
    OPERATOR_DIGESTS = 8
    UNKNOWN = 255


class TrialStatus(OpenEnum):
    OK = 0
    ALLOC_FAILED = 1  # AllocateTensors returned an error
    INVOKE_FAILED = 2
    GUARD_OVERRUN = 3  # ran, but bytes outside the arena under test were written
    RESOLVER_FAILED = 4  # an operator could not be registered: says nothing about the arena
    ARENA_TOO_LARGE = 5  # more than the capacity: says nothing about the arena
    INPUT_FAILED = 6  # the input could not be set: says nothing about the arena
    UNKNOWN = 255


class GuardState(OpenEnum):
    NOT_CHECKED = 0
    INTACT = 1
    OVERRUN = 2
    UNKNOWN = 255


class InputKind(OpenEnum):
    """Where an input comes from at each Invoke. The spec is kept until the next reset."""

    ZERO = 0
    SEED = 1  # generated: wire/generator.py
    PATTERN = 2  # ``element_bytes`` bytes of ``value``, repeated
    STAGED = 3  # written with WriteInput
    BAKED = 4  # part of the image
    UNKNOWN = 255


class FaultKind(OpenEnum):
    NONE = 0
    HARD = 1
    MEM_MANAGE = 2
    BUS = 3
    USAGE = 4
    WATCHDOG = 5
    HALT = 6  # a TFLM check or abort() stopped the program
    STACK = 7
    SIGNAL = 8  # host board: the process died by ``signal``
    UNKNOWN = 255


class RefusalReason(OpenEnum):
    UNSUPPORTED = 0
    NO_SESSION = 1
    BAD_REQUEST = 2
    WRONG_STATE = 3  # such as measure before a trial worked
    WRONG_VERSION = 4
    TOO_LARGE = 5
    UNKNOWN = 255


class SelfTest(OpenEnum):
    """What ``SelfTestRequest`` provokes."""

    FAULT = 0  # an undefined instruction
    HANG = 1  # a loop that only the watchdog ends
    STACK = 2  # recursion until the stack ends
    UNKNOWN = 255


class AllocationCategory(OpenEnum):
    """RecordedAllocationType of TFLM (recording_micro_allocator.h, 90b983c), in its order."""

    EVAL_TENSOR_DATA = 0
    PERSISTENT_TENSOR_DATA = 1
    PERSISTENT_TENSOR_QUANTIZATION_DATA = 2
    PERSISTENT_BUFFER_DATA = 3
    TENSOR_VARIABLE_BUFFER_DATA = 4
    NODE_AND_REGISTRATION_ARRAY = 5
    OP_DATA = 6
    COMPRESSION_DATA = 7
    UNKNOWN = 255


class ReadObject(OpenEnum):
    """What ``ReadRequest`` reads."""

    OUTPUT = 0
    INPUT = 1
    LOG = 2  # what TFLM printed since boot
    UNKNOWN = 255


T = TypeVar("T")

#: Message number → record.
MESSAGES: dict[int, type] = {}
#: Record → message number.
NUMBERS: dict[type, int] = {}
#: Request record → record of its answer.
ANSWERS: dict[type, type] = {}


def message(number: int, *, answers: type | None = None) -> Callable[[type[T]], type[T]]:
    """Enter a record into the description. Requests are 0x01–0x7f; an answer is its request's number + 0x80."""

    def enter(record: type[T]) -> type[T]:
        assert number not in MESSAGES, f"message number {number:#x} is taken"
        MESSAGES[number] = record
        NUMBERS[record] = number
        if answers is not None:
            assert number == NUMBERS[answers] | 0x80
            ANSWERS[answers] = record
        return record

    return enter


@message(0x01)
@dataclass(frozen=True, slots=True)
class HelloRequest:
    """Opens a session: the frame's nonce becomes the session's. Answered at any time after boot. ``minor`` is the
    lowest minor version that the host can do with: what a device does not know of later ones, it refuses."""

    major: Annotated[int, U8] = PROTOCOL_MAJOR
    minor: Annotated[int, U8] = 0


@message(0x81, answers=HelloRequest)
@dataclass(frozen=True, slots=True)
class Hello:
    """Who the device is. ``base_address`` is that of the arena (UNKNOWN_U64: not told); ``chunk_bytes`` the most data
    that one ReadReply or WriteInput may carry; ``clock_hz`` the counter's rate as configured, 0 where it has none.
    ``model_sha256`` of several models that share the arena is the SHA-256 of their digests (32 bytes each, in the order
    of their setup), and the counts are sums: inputs and outputs are numbered through all of them."""

    major: Annotated[int, U8]
    minor: Annotated[int, U8]
    build_id: Annotated[bytes, FixedBytes(16)]
    model_sha256: Annotated[bytes, FixedBytes(32)]
    board: Annotated[str, Text(32)]
    tflm_commit: Annotated[str, Text(40)]
    kernels: Annotated[KernelSet, U8]
    interpreter: Annotated[InterpreterKind, U8]
    abi: Annotated[Abi, U8]
    timing: Annotated[TimingKind, U8]
    clock_hz: Annotated[int, U32]
    capacity_bytes: Annotated[int, U32]
    base_address: Annotated[int, U64]
    base_alignment: Annotated[int, U16]
    chunk_bytes: Annotated[int, U8]
    capabilities: Annotated[int, U32]
    boot_count: Annotated[int, U32]
    fault_pending: Annotated[int, U8]
    input_count: Annotated[int, U8] = 0
    output_count: Annotated[int, U8] = 0

    def can(self, capability: Capability) -> bool:
        return bool(self.capabilities >> capability & 1)


@message(0x02)
@dataclass(frozen=True, slots=True)
class EnvironmentRequest:
    """What makes timing comparable."""


@message(0x82, answers=EnvironmentRequest)
@dataclass(frozen=True, slots=True)
class Environment:
    """0 in ``*_enabled`` is off, 1 on, 255 not present or not known."""

    compiler: Annotated[str, Text(48)]
    optimisation: Annotated[str, Text(16)]
    arena_region: Annotated[str, Text(16)]
    core_clock_hz: Annotated[int, U32]
    flash_wait_states: Annotated[int, U8]
    icache_enabled: Annotated[int, U8]
    dcache_enabled: Annotated[int, U8]
    flash_accelerator_enabled: Annotated[int, U8]
    flash_bytes: Annotated[int, U32]
    ram_bytes: Annotated[int, U32]
    stack_bytes: Annotated[int, U32]
    baud: Annotated[int, U32]
    reset_cause: Annotated[str, Text(16)] = ""


@dataclass(frozen=True, slots=True)
class SizeRow:
    """sizeof and alignof of one TFLM struct as compiled."""

    name: Annotated[str, Text(28)]
    size_bytes: Annotated[int, U16]
    alignment: Annotated[int, U8]


@message(0x03)
@dataclass(frozen=True, slots=True)
class SizesRequest:
    first: Annotated[int, U16] = 0


@message(0x83, answers=SizesRequest)
@dataclass(frozen=True, slots=True)
class Sizes:
    """Rows ``first`` … of ``total``."""

    first: Annotated[int, U16]
    total: Annotated[int, U16]
    rows: Annotated[tuple[SizeRow, ...], Array(SizeRow, 7)]


@message(0x04)
@dataclass(frozen=True, slots=True)
class SetInput:
    """Says where an input comes from at each Invoke from now on (index ALL_INPUTS: every input).

    ``value`` is the seed, or the bytes of PATTERN in its low ``element_bytes`` bytes (little-endian).
    """

    index: Annotated[int, U8]
    kind: Annotated[InputKind, U8]
    value: Annotated[int, U64] = 0
    element_bytes: Annotated[int, U8] = 0


@message(0x84, answers=SetInput)
@dataclass(frozen=True, slots=True)
class InputSet:
    index: Annotated[int, U8]


@message(0x05)
@dataclass(frozen=True, slots=True)
class WriteInput:
    """One chunk of a STAGED input. Chunks come in order; the answer says where the next belongs."""

    index: Annotated[int, U8]
    offset: Annotated[int, U32]
    data: Annotated[bytes, Blob(224)]


@message(0x85, answers=WriteInput)
@dataclass(frozen=True, slots=True)
class InputWritten:
    """``digest`` is FNV-1a-64 of all bytes of this input up to ``next_offset``."""

    index: Annotated[int, U8]
    next_offset: Annotated[int, U32]
    digest: Annotated[int, U64]


@message(0x06)
@dataclass(frozen=True, slots=True)
class TrialRequest:
    """One arena size: construct, AllocateTensors, set the inputs, Invoke once, check. Once per boot, unless the device
    has RETRIAL_WITHOUT_RESET. ``invoke`` 0 stops after AllocateTensors."""

    arena_bytes: Annotated[int, U32]
    invoke: Annotated[int, U8] = 1


@message(0x86, answers=TrialRequest)
@dataclass(frozen=True, slots=True)
class TrialReport:
    """What came of a trial. ``stage`` is the last one reached; ``used_bytes`` is arena_used_bytes() (UNKNOWN_U32
    where AllocateTensors failed); ``output_digest`` FNV-1a-64 over the bytes of all outputs in order, 0 when nothing
    was invoked; ``guard_offset`` the first bad byte's distance from the arena's base (two's complement), where
    ``guard`` is OVERRUN; ``detail`` the last line that TFLM printed."""

    arena_bytes: Annotated[int, U32]
    status: Annotated[TrialStatus, U8]
    stage: Annotated[Stage, U8]
    used_bytes: Annotated[int, U32]
    head_bytes: Annotated[int, U32]
    tail_bytes: Annotated[int, U32]
    output_digest: Annotated[int, U64]
    guard: Annotated[GuardState, U8]
    guard_offset: Annotated[int, U32]
    stack_used_bytes: Annotated[int, U32]
    allocate_cycles: Annotated[int, U64]
    invoke_cycles: Annotated[int, U64]
    detail: Annotated[str, Text(120)]


@message(0x07)
@dataclass(frozen=True, slots=True)
class MeasureRequest:
    """Invoke ``warm_up`` times, then ``runs`` times timed. The inputs are set again before each, outside the timed
    part. After a trial that worked, in the same boot. ``reset_state`` 1: reset variable tensors before each."""

    warm_up: Annotated[int, U16]
    runs: Annotated[int, U32]
    reset_state: Annotated[int, U8] = 0


@message(0x87, answers=MeasureRequest)
@dataclass(frozen=True, slots=True)
class MeasureReport:
    """Cycles of the timed runs. ``stored`` samples can be read with CyclesRequest. ``first_deviation`` is the index of
    the first timed run whose output digest was not that of the first one (UNKNOWN_U32: none; stateful models
    deviate). ``failed_run`` is the index of the run whose Invoke failed (UNKNOWN_U32: none)."""

    runs: Annotated[int, U32]
    stored: Annotated[int, U16]
    min_cycles: Annotated[int, U64]
    max_cycles: Annotated[int, U64]
    sum_cycles: Annotated[int, U64]
    first_cycles: Annotated[int, U64]
    output_digest: Annotated[int, U64]
    first_deviation: Annotated[int, U32]
    failed_run: Annotated[int, U32]
    used_bytes: Annotated[int, U32]
    stack_used_bytes: Annotated[int, U32]
    guard: Annotated[GuardState, U8]


@message(0x08)
@dataclass(frozen=True, slots=True)
class CyclesRequest:
    first: Annotated[int, U16] = 0


@message(0x88, answers=CyclesRequest)
@dataclass(frozen=True, slots=True)
class Cycles:
    first: Annotated[int, U16]
    total: Annotated[int, U16]
    cycles: Annotated[tuple[int, ...], Array(U64, 28)]


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """One event of TFLM's profiler: its tag (the operator's name) and how long it took."""

    tag: Annotated[str, Text(24)]
    cycles: Annotated[int, U64]


@message(0x09)
@dataclass(frozen=True, slots=True)
class ProfileRequest:
    """``run`` 1: Invoke once under the profiler first; then answer rows from ``first``."""

    run: Annotated[int, U8]
    first: Annotated[int, U16] = 0


@message(0x89, answers=ProfileRequest)
@dataclass(frozen=True, slots=True)
class Profile:
    """``events`` counts all events of the run, ``total`` those that were kept: fewer means truncated.
    ``invoke_cycles`` is the whole Invoke."""

    first: Annotated[int, U16]
    total: Annotated[int, U16]
    events: Annotated[int, U16]
    invoke_cycles: Annotated[int, U64]
    rows: Annotated[tuple[ProfileRow, ...], Array(ProfileRow, 6)]


@dataclass(frozen=True, slots=True)
class AllocationRow:
    category: Annotated[AllocationCategory, U8]
    requested_bytes: Annotated[int, U32]
    used_bytes: Annotated[int, U32]
    count: Annotated[int, U32]


@message(0x0A)
@dataclass(frozen=True, slots=True)
class AllocationsRequest:
    """Recorded allocations by category, after a trial that worked with the recording interpreter."""


@message(0x8A, answers=AllocationsRequest)
@dataclass(frozen=True, slots=True)
class Allocations:
    total_bytes: Annotated[int, U32]
    head_bytes: Annotated[int, U32]
    tail_bytes: Annotated[int, U32]
    rows: Annotated[tuple[AllocationRow, ...], Array(AllocationRow, 16)]


@message(0x0B)
@dataclass(frozen=True, slots=True)
class ReadRequest:
    """``size`` 0 asks for the total only."""

    object: Annotated[ReadObject, U8]
    index: Annotated[int, U8]
    offset: Annotated[int, U32]
    size: Annotated[int, U8]


@message(0x8B, answers=ReadRequest)
@dataclass(frozen=True, slots=True)
class ReadReply:
    object: Annotated[ReadObject, U8]
    index: Annotated[int, U8]
    offset: Annotated[int, U32]
    total_bytes: Annotated[int, U32]
    data: Annotated[bytes, Blob(224)]


@dataclass(frozen=True, slots=True)
class TensorDigestRow:
    subgraph: Annotated[int, U8]
    tensor: Annotated[int, U16]
    digest: Annotated[int, U64]


@message(0x0C)
@dataclass(frozen=True, slots=True)
class TensorDigestsRequest:
    """FNV-1a-64 of every tensor's bytes, after a trial with all tensors preserved."""

    first: Annotated[int, U16] = 0


@message(0x8C, answers=TensorDigestsRequest)
@dataclass(frozen=True, slots=True)
class TensorDigests:
    first: Annotated[int, U16]
    total: Annotated[int, U16]
    rows: Annotated[tuple[TensorDigestRow, ...], Array(TensorDigestRow, 20)]


@message(0x0D)
@dataclass(frozen=True, slots=True)
class FaultRequest:
    """The record that the last fault left, across the reset. ``clear`` 1: forget it afterwards."""

    clear: Annotated[int, U8] = 1


@message(0x8D, answers=FaultRequest)
@dataclass(frozen=True, slots=True)
class FaultRecord:
    """Registers as stacked by the core (0 on the host board); ``arena_bytes`` was under test. ``text`` is the last
    line that TFLM printed before."""

    kind: Annotated[FaultKind, U8]
    stage: Annotated[Stage, U8]
    arena_bytes: Annotated[int, U32]
    pc: Annotated[int, U32]
    lr: Annotated[int, U32]
    sp: Annotated[int, U32]
    cfsr: Annotated[int, U32]
    hfsr: Annotated[int, U32]
    mmfar: Annotated[int, U32]
    bfar: Annotated[int, U32]
    signal: Annotated[int, U8]
    text: Annotated[str, Text(120)]


@message(0x0E)
@dataclass(frozen=True, slots=True)
class ResetRequest:
    """Answered, then the device resets itself."""


@message(0x8E, answers=ResetRequest)
@dataclass(frozen=True, slots=True)
class Resetting:
    pass


@message(0x0F)
@dataclass(frozen=True, slots=True)
class BaudRequest:
    """Answered at the old rate, then both sides change. A device that hears no valid frame at the new rate within
    ``confirm_ms`` goes back to the old one."""

    baud: Annotated[int, U32]
    confirm_ms: Annotated[int, U16] = 1000


@message(0x8F, answers=BaudRequest)
@dataclass(frozen=True, slots=True)
class BaudReply:
    """``baud`` is what the divider really gives."""

    baud: Annotated[int, U32]


@message(0x10)
@dataclass(frozen=True, slots=True)
class PingRequest:
    """Echoed: measures loss and damage."""

    data: Annotated[bytes, Blob(224)] = b""


@message(0x90, answers=PingRequest)
@dataclass(frozen=True, slots=True)
class Ping:
    data: Annotated[bytes, Blob(224)]


@message(0x11)
@dataclass(frozen=True, slots=True)
class CountersRequest:
    """For measuring the clock against the host's: asked twice, a second or more apart."""


@message(0x91, answers=CountersRequest)
@dataclass(frozen=True, slots=True)
class Counters:
    """``cycles`` since boot, extended beyond 32 bits."""

    cycles: Annotated[int, U64]
    stack_used_bytes: Annotated[int, U32]
    frames_received: Annotated[int, U32]
    frames_damaged: Annotated[int, U32]


@message(0x12)
@dataclass(frozen=True, slots=True)
class RestartRequest:
    """Reset the state of variable tensors and resource variables (MicroInterpreter::Reset), after a trial."""


@message(0x92, answers=RestartRequest)
@dataclass(frozen=True, slots=True)
class Restarted:
    ok: Annotated[int, U8]


@message(0x13)
@dataclass(frozen=True, slots=True)
class SelfTestRequest:
    """Answered, then the device does it: a fault record must be there after the reset. Since protocol 1.1."""

    kind: Annotated[SelfTest, U8]


@message(0x93, answers=SelfTestRequest)
@dataclass(frozen=True, slots=True)
class SelfTesting:
    kind: Annotated[SelfTest, U8]


@message(0x14)
@dataclass(frozen=True, slots=True)
class OperatorDigestsRequest:
    """``run`` 1: Invoke once, from the inputs that are set and the state that is there, and keep a digest (FNV-1a-64)
    for each operator of the main subgraph; then answer those from ``first``. ``tensor`` OWN_OUTPUTS: of the operator's
    output tensors, in order, right after it. Otherwise of that tensor of the main subgraph, right before each operator
    and once more at the end. After a trial, in the same boot; a profile is forgotten. Since protocol 1.2."""

    run: Annotated[int, U8]
    first: Annotated[int, U16] = 0
    tensor: Annotated[int, U16] = OWN_OUTPUTS


@message(0x94, answers=OperatorDigestsRequest)
@dataclass(frozen=True, slots=True)
class OperatorDigests:
    """``made`` counts the digests of the run, ``total`` those that were kept."""

    first: Annotated[int, U16]
    total: Annotated[int, U16]
    made: Annotated[int, U16]
    digests: Annotated[tuple[int, ...], Array(U64, 28)]


@message(0xFE)
@dataclass(frozen=True, slots=True)
class Working:
    """Sent before and during long work, with the request's nonce and sequence. Not an answer."""

    stage: Annotated[Stage, U8]
    arena_bytes: Annotated[int, U32]


@message(0xFF)
@dataclass(frozen=True, slots=True)
class Refused:
    """The answer to any request that is not carried out. ``major`` and ``minor`` are the device's."""

    reason: Annotated[RefusalReason, U8]
    major: Annotated[int, U8] = PROTOCOL_MAJOR
    minor: Annotated[int, U8] = PROTOCOL_MINOR
    detail: Annotated[str, Text(64)] = ""


def to_frame(record: Any, nonce: int, sequence: int) -> Frame:
    """The frame that carries a message record."""
    return Frame(nonce, sequence, NUMBERS[type(record)], encode_message(record))


def from_frame(frame: Frame) -> Any:
    """The message record in a frame. PayloadError for an unknown type or a payload that does not fit it."""
    record = MESSAGES.get(frame.type)
    if record is None:
        raise PayloadError(f"message type {frame.type:#04x} is not known to protocol {PROTOCOL_MAJOR}.{PROTOCOL_MINOR}")
    return decode_record(record, frame.payload)


def boot_line(board: str, build_id: bytes) -> bytes:
    """What a device prints at boot."""
    version = f"{PROTOCOL_MAJOR}.{PROTOCOL_MINOR}"
    line = f"{BOOT_LINE_PREFIX}{version} board={board} build={build_id.hex()}\r\n"
    return b"\0" + line.encode("ascii", "replace") + b"\0"
