"""What every chip is made of, whatever its family: a core on a bus, memories, and what a twin asks of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.board.record import Family, Fpu, HardwareBoard
from harness.sim.bus import Bus, Memory
from harness.sim.cortex_m import CortexM
from harness.sim.device import Reserved
from harness.sim.engine import Engine
from harness.sim.mpu import MpuV7, MpuV8
from harness.sim.scs import (
    FlashPatch,
    RomTable,
    SystemControlSpace,
    TraceMacrocell,
    WatchpointTrace,
)
from harness.sim.stm32_clock import ResetCause
from harness.sim.stm32_flash import FlashArray, FlashFaults

#: CPUID and AHB-AP IDR. Arm: Cortex-M4 TRM r0p1, Cortex-M7 TRM r0p1, Cortex-M33 TRM; IDRs are those that pyOCD knows.
CORES = {
    "cortex-m4": (0x410F_C241, 0x2477_0011),
    "cortex-m7": (0x410F_C271, 0x7477_0001),
    "cortex-m33": (0x410F_D213, 0x8477_0001),
}


@dataclass(slots=True)
class Chip:
    """The emulated chip. ``controller`` is the flash controller; ``uart`` the one wired to the probe's COM port."""

    board: HardwareBoard
    core: CortexM
    bus: Bus
    flash: Memory
    array: FlashArray
    controller: Any
    uart: Any
    cause: ResetCause
    hclk_hz: Callable[[], int]
    ahb_ap_idr: int
    rams: list[Memory]
    #: Whether a debugger may read and write memory.
    is_protected: Callable[[], bool]
    #: CTRL-AP of an nRF: erase everything and open the chip. None where the chip has no such port.
    mass_erase: Callable[[], None] | None
    violations: list[str]
    set_identity: Callable[[int], None]

    def reset_devices(self) -> None:
        for device in self.bus.devices():
            device.reset()


def build_core(
    core_name: str,
    *,
    double_precision: bool,
    has_fpu: bool,
    priority_bits: int,
    reset_vtor: int,
    rom: RomTable,
    table_bytes: int = 128,
) -> tuple[CortexM, Bus]:
    """A core with its private peripherals on an otherwise empty bus. ``table_bytes``: the vector table's alignment."""
    engine = Engine(core_name, double_precision=double_precision)
    bus = Bus(engine, bit_band=core_name == "cortex-m4")
    mpu = MpuV8(engine) if core_name == "cortex-m33" else MpuV7(engine)
    core = CortexM(engine, bus, priority_bits=priority_bits, has_fpu=has_fpu, reset_vtor=reset_vtor, mpu=mpu)
    scs = SystemControlSpace(core, cpuid=CORES[core_name][0], irqs=112, table_bytes=table_bytes)
    bus.add_device(scs, 0xE000_E000, 0x1000)
    bus.add_device(TraceMacrocell(), 0xE000_0000, 0x1000)
    bus.add_device(WatchpointTrace(core, has_lock=core_name == "cortex-m7"), 0xE000_1000, 0x1000)
    bus.add_device(FlashPatch(core, revision=1 if core_name == "cortex-m4" else 2), 0xE000_2000, 0x1000)
    bus.add_device(rom, 0xE00F_F000, 0x1000)
    return core, bus


class Body:
    """What every chip has: a core on a bus, flash with its cells, RAM, and a reason for its last reset."""

    def __init__(
        self,
        board: HardwareBoard,
        *,
        priority_bits: int,
        rom: RomTable,
        reset_vtor: int = 0,
        flash_aliases: tuple[int, ...] = (),
    ) -> None:
        self.board = board
        self.core, self.bus = build_core(
            board.core,
            double_precision=board.fpu is Fpu.DOUBLE,
            has_fpu=board.fpu is not Fpu.NONE,
            priority_bits=priority_bits,
            reset_vtor=reset_vtor,
            rom=rom,
            # 54 to 64 exceptions, 98 to 126: the manuals' vector tables.
            table_bytes=256 if board.family is Family.NRF52 else 512,
        )
        self.flash, self.rams = _add_memories(board, self.bus, flash_aliases)
        self.array = FlashArray(self.flash, sector_sizes(board), FlashFaults())
        self.array.on_change = self.core.engine.code_changed
        self.cause = ResetCause()

    def chip(
        self,
        *,
        controller: Any,
        uart: Any,
        reserved: tuple[tuple[int, int], ...],
        hclk_hz: Callable[[], int],
        is_protected: Callable[[], bool],
        set_identity: Callable[[int], None],
        mass_erase: Callable[[], None] | None = None,
    ) -> Chip:
        """The whole, when all of its devices are on the bus; ``reserved`` are the addresses of those that the twin does
        not model."""
        _fill_reserved(self.bus, reserved)
        self.bus.finish()
        chip = Chip(
            board=self.board,
            core=self.core,
            bus=self.bus,
            flash=self.flash,
            array=self.array,
            controller=controller,
            uart=uart,
            cause=self.cause,
            hclk_hz=hclk_hz,
            ahb_ap_idr=CORES[self.board.core][1],
            rams=self.rams,
            is_protected=is_protected,
            mass_erase=mass_erase,
            violations=[],
            set_identity=set_identity,
        )
        self.bus.on_flash_store = _flash_store(chip)
        uart.pend = self.core.pend_irq
        uart.end_slice = self.core.end_slice
        return chip


def _add_memories(board: HardwareBoard, bus: Bus, flash_aliases: tuple[int, ...]) -> tuple[Memory, list[Memory]]:
    flash = Memory("flash", board.flash.size_bytes, (board.flash.address, *flash_aliases), writable=False, fill=0xFF)
    bus.add_memory(flash)
    rams: list[Memory] = []
    for region in _contiguous(board):
        rams.append(Memory("ram", region[1], (region[0],), writable=True))
        bus.add_memory(rams[-1])
    return flash, rams


def _contiguous(board: HardwareBoard) -> list[tuple[int, int]]:
    """RAM that lies side by side is one memory, so that an access may cross the seam."""
    joined: list[tuple[int, int]] = []
    for memory in sorted(board.memories, key=lambda m: m.address):
        if memory.kind == "flash":
            continue
        if joined and sum(joined[-1]) == memory.address:
            joined[-1] = (joined[-1][0], joined[-1][1] + memory.size_bytes)
        else:
            joined.append((memory.address, memory.size_bytes))
    return joined


def sector_sizes(board: HardwareBoard) -> tuple[int, ...]:
    return tuple(run.size_bytes for run in board.flash_sectors.runs for _ in range(run.count))


def _fill_reserved(bus: Bus, ranges: tuple[tuple[int, int], ...]) -> None:
    """Peripherals that the chip has and the twin does not model."""
    for start, end in ranges:
        for address in range(start, end, 0x400):
            if not bus.has_device(address):
                bus.add_device(Reserved(f"peripheral at 0x{address:08x}"), address)


def _flash_store(chip: Chip) -> Callable[[int, int, int], None]:
    flash, controller = chip.flash, chip.controller

    def store(address: int, size: int, value: int) -> None:
        offset = flash.offset(address, size)
        if offset is not None:
            controller.store_cell(offset, size, value)

    return store
