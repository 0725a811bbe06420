"""Defects by name: ``drop=300``, ``flash-busy``, ``protected``. For ``--sim-fault``, lab files and tests."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from harness.errors import UsageError
from harness.sim.nrf52 import NrfUicr
from harness.sim.stm32_flash import Stm32Flash
from harness.sim.twin import Twin
from harness.sim.wire import PseudoTerminal
from harness.units import quoted

Apply = Callable[[Twin, float], None]


@dataclass(frozen=True, slots=True)
class Fault:
    """``value`` says what the number after ``=`` means; "" for a fault without one."""

    text: str
    value: str
    apply: Apply


def inject(text: str, twin: Twin) -> None:
    """Put the defect that ``text`` names into the twin. Raises UsageError with the names that there are."""
    name, _, value = text.partition("=")
    fault = FAULTS.get(name.strip())
    if fault is None:
        raise UsageError(f"there is no fault {quoted(name)}", remedy=f"faults: {', '.join(sorted(FAULTS))}")
    try:
        number = float(int(value, 0) if "." not in value else float(value)) if fault.value else 0.0
    except ValueError as exc:
        raise UsageError(f"fault {name} needs a number: {fault.value}", remedy=f"write {name}=N") from exc
    if not math.isfinite(number) or number < 0 or (name.strip() == "clock" and number == 0):
        raise UsageError(f"fault {name}={value}: {fault.value} cannot be that", remedy=f"write {name}=N, N positive")
    with twin.turn():
        fault.apply(twin, number)


def _protect(twin: Twin, _value: float) -> None:
    controller = twin.chip.controller
    if isinstance(controller, Stm32Flash):
        controller.set_protection(1)
    else:
        controller.uicr.cells[NrfUicr.APPROTECT] = 0
        controller.uicr.reset()


def _stuck_bit(twin: Twin, value: float) -> None:
    twin.chip.array.faults.stuck_bits[int(value)] = 0xFF


def _brown_out_while_flashing(twin: Twin, value: float) -> None:
    left = [int(value)]

    def count() -> None:
        left[0] -= 1
        if left[0] == 0:
            twin.lose_power()

    twin.chip.array.faults.on_operation = count


def _brown_out_while_running(twin: Twin, value: float) -> None:
    twin.wire.after_bytes(int(value), twin.request_power_cycle)


def _replug(twin: Twin, value: float) -> None:
    endpoint = twin.endpoint
    if not isinstance(endpoint, PseudoTerminal):
        raise UsageError("only a pseudo-terminal can come back under another name", remedy="leave out replug-after")
    twin.wire.after_bytes(int(value), endpoint.replug)


def _wrong_chip(twin: Twin, value: float) -> None:
    twin.chip.set_identity(int(value))


def _scale_clock(twin: Twin, value: float) -> None:
    twin.wire.clock_factor = value


def _set_line(name: str) -> Apply:
    def apply(twin: Twin, value: float) -> None:
        current = getattr(twin.wire.faults, name)
        setattr(twin.wire.faults, name, True if isinstance(current, bool) else int(value))

    return apply


def _set_probe(name: str) -> Apply:
    def apply(twin: Twin, value: float) -> None:
        current = getattr(twin.faults, name)
        setattr(twin.faults, name, True if isinstance(current, bool) else int(value))

    return apply


def _garbage(twin: Twin, value: float) -> None:
    noise = bytes((37 * n + 11) & 0xFF for n in range(int(value)))
    twin.wire.faults.garbage_at_boot = b"\x00\xff\xfe" + noise


def _align_strictly(twin: Twin, _value: float) -> None:
    twin.chip.core.strict_alignment = True
    twin.chip.core.watch_alignment()


FAULTS: dict[str, Fault] = {
    "unpowered": Fault("the board has no power", "", lambda twin, _value: twin.power_off()),
    "probe-busy": Fault("another program has the probe", "", _set_probe("busy")),
    "probe-old-firmware": Fault("the probe's firmware is too old", "", _set_probe("old_firmware")),
    "unplug-after": Fault("the probe is unplugged", "transfers until then", _set_probe("unplug_after_transfers")),
    "max-clock": Fault("the target answers only slowly", "Hz", _set_probe("max_clock_hz")),
    "needs-reset": Fault("the target answers only under reset", "", _set_probe("needs_reset_line")),
    "reset-stuck": Fault("the reset line is not connected", "", _set_probe("reset_stuck")),
    "flash-bit": Fault("a byte of flash programs as 0", "offset of the byte", _stuck_bit),
    "dead-sector": Fault(
        "erasing a sector does nothing",
        "its number",
        lambda twin, value: twin.chip.array.faults.dead_sectors.add(int(value)),
    ),
    "flash-busy": Fault(
        "the flash controller is busy for ever",
        "",
        lambda twin, _value: setattr(twin.chip.array.faults, "stuck_busy", True),
    ),
    "flash-locked": Fault(
        "the flash controller does not unlock",
        "",
        lambda twin, _value: setattr(twin.chip.array.faults, "refuse_unlock", True),
    ),
    "protected": Fault("read-out protection is on", "", _protect),
    "wrong-chip": Fault("the chip is another one", "its id code", _wrong_chip),
    "brownout-flashing": Fault("power fails while flashing", "operations until then", _brown_out_while_flashing),
    "brownout-running": Fault("power fails while running", "bytes sent until then", _brown_out_while_running),
    "clock": Fault("the crystal is another one", "factor, as 0.5", _scale_clock),
    "strict-alignment": Fault("unaligned LDRD, LDM and VLDR fault, as on a chip (slow)", "", _align_strictly),
    "garbage": Fault("noise on the line at each boot", "bytes", _garbage),
    "drop": Fault("bytes to the host are lost", "every Nth", _set_line("drop_every")),
    "drop-in": Fault("bytes to the device are lost", "every Nth", _set_line("drop_to_device_every")),
    "duplicate": Fault("bytes to the host come twice", "every Nth", _set_line("duplicate_every")),
    "corrupt": Fault("bytes to the host are changed", "every Nth", _set_line("corrupt_every")),
    "max-baud": Fault("the line garbles everything above a rate", "baud", _set_line("max_baud")),
    "replug-after": Fault("the serial port comes back under another name", "bytes sent until then", _replug),
    "silent": Fault("nothing arrives at the host", "", _set_line("silent")),
    "echo": Fault("what the host sends comes back", "", _set_line("echo")),
}
