"""STM32F4, STM32F7 and STM32L4: which blocks stand where, and what holds them together."""

from __future__ import annotations

import logging

from harness.board.record import Family, HardwareBoard, UartDriver
from harness.errors import UsageError
from harness.sim import stm32_clock, stm32_flash, stm32_power, stm32_system, stm32_uart
from harness.sim.bus import Memory
from harness.sim.chip import Body, Chip
from harness.sim.device import Device
from harness.sim.scs import ST, RomTable
from harness.sim.stm32_clock import ExternalClock, ResetCause
from harness.sim.stm32_flash import FlashArray
from harness.sim.stm32_registers import registers_of, uart_registers
from harness.sim.wire import Wire

log = logging.getLogger(__name__)

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
    0x423: stm32_power.F401_LIMITS,
    0x433: stm32_power.F401_LIMITS,
    0x431: stm32_power.F411_LIMITS,
    0x441: stm32_power.F411_LIMITS,
}
#: SYSCFG's address; the enable registers of GPIO, SYSCFG and PWR, with the bits of the last two.
_GATES = {
    Family.STM32F4: (0x4001_3800, 0x30, (0x44, 14), (0x40, 28)),
    Family.STM32F7: (0x4001_3800, 0x30, (0x44, 14), (0x40, 28)),
    Family.STM32L4: (0x4001_0000, 0x4C, (0x60, 0), (0x58, 28)),
}


def build_stm32(board: HardwareBoard, wire: Wire) -> Chip:
    aliases, rcc_at, flash_at, gpio_at, system_at, size_at, uid_at = _STM32[board.family]
    rom = RomTable(ST, board.id_code.value & 0xFFF)
    body = Body(board, priority_bits=4, rom=rom, reset_vtor=aliases[0], flash_aliases=aliases)
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
) -> tuple[stm32_clock.Stm32Clock, stm32_power.Stm32Power, stm32_flash.Stm32Flash]:
    if board.family is Family.STM32L4:
        # An STM32L4+ (RM0432 rev 9, 3.3.3 table 12): 20 MHz for each wait state in boost mode, up to 120 MHz.
        plus = (board.id_code.value & 0xFFF) in _L4_PLUS
        plus_limits = {"limit_hz": 120_000_000, "hz_per_state": 20_000_000} if plus else {}
        return (
            stm32_clock.Stm32L4Clock(external, cause, **plus_limits),
            stm32_power.Stm32L4Power(),
            stm32_flash.Stm32L4Flash(array),
        )
    is_f7 = board.family is Family.STM32F7
    f4_limits = _F4_LIMITS.get(board.id_code.value & 0xFFF)
    limits = stm32_power.F7_LIMITS if is_f7 else f4_limits or stm32_power.F4_LIMITS
    options = 0x0FFF_AAED if not is_f7 else 0xFFFF_AAFD if board.flash.size_bytes > 1 << 20 else 0xC0FF_AAFD
    return (
        stm32_clock.Stm32F4F7Clock(external, cause, limits=limits, has_kernel_mux=is_f7),
        stm32_power.Stm32F4F7Power(reset_scale=2 if f4_limits else 3),
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
    power: stm32_power.Stm32Power,
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
    if isinstance(power, stm32_power.Stm32F4F7Power) and isinstance(clock, stm32_clock.Stm32F4F7Clock):
        clock.over_drive = lambda: power.over_drive
        clock.voltage_scale = lambda: power.voltage_scale
        power.pll_on = lambda: clock.pll_on
    if isinstance(power, stm32_power.Stm32L4Power) and isinstance(clock, stm32_clock.Stm32L4Clock):
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
