"""The firmware runs: linked with the fake TFLM, on emulated boards, asked by the real protocol client over a pty."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator

import pytest

from harness.board.catalogue import list_boards, load_hardware_board
from harness.board.record import Evidence, HardwareBoard
from harness.deadline import Deadline
from harness.device.client import Device, RebootedError, RefusedError, UnsupportedError
from harness.firmware.image import FirmwareImage
from harness.link.serial_link import SerialLink
from harness.model.builder import ModelBuilder, layers
from harness.model.graph import TensorType
from harness.model.reader import parse_model
from harness.wire import messages as wire
from harness.wire.frame import encode_frame
from harness.wire.generator import digest, generate_input, pattern_of
from tests.device.fakes import LosesAnswer
from tests.firmware.conftest import Builder, small_model
from tests.patience import patient

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("unicorn") is None, reason="the extra [sim] (unicorn) is not installed"
    ),
    pytest.mark.skipif(sys.platform == "win32", reason="a twin's serial port is a pseudo-terminal"),
]

#: 3 tensors of 64 bytes, 2 operators: the fake's rules (tests/firmware/fake_tflm/README.md).
USED = 3 * 64 + 256 + 2 * 16
#: Its tensors also count the constants: 2 weights and 2 biases.
MINIMUM = USED + 24 * 7
BOARDS = [board.base_name for board in list_boards() if isinstance(board, HardwareBoard) and board.kind == "sim"]


def soon() -> Deadline:
    return patient()


class Bench:
    """An emulated board with the image in its flash, and the protocol client at its port."""

    def __init__(self, image: FirmwareImage, board: str) -> None:
        from harness.sim.twin import Twin

        self.image = image
        self.lines: list[str] = []
        self.twin = Twin(load_hardware_board(board))
        with self.twin.turn() as chip:
            for address, data in image.segments:
                offset = chip.flash.offset(address, len(data))
                assert offset is not None
                chip.flash.view[offset : offset + len(data)] = data
        self.link = SerialLink(self.twin.endpoint.url)
        self.device = Device(self.link, on_text=self.lines.append)

    def boot(self) -> wire.Hello:
        self.twin.assert_reset(True)
        self.device.forget()
        self.twin.assert_reset(False)
        return self.device.hello(soon())

    def trial(self, arena_bytes: int, seed: int = 7) -> wire.TrialReport:
        self.device.set_input(wire.SetInput(wire.ALL_INPUTS, wire.InputKind.SEED, seed), soon())
        return self.device.trial(arena_bytes, soon())

    def fault_at(self, arena_bytes: int) -> wire.FaultRecord:
        """The trial ends in a reboot; the record it left."""
        with pytest.raises(RebootedError):
            self.trial(arena_bytes)
        assert self.device.hello(soon()).fault_pending
        return self.device.fault(soon())

    def close(self) -> None:
        self.link.close()
        self.twin.close()
        assert self.twin.failure is None


@pytest.fixture
def bench(build_fake: Builder) -> Iterator[Callable[..., Bench]]:
    opened: list[Bench] = []

    def start(description: str = "plain", board: str = "nucleo-f446re", **options: object) -> Bench:
        made = Bench(build_fake(board, small_model(description), **options), board)
        opened.append(made)
        made.boot()
        return made

    yield start
    for made in opened:
        made.close()


def expected_output(data: bytes) -> bytes:
    """The fake's rule."""
    return bytes(data[i % len(data)] ^ i for i in range(64))


@pytest.mark.parametrize("board", BOARDS)
def test_a_trial_on_every_modelled_board(bench: Callable[..., Bench], board: str) -> None:
    b = bench(board=board)
    hello = b.boot()
    assert hello.build_id.hex() == b.image.build_id
    assert hello.model_sha256.hex() == b.image.model_sha256
    assert (hello.board, hello.abi, hello.timing) == (board, wire.Abi.ILP32, wire.TimingKind.CYCLES)
    assert hello.capacity_bytes == 16384
    assert hello.base_address == b.image.arena_address
    assert (hello.input_count, hello.output_count) == (1, 1)
    assert b.lines[-1] == f"tflm-harness 1.2 board={board} build={b.image.build_id}"
    environment = b.device.environment(soon())
    assert environment.core_clock_hz == load_hardware_board(board).clock.core_hz
    assert environment.stack_bytes == 8192
    assert environment.flash_bytes >= b.image.flash_bytes - 16
    report = b.trial(16384)
    assert (report.status, report.used_bytes, report.guard) == (wire.TrialStatus.OK, USED, wire.GuardState.INTACT)
    assert report.output_digest == digest(expected_output(generate_input(7, 0, 9, 64)))
    assert 0 < report.invoke_cycles < 10**6
    assert 0 < report.stack_used_bytes < 4096
    assert b.twin.chip.violations == []
    assert b.twin.chip.bus.complaints == []


def test_evidence_is_twin_where_this_file_has_run_the_firmware_and_none_elsewhere() -> None:
    for board in list_boards():
        if isinstance(board, HardwareBoard):
            assert board.evidence is (Evidence.TWIN if board.base_name in BOARDS else Evidence.NONE), board.name


def test_the_environment_is_read_from_the_chip(bench: Callable[..., Bench]) -> None:
    environment = bench(board="nucleo-f746zg").device.environment(soon())
    assert environment.flash_wait_states == 7
    assert (environment.icache_enabled, environment.dcache_enabled) == (1, 1)
    assert environment.flash_accelerator_enabled == 1
    assert environment.arena_region == "sram1"
    assert environment.optimisation == "-Os"
    assert environment.compiler.startswith("GCC ")
    l4 = bench(board="nucleo-l476rg").device.environment(soon())
    assert (l4.flash_wait_states, l4.icache_enabled, l4.dcache_enabled) == (4, 255, 255)


def test_one_trial_per_boot_and_the_smallest_arena(bench: Callable[..., Bench]) -> None:
    b = bench()
    assert b.trial(MINIMUM).status is wire.TrialStatus.OK
    with pytest.raises(RefusedError, match="one trial per boot"):
        b.trial(MINIMUM)
    b.boot()
    report = b.trial(MINIMUM - 1)
    assert report.status is wire.TrialStatus.ALLOC_FAILED
    assert report.used_bytes == wire.UNKNOWN_U32
    assert report.detail == f"fake: {MINIMUM - 1} bytes of arena, {MINIMUM} needed"
    assert report.stage is wire.Stage.ALLOCATE
    b.boot()
    assert b.trial(16385).status is wire.TrialStatus.ARENA_TOO_LARGE


def test_a_fault_is_kept_over_the_reset_with_its_registers(bench: Callable[..., Bench]) -> None:
    b = bench("fake fault<2000", board="nucleo-f746zg")
    record = b.fault_at(1999)
    assert record.kind is wire.FaultKind.USAGE
    assert record.stage is wire.Stage.ALLOCATE
    assert record.arena_bytes == 1999
    assert record.cfsr & 1 << 16  # UNDEFINSTR
    assert b.image.symbol_at(record.pc).startswith("_ZN6tflite16MicroInterpreter15AllocateTensors")
    assert not b.boot().fault_pending
    assert b.trial(2000).status is wire.TrialStatus.OK


def test_a_tflm_check_that_halts_becomes_a_record(bench: Callable[..., Bench]) -> None:
    record = bench("fake halt<2000").fault_at(1500)
    assert (record.kind, record.arena_bytes) == (wire.FaultKind.HALT, 1500)


def test_an_invoke_that_never_returns_meets_the_watchdog(bench: Callable[..., Bench]) -> None:
    record = bench("fake hang<20000", watchdog_s=1).fault_at(16384)
    assert record.kind is wire.FaultKind.WATCHDOG
    assert record.stage is wire.Stage.INVOKE
    assert record.pc != 0


def test_a_write_beyond_the_arena_does_not_hide_in_spare_capacity(bench: Callable[..., Bench]) -> None:
    report = bench("fake overrun<5000").trial(4001)
    assert report.status is wire.TrialStatus.GUARD_OVERRUN
    assert report.guard is wire.GuardState.OVERRUN
    assert report.guard_offset == 4001


def test_a_write_beyond_the_whole_capacity_is_seen_too(bench: Callable[..., Bench]) -> None:
    assert bench("fake overrun<50000").trial(16384).guard_offset == 16384


def test_an_invoke_that_fails_is_told(bench: Callable[..., Bench]) -> None:
    report = bench("fake invokefail<5000").trial(4000)
    assert (report.status, report.detail) == (wire.TrialStatus.INVOKE_FAILED, "fake: Invoke failed")


def test_a_reset_without_a_record_says_that_it_was_software(bench: Callable[..., Bench]) -> None:
    b = bench("fake reset<2000")
    with pytest.raises(RebootedError):
        b.trial(1500)
    assert not b.device.hello(soon()).fault_pending
    assert b.device.environment(soon()).reset_cause == "software"
    assert b.boot().boot_count > 1


@pytest.mark.parametrize(
    ("kind", "value", "size", "data"),
    [
        (wire.InputKind.ZERO, 0, 0, bytes(64)),
        (wire.InputKind.PATTERN, int.from_bytes(pattern_of(-3, 9), "little"), 1, b"\xfd" * 64),
        (wire.InputKind.SEED, 2**64 - 1, 0, generate_input(2**64 - 1, 0, 9, 64)),
    ],
)
def test_inputs_are_made_as_on_the_host(
    bench: Callable[..., Bench], kind: wire.InputKind, value: int, size: int, data: bytes
) -> None:
    b = bench()
    b.device.set_input(wire.SetInput(0, kind, value, size), soon())
    assert b.device.trial(8192, soon()).output_digest == digest(expected_output(data))
    assert b.device.read_object(wire.ReadObject.INPUT, 0, 224, soon()) == data
    assert b.device.read_object(wire.ReadObject.OUTPUT, 0, 50, soon()) == expected_output(data)


def test_a_float_input_is_made_as_on_the_host(build_fake: Builder) -> None:
    """TfLiteType's float32 is 1, the schema's 0: the firmware once took one for the other, and made no float input."""
    builder = ModelBuilder(seed=1)
    builder.graph.output(layers.fully_connected(builder.graph, builder.graph.input((1, 16), TensorType.FLOAT32), 16))
    b = Bench(build_fake("nucleo-f446re", parse_model(builder.finish(), "float.tflite")), "nucleo-f446re")
    b.boot()
    assert b.trial(8192, seed=3).status is wire.TrialStatus.OK
    assert b.device.read_object(wire.ReadObject.INPUT, 0, 224, soon()) == generate_input(3, 0, 0, 16)
    b.close()


def test_an_uploaded_and_a_baked_input(bench: Callable[..., Bench]) -> None:
    data = bytes(range(100, 164))
    b = bench(inputs=(data[::-1],))
    assert b.device.write_input(0, data, 20, soon()) == digest(data)
    b.device.set_input(wire.SetInput(0, wire.InputKind.STAGED), soon())
    assert b.device.trial(8192, soon()).output_digest == digest(expected_output(data))
    b.boot()
    b.device.set_input(wire.SetInput(0, wire.InputKind.BAKED), soon())
    assert b.device.trial(8192, soon()).output_digest == digest(expected_output(data[::-1]))


def test_a_staged_input_that_never_came_is_no_verdict_on_the_arena(bench: Callable[..., Bench]) -> None:
    b = bench()
    b.device.set_input(wire.SetInput(0, wire.InputKind.STAGED), soon())
    assert b.device.trial(8192, soon()).status is wire.TrialStatus.INPUT_FAILED


def test_measure_and_profile(bench: Callable[..., Bench]) -> None:
    b = bench()
    with pytest.raises(RefusedError, match="no trial has worked"):
        b.device.measure(1, 3, soon())
    b.trial(8192)
    report = b.device.measure(2, 70, soon())
    assert (report.runs, report.stored) == (70, 64)
    assert (report.first_deviation, report.failed_run) == (wire.UNKNOWN_U32, wire.UNKNOWN_U32)
    samples = b.device.cycles(soon())
    assert len(samples) == 64
    assert min(samples) >= report.min_cycles > 0
    assert report.min_cycles <= report.sum_cycles // 70 <= report.max_cycles
    assert report.guard is wire.GuardState.INTACT
    summary, rows = b.device.profile(soon())
    assert [row.tag for row in rows] == ["FAKE", "FAKE"]
    assert (summary.events, summary.total) == (2, 2)
    assert b.device.restart(soon())


def test_the_time_of_a_called_operator_is_its_own_and_not_its_callers_too(build_fake: Builder) -> None:
    """TFLM's events of a subgraph lie within the event of the IF or WHILE that calls it: counted twice, the operators
    took longer than the whole run."""
    b = Bench(build_fake("nucleo-f446re", small_model("nested calls<1", depth=5)), "nucleo-f446re")
    b.boot()
    b.trial(8192)
    summary, rows = b.device.profile(soon())
    taken = [row.cycles for row in rows]
    assert len(taken) == 5
    assert max(taken) < 1.1 * min(taken)
    assert sum(taken) < summary.invoke_cycles < 1.2 * sum(taken)
    b.close()


def test_a_deeper_model_has_room_for_all_its_events(build_fake: Builder) -> None:
    b = Bench(build_fake("nucleo-f446re", small_model("deep", depth=40), capacity_bytes=16384), "nucleo-f446re")
    b.boot()
    b.trial(16384)
    summary, rows = b.device.profile(soon())
    assert (summary.events, summary.total, len(rows)) == (40, 40, 40)
    assert [len(b.device.operator_digests(soon())[0]), b.device.operator_digests(soon(), tensor=0)[1]] == [40, 41]
    b.close()


def test_operators_are_traced_in_their_order(bench: Callable[..., Bench]) -> None:
    b = bench()
    with pytest.raises(RefusedError, match="no trial has worked"):
        b.device.operator_digests(soon())
    assert b.boot().can(wire.Capability.OPERATOR_DIGESTS)
    report = b.trial(8192)
    x = generate_input(7, 0, TensorType.INT8, 64)
    digests, made = b.device.operator_digests(soon())
    assert (digests, made) == ([digest(x), digest(expected_output(x))], 2)  # the stand-in's first operator copies
    assert digests[-1] == report.output_digest
    assert b.device.operator_digests(soon(), tensor=0) == ([digest(x)] * 3, 3)
    last = small_model("plain").subgraphs[0].outputs[0]
    rows, made = b.device.operator_digests(soon(), tensor=last)
    assert (rows[0], rows[2], made) == (rows[1], digest(expected_output(x)), 3)
    with pytest.raises(RefusedError, match="refused OperatorDigests"):
        b.device.operator_digests(soon(), tensor=7)


def test_a_trace_forgets_the_profile_and_a_profile_the_trace(bench: Callable[..., Bench]) -> None:
    b = bench()
    b.trial(8192)
    b.device.profile(soon())
    b.device.operator_digests(soon())
    assert b.device._ask(wire.ProfileRequest(0, 0), wire.Profile, soon()).rows == ()
    assert [row.tag for row in b.device.profile(soon())[1]] == ["FAKE", "FAKE"]
    assert b.device._ask(wire.OperatorDigestsRequest(0, 0), wire.OperatorDigests, soon()).digests == ()


def test_preserved_tensors_and_the_trace_agree(bench: Callable[..., Bench]) -> None:
    b = bench(interpreter=_interpreter("preserve_all"))
    b.trial(8192)
    kept = b.device.tensor_digests(soon())
    main = small_model("plain").subgraphs[0]
    assert [kept[0, operator.outputs[0]] for operator in main.operators] == b.device.operator_digests(soon())[0]


def test_the_recording_interpreter_tells_its_categories(bench: Callable[..., Bench]) -> None:
    b = bench(interpreter=_interpreter("recording"))
    report = b.trial(8192)
    assert (report.head_bytes, report.tail_bytes) == (3 * 64, 256 + 32)
    allocations = b.device.allocations(soon())
    assert allocations.total_bytes == USED
    assert allocations.rows[0].used_bytes == 256 + 32
    plain = bench()
    with pytest.raises(UnsupportedError):
        plain.device.allocations(soon())


def _interpreter(name: str) -> object:
    from harness.firmware.config import Interpreter

    return Interpreter(name)


def test_a_static_arena_runs_with_its_own_size_only(bench: Callable[..., Bench]) -> None:
    b = bench(capacity_bytes=MINIMUM, static_arena=True)
    with pytest.raises(RefusedError, match="static arena"):
        b.device.trial(MINIMUM - 16, soon())
    assert b.trial(MINIMUM).status is wire.TrialStatus.OK


def test_a_repeated_request_is_answered_again_and_not_carried_out_again(bench: Callable[..., Bench]) -> None:
    b = bench()
    nonce, sequence = 0xABCD1234, 5
    hello = encode_frame(wire.to_frame(wire.HelloRequest(), nonce, 1))
    trial = encode_frame(wire.to_frame(wire.TrialRequest(8192), nonce, sequence))
    b.link.write(hello + trial + trial, soon())
    reader, answers = _frames(b, 4)
    assert [type(answer) for answer in answers if not isinstance(answer, wire.Working)] == [
        wire.Hello,
        wire.TrialReport,
        wire.TrialReport,
    ]
    assert reader is not None
    assert answers[-1] == answers[-2]


def _frames(b: Bench, at_least: int) -> tuple[object, list[object]]:
    from harness.wire.frame import Frame, FrameReader

    reader, found, deadline = FrameReader(), [], soon()
    while not deadline.passed:
        for piece in reader.feed(b.link.read(Deadline.after(0.3))):
            found += [wire.from_frame(piece)] if isinstance(piece, Frame) else []
        reports = sum(isinstance(record, wire.TrialReport) for record in found)
        if len(found) >= at_least and reports == 2:
            break
    return reader, found


def test_damaged_and_foreign_frames_are_not_carried_out(bench: Callable[..., Bench]) -> None:
    b = bench()
    good = bytearray(encode_frame(wire.to_frame(wire.ResetRequest(), 1, 1)))
    good[5] ^= 0x40
    b.link.write(bytes(good) + b"\0garbage\0" + b"\xff" * 600 + b"\0", soon())
    counters = b.device.counters(soon())
    assert counters.frames_damaged >= 3
    b.device.ping(bytes(range(224)), soon())
    stranger = Device(b.link, nonces=iter([99]))
    stranger._nonce = 98  # a session that was never opened
    with pytest.raises(RebootedError, match="does not know this session"):
        stranger.counters(soon())


def test_the_baud_rate_is_raised_and_falls_back_in_silence(bench: Callable[..., Bench]) -> None:
    b = bench()
    assert abs(b.device.request_baud(460800, soon(), confirm_ms=60_000) - 460800) < 9216
    b.link.set_baud(460800)
    b.device.ping(b"still there", soon())
    with pytest.raises(RefusedError, match="divider"):
        b.device.request_baud(3_000_000, soon())
    b.device.request_baud(230400, soon(), confirm_ms=1)
    b.device.ping(b"at the old rate", soon())


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_record_that_is_lost_on_the_line_is_asked_for_again(bench: Callable[..., Bench], number: int) -> None:
    """E13: one of the three records of 64 run times does not arrive."""
    b = bench()
    b.trial(8192)
    report = b.device.measure(0, 64, soon())
    lossy = LosesAnswer(b.link, wire.Cycles, number)
    b.device.link = lossy
    samples = b.device.cycles(soon())
    assert lossy.lost == 1
    assert (len(samples), sum(samples)) == (64, report.sum_cycles)
    assert b.device.counts.retransmissions >= 1


def test_every_struct_size_is_sent(bench: Callable[..., Bench]) -> None:
    sizes = bench().device.sizes(soon())
    assert len(sizes) == 28
    assert sizes["void*"].size_bytes == 4


def test_a_smaller_stack_is_what_the_board_reports(bench: Callable[..., Bench]) -> None:
    b = bench(stack_bytes=2048)
    assert b.device.environment(soon()).stack_bytes == 2048
    assert 0 < b.trial(8192).stack_used_bytes < 2048


def test_an_overflowing_stack_is_told_apart(bench: Callable[..., Bench]) -> None:
    """A stack that grows into its neighbour ends in random faults. Here the bytes below it are forbidden."""
    record = bench("fake recurse<5000", board="nucleo-f746zg").fault_at(4000)
    assert record.kind is wire.FaultKind.STACK
    assert record.arena_bytes == 4000
