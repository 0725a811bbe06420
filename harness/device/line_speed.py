"""The rate of a serial line: raised after the hello where it pays, back down where it does not hold."""

from __future__ import annotations

import logging

from harness.deadline import Deadline
from harness.device.client import Device
from harness.device.line_diagnosis import Line
from harness.errors import DeviceError, LinkError
from harness.wire import messages as wire

log = logging.getLogger(__name__)

#: Rates above the usual 115200 that USB serial bridges know, best first.
FAST_BAUDS = (2_000_000, 921_600, 460_800, 230_400)
#: A rate that the divider misses by more than this is not tried.
_DIVIDER_TOLERANCE = 0.02
_PROBE_BYTES = bytes(range(64)) + b"\x00\xff\x55\xaa" * 8
_PINGS = 3
_RETURN_S = 10.0


class LineSpeed:
    """``base_baud`` is the rate that every boot starts at. A rate that failed once is not tried again: one at which an
    answer takes longer than ``ping_s``, or the device hears nothing for ``confirm_ms``."""

    def __init__(
        self, line: Line, base_baud: int, max_baud: int, *, ping_s: float = 0.4, confirm_ms: int = 500
    ) -> None:
        self._line = line
        self.base_baud = base_baud
        self._ping_s = ping_s
        self._confirm_ms = confirm_ms
        self._candidates = [baud for baud in FAST_BAUDS if base_baud < baud <= max_baud]

    def lower(self) -> None:
        """To the rate of a fresh boot. Called before a reset."""
        if self._line.baud != self.base_baud:
            self._line.set_baud(self.base_baud)

    def raise_rate(self, device: Device, hello: wire.Hello, deadline: Deadline) -> int:
        """The fastest rate that holds, in baud; both sides are at it afterwards."""
        if not hello.can(wire.Capability.BAUD):
            return self.base_baud
        for baud in tuple(self._candidates):
            if self._try(device, baud, deadline):
                return baud
            self._candidates.remove(baud)
            log.info("%d baud does not hold", baud)
        return self.base_baud

    def _try(self, device: Device, baud: int, deadline: Deadline) -> bool:
        try:
            given = device.request_baud(baud, deadline.sooner(2.0), confirm_ms=self._confirm_ms)
        except DeviceError:
            return False  # refused: the divider cannot make it
        self._line.set_baud(baud)
        try:
            for _ in range(_PINGS if abs(given - baud) <= _DIVIDER_TOLERANCE * baud else 0):
                device.ping(_PROBE_BYTES, deadline.sooner(self._ping_s))
            if abs(given - baud) <= _DIVIDER_TOLERANCE * baud:
                return True
        except (LinkError, DeviceError):
            pass
        self._line.set_baud(self.base_baud)
        self._await_return(device, deadline.sooner(self._confirm_ms / 1000 + _RETURN_S))
        return False

    @staticmethod
    def _await_return(device: Device, deadline: Deadline) -> None:
        """The device goes back by itself when it hears nothing valid."""
        while not LineSpeed._answers(device, deadline):
            pass

    @staticmethod
    def _answers(device: Device, deadline: Deadline) -> bool:
        """Raises LinkError when the deadline has passed."""
        try:
            device.ping(b"back", deadline)
        except LinkError:
            if deadline.passed:
                raise
            return False
        return True
