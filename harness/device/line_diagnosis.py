"""Why a device is silent: does it answer at another rate, and what does that say about its clock?"""

from __future__ import annotations

from typing import Protocol

from harness.deadline import Deadline
from harness.device.client import Device
from harness.errors import DeviceError, HarnessError, LinkError
from harness.probe.protocol import Probe

#: Rates that boards are found at, besides half and double of the right one.
COMMON_BAUDS = (9600, 115200, 921600)
_LISTEN_S = 1.5


class Line(Protocol):
    """A link whose rate can be changed from this side."""

    @property
    def baud(self) -> int: ...

    def set_baud(self, baud: int) -> None: ...


def explain_silence(probe: Probe, line: Line, device: Device, deadline: Deadline) -> HarnessError | None:
    """Boot the device at other rates until it answers; None when it does at none of them.

    Leaves the line at its own rate. A clock of half the speed halves the rate: the crystal or the PLL is not what the
    firmware was built for (an ST-Link whose 8 MHz output is off, another HSE value).
    """
    nominal = line.baud
    try:
        for baud in dict.fromkeys((nominal // 2, nominal * 2, *COMMON_BAUDS)):
            if baud == nominal or deadline.passed:
                continue
            line.set_baud(baud)
            probe.reset(deadline)
            device.forget()
            try:
                device.hello(deadline.sooner(_LISTEN_S))
            except (LinkError, DeviceError):
                continue
            return _explanation(nominal, baud)
    finally:
        line.set_baud(nominal)
    return None


def _explanation(nominal: int, answered: int) -> HarnessError:
    factor = answered / nominal
    if factor in (0.5, 2.0):
        word = "half" if factor == 0.5 else "twice"
        return DeviceError(
            f"the device answers at {answered} baud where {nominal} were set up: its clock runs at {word} the speed "
            f"that the firmware was built for (×{factor:g})",
            remedy="check the board file's clock: input_hz and pll against what is soldered (HSE, ST-Link MCO)",
            code="device.wrong_clock",
        )
    return LinkError(
        f"the device answers at {answered} baud, the board file says {nominal}",
        remedy=f"write baud: {answered} in the board file (uart), or flash the firmware anew",
        code="link.wrong_baud",
    )
