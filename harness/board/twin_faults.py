"""The defects that a twin may have, by name: ``drop=300``, ``flash-busy``, ``protected``. What a lab file and
``--sim-fault`` may say; how each is put into a twin is the twin's own affair (`harness.sim.injection`)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from harness.errors import UsageError
from harness.units import quoted


@dataclass(frozen=True, slots=True)
class Fault:
    """``value`` says what the number after ``=`` means; "" for a fault without one."""

    text: str
    value: str = ""


FAULTS: dict[str, Fault] = {
    "unpowered": Fault("the board has no power"),
    "probe-busy": Fault("another program has the probe"),
    "probe-old-firmware": Fault("the probe's firmware is too old"),
    "unplug-after": Fault("the probe is unplugged", "transfers until then"),
    "max-clock": Fault("the target answers only slowly", "Hz"),
    "needs-reset": Fault("the target answers only under reset"),
    "reset-stuck": Fault("the reset line is not connected"),
    "flash-bit": Fault("a byte of flash programs as 0", "offset of the byte"),
    "dead-sector": Fault("a sector is worn: it neither erases nor holds", "its number"),
    "flash-busy": Fault("the flash controller is busy for ever"),
    "flash-locked": Fault("the flash controller does not unlock"),
    "protected": Fault("read-out protection is on"),
    "wrong-chip": Fault("the chip is another one", "its id code"),
    "brownout-flashing": Fault("power fails while flashing", "operations until then"),
    "brownout-running": Fault("power fails while running", "bytes sent until then"),
    "clock": Fault("the crystal is another one", "factor, as 0.5"),
    "strict-alignment": Fault("unaligned LDRD, LDM and VLDR fault, as on a chip (slow)"),
    "garbage": Fault("noise on the line at each boot", "bytes"),
    "drop": Fault("bytes to the host are lost", "every Nth"),
    "drop-in": Fault("bytes to the device are lost", "every Nth"),
    "duplicate": Fault("bytes to the host come twice", "every Nth"),
    "corrupt": Fault("bytes to the host are changed", "every Nth"),
    "max-baud": Fault("the line garbles everything above a rate", "baud"),
    "replug-after": Fault("the serial port comes back under another name", "bytes sent until then"),
    "silent": Fault("nothing arrives at the host"),
    "echo": Fault("what the host sends comes back"),
}


#: Positions and counts that may be 0; with any other, 0 would be no defect.
_FROM_ZERO = {"dead-sector", "flash-bit", "unplug-after"}


def parse_fault(text: str) -> tuple[str, float]:
    """(name, number); 0 for a fault without one. Raises UsageError with the names that there are, or the numbers that
    the fault takes."""
    name, equals, value = text.partition("=")
    name = name.strip()
    fault = FAULTS.get(name)
    if fault is None:
        raise UsageError(f"there is no fault {quoted(name)}", remedy=f"faults: {', '.join(sorted(FAULTS))}")
    if not fault.value:
        if equals:
            raise UsageError(f"fault {name} takes no number, here {quoted(value)}", remedy=f"write {name}")
        return name, 0.0
    try:
        number = float(int(value, 0) if "." not in value else float(value))
    except (ValueError, OverflowError) as exc:
        raise UsageError(f"fault {name} needs a number: {fault.value}", remedy=f"write {name}=N") from exc
    if not _fits(name, number):
        wanted = "0 or more" if name in _FROM_ZERO else "positive"
        raise UsageError(f"fault {name}={value}: {fault.value} cannot be that", remedy=f"write {name}=N, N {wanted}")
    return name, number


def _fits(name: str, number: float) -> bool:
    if not math.isfinite(number) or number < 0 or (number == 0 and name not in _FROM_ZERO):
        return False
    return name == "clock" or number.is_integer()
