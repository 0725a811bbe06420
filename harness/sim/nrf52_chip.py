"""nRF52832 and nRF52840: which blocks stand where, and what holds them together."""

from __future__ import annotations

from harness.board.record import HardwareBoard
from harness.sim import nrf52
from harness.sim.chip import Body, Chip, sector_sizes
from harness.sim.scs import NORDIC, RomTable
from harness.sim.wire import Wire


def build_nrf52(board: HardwareBoard, wire: Wire) -> Chip:
    part = board.id_code.value
    body = Body(board, priority_bits=3, rom=RomTable(NORDIC, 0x008))
    bus, rams, array = body.bus, body.rams, body.array
    sectors = sector_sizes(board)
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
