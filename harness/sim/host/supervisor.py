"""The host board's hardware: the terminal's far end, reset, and what is left after a crash.

Runs as its own process (``python -m harness.sim.host``). Commands come as JSON lines on stdin, each is answered with
one JSON line on stdout: ``{"do": "flash", …}``, ``{"do": "reset"}``. It ends when stdin closes, with everything that
it started.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import pty
import selectors
import signal
import sys
import termios
import traceback
import tty
from pathlib import Path
from typing import Any

from harness.sim.host.firmware import DETAIL_CHARS, HostFirmware, Image
from harness.sim.host.interpreter import TflmLog, tflm_commit
from harness.sim.host.state import RetainedMemory
from harness.wire.messages import FaultKind, FaultRecord, InterpreterKind

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
#: A firmware that dies before it has answered anything is not booted again for ever.
_MAX_IDLE_CRASHES = 5


class Supervisor:
    """Holds the terminal and at most one firmware process."""

    def __init__(self) -> None:
        self._near, self._far = pty.openpty()
        tty.setraw(self._far)  # no echo, no line editing, before anybody opens it
        self.port = os.ttyname(self._far)
        self._memory = RetainedMemory()
        self._log = TflmLog()
        self._image: Image | None = None
        self._child = 0
        self._idle_crashes = 0

    def flash(self, command: dict[str, Any]) -> None:
        """Take a model; boots at the next reset."""
        self.stop()
        self._memory.note_fault(None)
        self._image = Image(
            model=Path(command["model_path"]).read_bytes(),
            build_id=bytes.fromhex(command["build_id"]),
            model_sha256=bytes.fromhex(command["model_sha256"]),
            interpreter=InterpreterKind[command["interpreter"]],
            tflm_commit=tflm_commit(),
        )

    def reset(self) -> None:
        """One fresh boot. What the host sent and nobody read is lost, as on a board."""
        self.stop()
        self._idle_crashes = 0
        termios.tcflush(self._near, termios.TCIOFLUSH)
        termios.tcflush(self._far, termios.TCIOFLUSH)
        self._boot()

    def stop(self) -> None:
        if self._child:
            os.kill(self._child, signal.SIGKILL)
            os.waitpid(self._child, 0)
            self._child = 0

    def _boot(self) -> None:
        if self._image is None:
            raise ValueError("nothing is flashed")
        self._memory.note_boot()
        self._child = os.fork()
        if self._child == 0:
            self._be_the_firmware(self._image)

    def _be_the_firmware(self, image: Image) -> None:
        """In the forked process; never returns."""
        status = 70
        try:
            die_with_parent()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.close(0)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the tool's channel, not the firmware's
            self._log.capture()
            HostFirmware(self._near, image, self._memory, self._log).serve()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)

    def on_child_end(self) -> None:
        """The firmware has ended: after a crash keep a fault record, then boot again."""
        if not self._child:
            return
        pid, status = os.waitpid(self._child, os.WNOHANG)
        if pid == 0:
            return
        self._child = 0
        if status != 0:
            self._idle_crashes += 1
            if not _was_killed(status):
                self._memory.note_fault(self._fault_record(status))
        if self._idle_crashes <= _MAX_IDLE_CRASHES:
            self._boot()

    def _fault_record(self, status: int) -> FaultRecord:
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        kind = FaultKind.HALT if number in {0, signal.SIGABRT} else FaultKind.SIGNAL
        text = self._log.tail(DETAIL_CHARS)
        stage, arena = self._memory.stage, self._memory.arena_bytes
        return FaultRecord(kind, stage, arena, 0, 0, 0, 0, 0, 0, 0, number, text)


def _was_killed(status: int) -> bool:
    """By somebody else (an operator, the kernel out of memory): like a lost supply, it leaves no fault record."""
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) in {signal.SIGKILL, signal.SIGTERM, signal.SIGINT}


def die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent dies, however it dies."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _carry_out(supervisor: Supervisor, line: bytes) -> dict[str, Any]:
    try:
        command = json.loads(line)
        if command["do"] == "flash":
            supervisor.flash(command)
        else:
            supervisor.reset()
    except (OSError, ValueError, KeyError) as exc:
        return {"error": f"{type(exc).__name__}: {exc}"}
    return {"ok": True}


def main() -> int:
    """Serve commands until stdin closes, as it also does when the tool is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the tool's business
    from tflite_micro.python.tflite_micro import runtime  # noqa: F401 - imported once, inherited by every boot

    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    os.set_blocking(wake_read, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    gc.freeze()  # what is here now is shared by every boot: collecting there would copy its pages
    supervisor = Supervisor()
    _say({"port": supervisor.port})
    selector = selectors.DefaultSelector()
    selector.register(0, selectors.EVENT_READ)
    selector.register(wake_read, selectors.EVENT_READ)
    pending = b""
    while True:
        ready = {key.fd for key, _ in selector.select()}
        if wake_read in ready:
            os.read(wake_read, 4096)
            supervisor.on_child_end()
        if 0 not in ready:
            continue
        data = os.read(0, 65536)
        if not data:
            supervisor.stop()
            return 0
        *lines, pending = (pending + data).split(b"\n")
        for line in lines:
            _say(_carry_out(supervisor, line))


def _say(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
