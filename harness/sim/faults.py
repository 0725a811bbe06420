"""Defects to put into a twin: what goes wrong on real rigs, on purpose.

Serial ones are kept by the wire, flash ones by the flash array, those of the probe here; `injection` gives them names.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.sim.device import NoAnswerError


class ProbeFaultError(Exception):
    """The probe itself fails, as pyOCD's drivers say it."""

    def __init__(self, text: str, *, is_unplugged: bool = False) -> None:
        super().__init__(text)
        self.is_unplugged = is_unplugged


@dataclass(slots=True)
class ProbeFaults:
    """Defects of the probe and its wires."""

    busy: bool = False
    old_firmware: bool = False
    unplug_after_transfers: int = -1
    #: The target answers only at or below this clock; 0: at any.
    max_clock_hz: int = 0
    #: The target answers only while or after the reset line is used.
    needs_reset_line: bool = False
    reset_stuck: bool = False
    _clock_hz: float = 1e6
    _reset_used: bool = False
    _unplugged: bool = False

    def on_open(self) -> None:
        if self._unplugged:
            raise ProbeFaultError("No ST-Link device found: it was unplugged", is_unplugged=True)
        if self.busy:
            raise ProbeFaultError("USB Error: [Errno 16] Resource busy")
        if self.old_firmware:
            raise ProbeFaultError("STLink uses an unsupported, older firmware version, please update it: V2J21S4")

    def on_clock(self, frequency: float) -> None:
        self._clock_hz = frequency

    def drives_reset(self, asserted: bool) -> bool:
        """Whether the probe's reset pin reaches the chip."""
        if not self.reset_stuck:
            self._reset_used = self._reset_used or asserted
        return not self.reset_stuck

    def on_transfer(self) -> None:
        if self.unplug_after_transfers >= 0:
            self.unplug_after_transfers -= 1
            if self.unplug_after_transfers < 0:
                self._unplugged = True
        if self._unplugged:
            raise ProbeFaultError(
                "USB Error: [Errno 19] No such device (it may have been disconnected)", is_unplugged=True
            )
        if self.max_clock_hz and self._clock_hz > self.max_clock_hz:
            raise NoAnswerError("no ACK received")
        if self.needs_reset_line and not self._reset_used:
            raise NoAnswerError("no ACK received")
