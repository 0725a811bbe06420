"""How the defects of `harness.board.twin_faults` are put into a twin. For ``--sim-fault``, lab files and tests."""

from __future__ import annotations

from collections.abc import Callable

from harness.board.fault_ranges import check_fault
from harness.errors import UsageError
from harness.sim.nrf52 import NrfUicr
from harness.sim.stm32_flash import Stm32Flash
from harness.sim.twin import Twin
from harness.sim.wire import PseudoTerminal

Apply = Callable[[Twin, float], None]


def inject(text: str, twin: Twin) -> None:
    """Put the defect that ``text`` names into the twin. Raises UsageError with the names that there are, or the
    numbers that can act on its board."""
    name, number = check_fault(text, twin.board)
    with twin.turn():
        APPLY[name](twin, number)


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


#: Name → how it is done.
APPLY: dict[str, Apply] = {
    "unpowered": lambda twin, _value: twin.power_off(),
    "probe-busy": _set_probe("busy"),
    "probe-old-firmware": _set_probe("old_firmware"),
    "unplug-after": _set_probe("unplug_after_transfers"),
    "max-clock": _set_probe("max_clock_hz"),
    "needs-reset": _set_probe("needs_reset_line"),
    "reset-stuck": _set_probe("reset_stuck"),
    "flash-bit": _stuck_bit,
    "dead-sector": lambda twin, value: twin.chip.array.faults.dead_sectors.add(int(value)),
    "flash-busy": lambda twin, _value: setattr(twin.chip.array.faults, "stuck_busy", True),
    "flash-locked": lambda twin, _value: setattr(twin.chip.array.faults, "refuse_unlock", True),
    "protected": _protect,
    "wrong-chip": _wrong_chip,
    "brownout-flashing": _brown_out_while_flashing,
    "brownout-running": _brown_out_while_running,
    "clock": _scale_clock,
    "strict-alignment": _align_strictly,
    "garbage": _garbage,
    "drop": _set_line("drop_every"),
    "drop-in": _set_line("drop_to_device_every"),
    "duplicate": _set_line("duplicate_every"),
    "corrupt": _set_line("corrupt_every"),
    "max-baud": _set_line("max_baud"),
    "replug-after": _replug,
    "silent": _set_line("silent"),
    "echo": _set_line("echo"),
}
