"""A digital twin: an emulated board that runs in a thread of its own, with a debugger and a serial port attached.

The engine's thread and debuggers take turns: a debugger that wants in cuts the running slice short and gets the next
turn. Where the firmware waits (asleep, or asking the UART in vain) the thread waits with it, so that a waiting twin
costs next to nothing.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterator

from harness.board.record import HardwareBoard
from harness.interrupts import interrupts_held
from harness.sim.chip import Chip
from harness.sim.cortex_m import State
from harness.sim.device import NoAnswerError
from harness.sim.family import build_chip
from harness.sim.faults import ProbeFaults
from harness.sim.wire import Endpoint, PseudoTerminal, Wire

log = logging.getLogger(__name__)

_SLICE = 200_000
_IDLE_WAIT_S = 0.002
_GRACE_S = 0.001
_JOIN_TIMEOUT_S = 5.0


class Twin:
    """One emulated board under power."""

    def __init__(self, board: HardwareBoard, *, endpoint: Endpoint | None = None, pace: bool = False) -> None:
        self.board = board
        self.endpoint = endpoint if endpoint is not None else PseudoTerminal()
        self.wire = Wire(self.endpoint, paced=pace)
        self.chip: Chip = build_chip(board, self.wire)
        self.pace = pace
        self.boots = 0
        self.faults = ProbeFaults()
        #: An error of the model itself; the twin stands still after it.
        self.failure: Exception | None = None
        self._condition = threading.Condition()
        self._in_slice = False
        self._waiting = 0
        self._debugger = threading.RLock()
        self._depth = 0
        self._stopped = False
        self._closed = False
        self._idling = False
        self._grace_until = 0.0
        self._powered = False
        self._next_cause = "software"
        self._busy_until = 0.0
        self._idle_since: float | None = None
        self._slept_since: float | None = None
        core = self.chip.core
        core.on_system_reset = self._system_reset
        self._connect_watchdog()
        self.chip.controller.time_busy = self._time_busy
        self._thread = threading.Thread(target=self._run, name=f"twin {board.base_name}", daemon=True)
        self._thread.start()
        self.power_on()

    # --- turns ------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def turn(self) -> Iterator[Chip]:
        """Exclusive use of the chip, between two of its instructions. May be nested. Ctrl-C waits until it has ended:
        in the midst of an access it would leave half of one, and in a callback of unicorn's it would be lost."""
        with interrupts_held(), self._debugger:
            if self._closed:
                raise NoAnswerError("the twin was closed")
            if self._depth == 0:
                self._enter_turn()
            self._depth += 1
            try:
                yield self.chip
            finally:
                self._depth -= 1
                if self._depth == 0:
                    self._leave_turn()

    def _enter_turn(self) -> None:
        with self._condition:
            self._waiting += 1
            while self._in_slice:
                self.chip.core.engine.cut_from_outside()
                self._condition.wait(0.0005)

    def _leave_turn(self) -> None:
        with self._condition:
            self._waiting -= 1
            # A debugger that has just let the core go will ask for it in a moment.
            self._grace_until = time.monotonic() + _GRACE_S
            self._condition.notify_all()
        if self._idling:
            self.endpoint.wake()

    def run_until_stopped(self, seconds: float) -> None:
        """For a debugger that polls: run the core in its own thread, which saves two changes of thread per flash page.

        Ends when the core does not run any more, or the time is over.
        """
        deadline = time.monotonic() + seconds
        with self.turn() as chip:
            while chip.core.state is State.RUNNING and time.monotonic() < deadline:
                self._advance()

    # --- power and resets -------------------------------------------------------------------------------------

    @property
    def powered(self) -> bool:
        return self._powered

    def power_on(self) -> None:
        with self.turn() as chip:
            for ram in chip.rams:
                ram.scramble()
            chip.core.dhcsr = chip.core.demcr = 0
            chip.cause.flags = {"power", "pin", "brownout"}
            self._powered = True
            self._boot()

    def power_off(self) -> None:
        with self.turn() as chip:
            self._powered = False
            chip.core.hold_in_reset()
            chip.reset_devices()

    def brown_out(self) -> None:
        """The supply breaks down and comes back."""
        self.power_off()
        self.power_on()

    def lose_power(self) -> None:
        """From within a slice: the supply breaks down and does not come back."""
        self._powered = False
        self.chip.core.hold_in_reset()
        self.chip.core.end_slice()

    def request_power_cycle(self) -> None:
        """From within a slice: the supply dips after this instruction."""
        self.request_reset("brownout")

    def assert_reset(self, asserted: bool) -> None:
        """The NRST line."""
        with self.turn() as chip:
            if asserted:
                chip.core.hold_in_reset()
                chip.reset_devices()
            elif chip.core.state is State.IN_RESET and self._powered:
                chip.cause.flags.add("pin")
                self._boot()

    def request_reset(self, cause: str) -> None:
        self._next_cause = cause
        self.chip.core.reset_requested = True
        self.chip.core.end_slice()

    def _system_reset(self) -> None:
        cause, self._next_cause = self._next_cause, "software"
        if cause == "brownout":
            for ram in self.chip.rams:
                ram.scramble()
        self.chip.cause.flags |= {cause, "pin"} if self.board.family.value.startswith("stm32") else {cause}
        self._boot()

    def _boot(self) -> None:
        self.boots += 1
        self.chip.reset_devices()
        self.wire.board_reset()
        self.chip.core.reset()

    def _connect_watchdog(self) -> None:
        for device in self.chip.bus.devices():
            if hasattr(device, "on_expiry"):
                device.on_expiry = lambda: self.request_reset("watchdog")

    # --- the engine's thread ----------------------------------------------------------------------------------

    def _run(self) -> None:
        while self._begin_slice():
            idle_s = 0.0
            try:
                idle_s = self._advance()
            except Exception as exc:  # the thread must not die in silence
                log.exception("the twin of %s broke", self.board.name)
                self.failure = exc
                self.chip.core.hold_in_reset()
            finally:
                with self._condition:
                    self._in_slice = False
                    self._condition.notify_all()
            if idle_s:
                self._idling = True
                self.endpoint.wait(idle_s)
                self._idling = False

    def _begin_slice(self) -> bool:
        """Wait for the engine's turn; False when the twin is closed."""
        with self._condition:
            while not self._stopped:
                ready = not self._waiting and self.chip.core.state not in (State.HALTED, State.IN_RESET)
                grace = self._grace_until - time.monotonic()
                if ready and grace <= 0:
                    self._in_slice = True
                    return True
                self._condition.wait(grace if ready else 1.0)
        return False

    def _advance(self) -> float:
        """One slice; returns how long the firmware can be left waiting, in seconds."""
        core, uart = self.chip.core, self.chip.uart
        self._catch_up()
        uart.poll_line()
        started, before = time.monotonic(), core.cycles
        core.run(_SLICE)
        self.wire.flush()
        if core.state is State.RUNNING:
            if self.pace:
                return self._pace(started, core.cycles - before)
            if uart.is_idle:
                self._idle_since = time.monotonic()
                return _IDLE_WAIT_S
            return 0.0
        if core.state in (State.SLEEPING, State.LOCKUP):
            return self._sleep()
        return 0.0

    def _catch_up(self) -> None:
        """While the firmware waited for the host, time passed on its clock too: its time-outs are in real time then."""
        since, self._idle_since = self._idle_since, None
        if since is not None:
            core = self.chip.core
            now = core.cycles + int((time.monotonic() - since) * self.chip.hclk_hz())
            due = core.events.next_at()
            core.skip_to(now if due is None else min(now, due))

    def _pace(self, started: float, cycles: int) -> float:
        """The time by which the slice was faster than the board and its line would have been."""
        ahead = cycles / self.chip.hclk_hz() - (time.monotonic() - started)
        ahead += max(0.0, self._busy_until - time.monotonic())
        return max(0.0, ahead, self.wire.busy_s())

    def _sleep(self) -> float:
        """Asleep or locked up: time passes as on the wall, up to the next event."""
        core = self.chip.core
        now = time.monotonic()
        slept_since, self._slept_since = self._slept_since, now
        hclk = self.chip.hclk_hz()
        due = core.events.next_at()
        if slept_since is not None and now - slept_since < 0.1:
            passed = int((now - slept_since) * hclk)
            core.skip_to(core.cycles + passed if due is None else min(core.cycles + passed, due))
        if core.state is State.LOCKUP:
            core.events.run_due(core.cycles)
            if core.reset_requested:
                self._system_reset()
                return 0.0
        waits = [0.02]
        if due is not None:
            waits.append(max(0.0, (due - core.cycles) / hclk))
        line = self.wire.next_s()
        if line is not None:
            waits.append(line)
        return min(waits)

    def _time_busy(self, operation: str, size: int) -> None:
        """How long a flash operation takes; only a paced twin cares. Typical figures of DS10916 and PS 4.3.8."""
        if not self.pace:
            return
        per_byte = {"program": 4e-6, "erase": 8e-6, "chip erase": 8e-6}[operation]
        self._busy_until = max(self._busy_until, time.monotonic()) + per_byte * size
        if operation != "program":
            self.chip.core.end_slice()

    # --- the end ----------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Stop the thread, close the port. A closed twin cannot be used again. The engine goes in a turn of its own,
        not under the feet of a debugger in another thread (a probe server's)."""
        with self._condition:
            self._stopped = True
            self.chip.core.engine.cut_from_outside()
            self._condition.notify_all()
        self.endpoint.wake()
        self._thread.join(_JOIN_TIMEOUT_S)
        has_turn = self._debugger.acquire(timeout=_JOIN_TIMEOUT_S)
        self._closed = True
        self.endpoint.close()
        if has_turn:
            if self._depth == 0 and not self._thread.is_alive():
                self.chip.core.engine.close()
            self._debugger.release()
