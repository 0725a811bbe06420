"""The digital twin: instructions per second, flashing 253 KiB with read-back, boot to hello, and 1,000 cycles of both.

The firmware is linked with the TFLM library that is registered (or named by HARNESS_TFLM), and with the tests' fake
where there is none. ``--cycles N`` for another number of cycles than 1,000.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
from bench_build import _library
from result import Row, run

from harness.board.catalogue import load_hardware_board
from harness.deadline import Deadline
from harness.device.client import Device
from harness.firmware.build import build_firmware
from harness.firmware.config import FirmwareConfig
from harness.firmware.image import FirmwareImage
from harness.link.serial_link import SerialLink
from harness.model.reader import read_model
from harness.probe.protocol import FlashImage
from harness.probe.pyocd_probe import PyOcdProbe
from harness.sim import desk
from harness.sim.engine import Engine
from harness.sim.mpu import MpuV7

ROOT = Path(__file__).resolve().parent.parent
SPEED_LIMIT = 40.0
FLASH_LIMIT_S, HELLO_LIMIT_S = 4.0, 0.5
FLASH_BYTES = 253 * 1024
DIVISION_LIMIT_US = 100.0
CYCLES = 1000
REPORT_EVERY = 10
#: Growth over the second half of the cycles.
MEMORY_LIMIT_MIB, HANDLE_LIMIT = 16.0, 0
#: Thumb: a loop that loads, multiplies, adds, stores and branches, as kernels do.
LOOP = bytes.fromhex("0868 4843 0130 0860 0132 0133 f8e7".replace(" ", ""))
#: With a division in place of the multiplication.
DIVIDING_LOOP = bytes.fromhex("0868 0130 b0fbf4f0 0860 0132 0133 f7e7".replace(" ", ""))
#: As many as a large firmware has.
ELSEWHERE = frozenset(range(0x2000_1000, 0x2000_1400, 4))


@dataclass(frozen=True, slots=True)
class _Usage:
    memory_mib: float
    threads: int
    files: int

    @classmethod
    def now(cls) -> _Usage:
        process = psutil.Process()
        return cls(process.memory_info().rss / 2**20, threading.active_count(), process.num_fds())


def measure() -> Iterator[Row]:
    yield Row("instructions, mixed loop of 7 with a load and a store", _speed(), "M/s", SPEED_LIMIT, at_least=True)
    yield Row("… with the firmware's stack guard on", _speed(_guard_stack), "M/s", SPEED_LIMIT, at_least=True)
    yield Row("… with an MPU without background", _speed(_allow_two_regions), "M/s", SPEED_LIMIT, at_least=True)
    yield Row(
        "… with CCR.DIV_0_TRP, divisions elsewhere", _speed(divisions=ELSEWHERE), "M/s", SPEED_LIMIT, at_least=True
    )
    yield Row("a division with CCR.DIV_0_TRP", _division_us(), "µs", DIVISION_LIMIT_US)
    with tempfile.TemporaryDirectory() as folder:
        yield from _rig(Path(folder))


def _guard_stack(mpu: MpuV7) -> None:
    """256 bytes, no access, execute never; everything else as without MPU: src/stack.cc of the templates."""
    mpu.store(0xD9C, 0x2000_1C00)
    mpu.store(0xDA0, 1 << 28 | 1 << 19 | 7 << 1 | 1)
    mpu.store(0xD94, 5)


def _allow_two_regions(mpu: MpuV7) -> None:
    """As an operating system sets it up: flash read only, 64 KiB of RAM, nothing else."""
    for number, (base, attributes) in enumerate(((0, 6 << 24 | 19 << 1 | 1), (0x2000_0000, 3 << 24 | 15 << 1 | 1))):
        mpu.store(0xD9C, base | 1 << 4 | number)
        mpu.store(0xDA0, attributes)
    mpu.store(0xD94, 1)


def _speed(
    protect: Callable[[MpuV7], None] = lambda _mpu: None,
    *,
    divisions: frozenset[int] = frozenset(),
    loop: bytes = LOOP,
    count: int = 20_000_000,
) -> float:
    engine = Engine("cortex-m7")
    protect(MpuV7(engine))
    engine.uc.mem_map(0x2000_0000, 0x2000)
    engine.uc.mem_write(0x2000_0000, loop)
    engine.write(engine.arm.UC_ARM_REG_R1, 0x2000_1800)
    engine.write(engine.arm.UC_ARM_REG_R4, 3)
    engine.watch_divisions(divisions)
    pc = 0x2000_0000
    started = time.process_time()
    for _ in range(count // 200_000):
        engine.run(pc, 200_000)
        pc = engine.pc
    return count / (time.process_time() - started) / 1e6


def _division_us() -> float:
    """The loop has one in seven instructions."""
    return 7 / _speed(divisions=frozenset({0x2000_0004}), loop=DIVIDING_LOOP, count=1_000_000)


def _rig(folder: Path) -> Iterator[Row]:
    board = load_hardware_board("sim:nucleo-f746zg")
    image = _firmware(folder)
    uid = desk.plug(board)
    probe = PyOcdProbe(board, uid, rig="bench")
    probe.connect(Deadline.after(60))
    random = FlashImage("", "", ((board.flash.address, os.urandom(FLASH_BYTES)),))
    started, cpu = time.perf_counter(), time.process_time()
    probe.flash(random, Deadline.after(300))
    yield Row("flash and read back 253 KiB", time.perf_counter() - started, "s", FLASH_LIMIT_S)
    yield Row("… processor time", time.process_time() - cpu, "s")
    flashed = FlashImage(image.build_id, image.model_sha256, image.segments)
    probe.flash(flashed, Deadline.after(300))
    link = SerialLink(desk.twin(uid).endpoint.url, board.uart.baud)
    device = Device(link)
    yield Row("reset to hello", min(_hello(probe, device) for _ in range(5)), "s", HELLO_LIMIT_S)
    yield from _cycles(probe, device, flashed, board.flash.address)
    link.close()
    probe.close()
    desk.unplug(uid)


def _hello(probe: PyOcdProbe, device: Device) -> float:
    started = time.perf_counter()
    probe.reset(Deadline.after(10))
    device.forget()
    device.hello(Deadline.after(10))
    return time.perf_counter() - started


def _cycles(probe: PyOcdProbe, device: Device, image: FlashImage, base: int) -> Iterator[Row]:
    """Each cycle programs one sector anew (the program and a marker behind it), boots it and says hello."""
    cycles = int(sys.argv[sys.argv.index("--cycles") + 1]) if "--cycles" in sys.argv else CYCLES
    started, middle = time.perf_counter(), _Usage.now()
    for number in range(cycles):
        marker = (base + 0x3_0000, number.to_bytes(4, "little") * 64)
        segments = (*image.segments, marker)
        probe.flash(FlashImage(image.build_id, image.model_sha256, segments), Deadline.after(60))
        _hello(probe, device)
        if number == cycles // 2:
            middle = _Usage.now()
        if number % REPORT_EVERY == REPORT_EVERY - 1:
            _progress(number + 1, (time.perf_counter() - started) / (number + 1))
    end = _Usage.now()
    yield Row(f"{cycles} cycles of flash and boot, each", (time.perf_counter() - started) / cycles, "s")
    yield Row("… memory, growth in the second half", end.memory_mib - middle.memory_mib, "MiB", MEMORY_LIMIT_MIB)
    yield Row("… threads, growth", end.threads - middle.threads, "", HANDLE_LIMIT)
    yield Row("… file descriptors, growth", end.files - middle.files, "", HANDLE_LIMIT)


def _progress(done: int, each_s: float) -> None:
    """What a run that is stopped early still tells, on standard error: the rows come last."""
    now = _Usage.now()
    resources = f"{now.memory_mib:.1f} MiB, {now.threads} threads, {now.files} descriptors"
    print(f"{done} cycles, {each_s:.2f} s each: {resources}", file=sys.stderr, flush=True)


def _firmware(folder: Path) -> FirmwareImage:
    board = load_hardware_board("nucleo-f746zg")
    library, _ = _library(folder)
    model = read_model(ROOT / "examples" / "kws.tflite")
    return build_firmware(model, board, library, FirmwareConfig(65536), folder / "out")


if __name__ == "__main__":
    run(measure)
