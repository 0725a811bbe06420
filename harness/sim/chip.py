"""A chip put together from its board's record: memories, devices, and the wiring between them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.board.record import Family, Fpu, HardwareBoard, UartDriver
from harness.errors import UsageError
from harness.sim import nrf52, stm32_clock, stm32_flash, stm32_system, stm32_uart
from harness.sim.bus import Bus, Memory
from harness.sim.cortex_m import CortexM
from harness.sim.device import Device, Reserved
from harness.sim.engine import Engine
from harness.sim.mpu import MpuV7, MpuV8
from harness.sim.scs import (
    NORDIC,
    ST,
    FlashPatch,
    RomTable,
    SystemControlSpace,
    TraceMacrocell,
    WatchpointTrace,
)
from harness.sim.stm32_clock import ExternalClock, ResetCause
from harness.sim.stm32_flash import FlashArray, FlashFaults
from harness.sim.stm32_registers import registers_of, uart_registers
from harness.sim.wire import Wire

log = logging.getLogger(__name__)

#: CPUID and AHB-AP IDR. Arm: Cortex-M4 TRM r0p1, Cortex-M7 TRM r0p1, Cortex-M33 TRM; IDRs are those that pyOCD knows.
_CORES = {
    "cortex-m4": (0x410F_C241, 0x2477_0011),
    "cortex-m7": (0x410F_C271, 0x7477_0001),
    "cortex-m33": (0x410F_D213, 0x8477_0001),
}
#: Interrupt numbers of the UARTs: RM0385 table 46, RM0390 table 38, RM0351 table 58.
_UART_IRQS = {
    "USART1": 37,
    "USART2": 38,
    "USART3": 39,
    "UART4": 52,
    "UART5": 53,
    "USART6": 71,
    "UART7": 82,
    "UART8": 83,
    "LPUART1": 70,
}
#: DEV_ID of the STM32L4+ chips: L4R5, L4R9 and their like; L4P5. RM0432 rev 9, 57.6.1.
_L4_PLUS = {0x470, 0x471}
_ON_APB2 = {"USART1", "USART6"}


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


def build_chip(board: HardwareBoard, wire: Wire) -> Chip:
    """Raises UsageError for a family that the twin does not model."""
    builders = {
        Family.STM32F4: _build_stm32,
        Family.STM32F7: _build_stm32,
        Family.STM32L4: _build_stm32,
        Family.NRF52: _build_nrf52,
    }
    if board.family not in builders or board.core not in _CORES:
        raise UsageError(
            f"there is no twin for {board.chip} ({board.family.value}, {board.core})",
            remedy=f"modelled families: {', '.join(sorted(f.value for f in builders))}",
        )
    return builders[board.family](board, wire)


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
    scs = SystemControlSpace(core, cpuid=_CORES[core_name][0], irqs=112, table_bytes=table_bytes)
    bus.add_device(scs, 0xE000_E000, 0x1000)
    bus.add_device(TraceMacrocell(), 0xE000_0000, 0x1000)
    bus.add_device(WatchpointTrace(core, has_lock=core_name == "cortex-m7"), 0xE000_1000, 0x1000)
    bus.add_device(FlashPatch(core, revision=1 if core_name == "cortex-m4" else 2), 0xE000_2000, 0x1000)
    bus.add_device(rom, 0xE00F_F000, 0x1000)
    return core, bus


class _Body:
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
        self.array = FlashArray(self.flash, _sector_sizes(board), FlashFaults())
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
            ahb_ap_idr=_CORES[self.board.core][1],
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


def _sector_sizes(board: HardwareBoard) -> tuple[int, ...]:
    return tuple(run.size_bytes for run in board.flash_sectors.runs for _ in range(run.count))


def _fill_reserved(bus: Bus, ranges: tuple[tuple[int, int], ...]) -> None:
    """Peripherals that the chip has and the twin does not model."""
    for start, end in ranges:
        for address in range(start, end, 0x400):
            if not bus.has_device(address):
                bus.add_device(Reserved(f"peripheral at 0x{address:08x}"), address)


# --- STM32 ------------------------------------------------------------------------------------------------------

#: family → (flash aliases, RCC, PWR, flash registers, GPIO base, system memory page, flash size register, unique id)
_STM32 = {
    Family.STM32F7: ((0x0020_0000,), 0x4002_3800, 0x4002_3C00, 0x4002_0000, 0x1FF0_F000, 0x442, 0x420),
    Family.STM32F4: ((0x0000_0000,), 0x4002_3800, 0x4002_3C00, 0x4002_0000, 0x1FFF_7000, 0xA22, 0xA10),
    Family.STM32L4: ((0x0000_0000,), 0x4002_1000, 0x4002_2000, 0x4800_0000, 0x1FFF_7000, 0x5E0, 0x590),
}
_RESERVED = {
    Family.STM32F7: ((0x4000_0000, 0x4001_8000), (0x4002_0000, 0x4008_0000), (0x5000_0000, 0x5006_1000)),
    Family.STM32F4: ((0x4000_0000, 0x4001_7000), (0x4002_0000, 0x4008_0000), (0x5000_0000, 0x5006_1000)),
    Family.STM32L4: (
        (0x4000_0000, 0x4001_6400),
        (0x4002_0000, 0x4002_4400),
        (0x4800_0000, 0x4800_2000),
        (0x5000_0000, 0x5006_1000),
    ),
}
#: STM32F4 chips without over-drive by DEV_ID, and PWR_CR.VOS after their reset: F401, F411. Others start with 3.
_F4_LIMITS = {
    0x423: stm32_clock.F401_LIMITS,
    0x433: stm32_clock.F401_LIMITS,
    0x431: stm32_clock.F411_LIMITS,
    0x441: stm32_clock.F411_LIMITS,
}
#: SYSCFG's address; the enable registers of GPIO, SYSCFG and PWR, with the bits of the last two.
_GATES = {
    Family.STM32F4: (0x4001_3800, 0x30, (0x44, 14), (0x40, 28)),
    Family.STM32F7: (0x4001_3800, 0x30, (0x44, 14), (0x40, 28)),
    Family.STM32L4: (0x4001_0000, 0x4C, (0x60, 0), (0x58, 28)),
}


def _build_stm32(board: HardwareBoard, wire: Wire) -> Chip:
    aliases, rcc_at, flash_at, gpio_at, system_at, size_at, uid_at = _STM32[board.family]
    rom = RomTable(ST, board.id_code.value & 0xFFF)
    body = _Body(board, priority_bits=4, rom=rom, reset_vtor=aliases[0], flash_aliases=aliases)
    bus = body.bus
    external = ExternalClock()
    if board.clock.input in ("hse_bypass", "hse_crystal"):
        external = ExternalClock(board.clock.input_hz, board.clock.input == "hse_bypass")
    clock, power, controller = _stm32_blocks(board, external, body.cause, body.array)
    ports = [stm32_system.Stm32Gpio(chr(ord("A") + n)) for n in range(11 if gpio_at < 0x4800_0000 else 8)]
    watchdog = stm32_system.Stm32Watchdog(body.core, stm32_clock.LSI_HZ)
    uart = _stm32_uart(board, wire)
    system = Memory("system", 0x1000, (system_at,), writable=False, fill=0xFF)
    system.view[size_at : size_at + 2] = (body.flash.size // 1024).to_bytes(2, "little")
    system.view[uid_at : uid_at + 12] = b"TWIN" + board.base_name.encode()[:8].ljust(8)
    bus.add_memory(system)
    bus.add_device(clock, rcc_at)
    bus.add_device(controller, flash_at)
    bus.add_device(power, 0x4000_7000)
    bus.add_device(watchdog, 0x4000_3000)
    bus.add_device(uart, board.uart.base)
    identity = stm32_system.Stm32DebugMcu(0x1000_0000 | board.id_code.value)
    bus.add_device(identity, 0xE004_2000, 0x1000)
    for n, port in enumerate(ports):
        bus.add_device(port, gpio_at + 0x400 * n)
    system_configuration = stm32_system.Stm32SystemConfiguration()
    bus.add_device(system_configuration, _GATES[board.family][0])
    _gate_stm32(board, clock, rcc_at, ports, system_configuration, power, uart)
    known = registers_of(board.family)
    clock.registers, power.registers, controller.registers = known.rcc, known.pwr, known.flash
    uart.registers, system_configuration.registers = uart_registers(board.uart.driver), known.syscfg
    for port in ports:
        port.registers = known.gpio
    chip = body.chip(
        controller=controller,
        uart=uart,
        reserved=_RESERVED[board.family],
        hclk_hz=lambda: clock.hclk_hz,
        is_protected=lambda: controller.protection_level > 0,
        set_identity=lambda value: setattr(identity, "idcode", value),
    )
    _wire_stm32(chip, clock, power, watchdog, ports)
    return chip


def _stm32_blocks(
    board: HardwareBoard, external: ExternalClock, cause: ResetCause, array: FlashArray
) -> tuple[stm32_clock.Stm32Clock, stm32_clock.Stm32Power, stm32_flash.Stm32Flash]:
    if board.family is Family.STM32L4:
        # An STM32L4+ (RM0432 rev 9, 3.3.3 table 12): 20 MHz for each wait state in boost mode, up to 120 MHz.
        plus = (board.id_code.value & 0xFFF) in _L4_PLUS
        plus_limits = {"limit_hz": 120_000_000, "hz_per_state": 20_000_000} if plus else {}
        return (
            stm32_clock.Stm32L4Clock(external, cause, **plus_limits),
            stm32_clock.Stm32L4Power(),
            stm32_flash.Stm32L4Flash(array),
        )
    is_f7 = board.family is Family.STM32F7
    f4_limits = _F4_LIMITS.get(board.id_code.value & 0xFFF)
    limits = stm32_clock.F7_LIMITS if is_f7 else f4_limits or stm32_clock.F4_LIMITS
    options = 0x0FFF_AAED if not is_f7 else 0xFFFF_AAFD if board.flash.size_bytes > 1 << 20 else 0xC0FF_AAFD
    return (
        stm32_clock.Stm32F4F7Clock(external, cause, limits=limits, has_kernel_mux=is_f7),
        stm32_clock.Stm32F4F7Power(reset_scale=2 if f4_limits else 3),
        stm32_flash.Stm32F4F7Flash(array, option_reset=options),
    )


def _gate_stm32(
    board: HardwareBoard,
    clock: stm32_clock.Stm32Clock,
    rcc_at: int,
    ports: list[stm32_system.Stm32Gpio],
    system_configuration: Device,
    power: Device,
    uart: Device,
) -> None:
    _, gpio_register, syscfg_gate, power_gate = _GATES[board.family]
    for n, port in enumerate(ports):
        clock.gate(port, gpio_register, n)
    clock.gate(system_configuration, *syscfg_gate)
    clock.gate(power, *power_gate)
    if board.uart.enable_register is not None and board.uart.enable_bit is not None:
        clock.gate(uart, board.uart.enable_register - rcc_at, board.uart.enable_bit)


def _stm32_uart(board: HardwareBoard, wire: Wire) -> stm32_uart.Stm32Uart:
    irq = _UART_IRQS[board.uart.instance]
    match board.uart.driver:
        case UartDriver.STM32_V1:
            return stm32_uart.Stm32UartV1(board.uart.instance, wire, irq=irq)
        case UartDriver.STM32_V2:
            return stm32_uart.Stm32UartV2(board.uart.instance, wire, irq=irq)
        case UartDriver.STM32_LPUART:
            return stm32_uart.Stm32UartV2(board.uart.instance, wire, irq=irq, lpuart=True)
    raise UsageError(f"{board.name}: an STM32 has no UART of the kind {board.uart.driver.value}")


def _wire_stm32(
    chip: Chip,
    clock: stm32_clock.Stm32Clock,
    power: stm32_clock.Stm32Power,
    watchdog: stm32_system.Stm32Watchdog,
    ports: list[stm32_system.Stm32Gpio],
) -> None:
    board, core, controller, uart = chip.board, chip.core, chip.controller, chip.uart

    def violation(text: str) -> None:
        log.error("%s: %s; the core locks up", board.name, text)
        chip.violations.append(text)
        core.lock_up()

    clock.on_violation = violation
    clock.on_change = watchdog.rearm
    clock.wait_states = lambda: controller.wait_states
    controller.on_latency = clock.check
    power.on_change = clock.check
    if isinstance(power, stm32_clock.Stm32F4F7Power) and isinstance(clock, stm32_clock.Stm32F4F7Clock):
        clock.over_drive = lambda: power.over_drive
        clock.voltage_scale = lambda: power.voltage_scale
        power.pll_on = lambda: clock.pll_on
    if isinstance(power, stm32_clock.Stm32L4Power) and isinstance(clock, stm32_clock.Stm32L4Clock):
        clock.boost = lambda: power.boost
        clock.voltage_range = lambda: power.voltage_scale
    watchdog.hclk_hz = lambda: clock.hclk_hz
    pins = {port.letter: port for port in ports}
    bus_number = 2 if board.uart.instance in _ON_APB2 else 1
    uart.clock_hz = lambda: clock.uart_hz(board.uart.instance, bus_number)
    tx, rx = board.uart.tx, board.uart.rx

    def supplied() -> bool:
        """Port G of an STM32L4 needs PWR_CR2.IOSV. RM0351 rev 9, 5.4.2."""
        return not board.uart.needs_vddio2 or bool(power.words.get(0x04, 0) & (1 << 9))

    uart.tx_connected = lambda: supplied() and pins[tx.port].carries(tx.number, tx.alternate_function or 0)
    uart.rx_connected = lambda: supplied() and pins[rx.port].carries(rx.number, rx.alternate_function or 0)


def _flash_store(chip: Chip) -> Callable[[int, int, int], None]:
    flash, controller = chip.flash, chip.controller

    def store(address: int, size: int, value: int) -> None:
        offset = flash.offset(address, size)
        if offset is not None:
            controller.store_cell(offset, size, value)

    return store


# --- nRF52 ------------------------------------------------------------------------------------------------------


def _build_nrf52(board: HardwareBoard, wire: Wire) -> Chip:
    part = board.id_code.value
    body = _Body(board, priority_bits=3, rom=RomTable(NORDIC, 0x008))
    bus, rams, array = body.bus, body.rams, body.array
    sectors = _sector_sizes(board)
    uicr = nrf52.NrfUicr()
    controller = nrf52.NrfFlash(array, uicr)
    uicr.may_write = lambda: controller.mode == 1
    facts = {
        0x010: sectors[0],
        0x014: len(sectors),
        0x060: 0x5457_494E,
        0x064: 0x0000_0001,
        0x100: part,
        0x104: 0x4141_4430,  # "AAD0": before the hardened access port protection
        0x108: 0x2004,
        0x10C: sum(ram.size for ram in rams) // 1024,
        0x110: body.flash.size // 1024,
    }
    uart = nrf52.NrfUarte(wire, bus, rams[0], count_bits=8 if part == 0x52832 else 16)
    watchdog = nrf52.NrfWatchdog(body.core)
    bus.add_device(nrf52.NrfFicr(facts), 0x1000_0000, 0x1000)
    bus.add_device(uicr, 0x1000_1000, 0x1000)
    clock = nrf52.NrfClock(body.cause)
    bus.add_device(clock, 0x4000_0000, 0x1000)
    bus.add_device(uart, board.uart.base, 0x1000)
    bus.add_device(watchdog, 0x4001_0000, 0x1000)
    bus.add_device(controller, 0x4001_E000, 0x1000)
    bus.add_device(nrf52.NrfGpio(), 0x5000_0000, 0x1000)
    protected = {"now": uicr.protected}

    def mass_erase() -> None:
        array.erase_all()
        uicr.erase()
        for ram in rams:
            ram.erase()

    chip = body.chip(
        controller=controller,
        uart=uart,
        reserved=((0x4000_0000, 0x4003_0000),),
        hclk_hz=lambda: nrf52.NrfClock.hclk_hz,
        is_protected=lambda: protected["now"],
        mass_erase=mass_erase,
        set_identity=lambda value: facts.update({0x100: value}),
    )
    # The protection takes effect, and ends, at a reset.
    uicr.on_reset = lambda: protected.update(now=uicr.protected)
    controller.on_refused = lambda offset: bus.on_error(board.flash.address + offset, True)
    uart.tx_pin, uart.rx_pin = (int(pin.port) << 5 | pin.number for pin in (board.uart.tx, board.uart.rx))
    uart.crystal_runs = lambda: clock.crystal_runs
    uart.on_bad_pointer = lambda address: _bad_pointer(chip, address)
    return chip


def _bad_pointer(chip: Chip, address: int) -> None:
    """PS 6.34: a pointer outside the Data RAM "may result in a HardFault or RAM corruption"; here it faults."""
    chip.violations.append(f"EasyDMA was given 0x{address:08x}, which is not RAM")
    chip.bus.on_error(address, False)
