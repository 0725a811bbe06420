"""The scheduler's side of a rig's worker process."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Protocol

import msgspec

from harness.deadline import Deadline
from harness.errors import ExitCode
from harness.lab.order import Message, Order, Result, Told
from harness.record.schema import ErrorRecord
from harness.units import safe_text

#: A sweep ends itself at its own timeout; a worker that has said nothing so long after it is stuck.
GRACE_S = 60.0
_POLL_S = 0.2


class RigWorker(Protocol):
    """Carries out one order at a time. Never raises for what goes wrong on the rig: that is a result."""

    def run(self, order: Order, on_text: Callable[[str], None]) -> Result: ...

    def stop(self) -> None:
        """End at once, from another thread too."""


class ProcessWorker:
    """Implements ``RigWorker``: a process that lives from order to order, and is started anew when it has died."""

    def __init__(self, name: str, grace_s: float = GRACE_S) -> None:
        self.name = name
        self._grace_s = grace_s
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the worker
        self._stopped = False
        self._buffer = b""

    def run(self, order: Order, on_text: Callable[[str], None]) -> Result:
        started = time.monotonic()
        deadline = Deadline.after(order.timeout_s + self._grace_s)
        try:
            process = self._start()
            assert process.stdin is not None
            process.stdin.write(msgspec.json.encode(order) + b"\n")
            process.stdin.flush()
            while True:
                message = self._message(process, deadline)
                if isinstance(message, Result):
                    return message
                on_text(message.text)
        except (OSError, EOFError, TimeoutError, msgspec.MsgspecError) as exc:
            return self._failed(exc, time.monotonic() - started)

    def stop(self) -> None:
        self._stopped = True
        self._kill()

    def close(self) -> None:
        self._kill()
        self._stderr.close()

    def _start(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._buffer = b""
            self._process = subprocess.Popen(
                [sys.executable, "-m", "harness.lab.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                start_new_session=True,
            )
        return self._process

    def _message(self, process: subprocess.Popen[bytes], deadline: Deadline) -> Message:
        """The next line; EOFError when the worker died, TimeoutError when it is stuck."""
        assert process.stdout is not None
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([process.stdout], [], [], min(_POLL_S, deadline.remaining_s))
            if ready:
                piece = os.read(process.stdout.fileno(), 1 << 16)
                if not piece:
                    raise EOFError
                self._buffer += piece
            elif deadline.passed:
                raise TimeoutError
        line, _, self._buffer = self._buffer.partition(b"\n")
        return msgspec.json.decode(line, type=Told | Result)

    def _failed(self, exc: Exception, seconds: float) -> Result:
        code = self._kill()
        if self._stopped:
            error = ErrorRecord("worker.stopped", "the run was stopped")
        elif isinstance(exc, TimeoutError):
            error = ErrorRecord("worker.stuck", f"the worker of rig {self.name} did not answer", "look at the rig")
        else:
            text = f"the worker of rig {self.name} ended with {code}: {self._last_words()}"
            error = ErrorRecord("worker.died", text, "run again; if it stays, look at the rig's driver")
        return Result(exit_code=int(ExitCode.LINK), seconds=round(seconds, 3), error=error)

    def _last_words(self) -> str:
        with contextlib.suppress(ValueError, OSError):
            size = self._stderr.seek(0, os.SEEK_END)
            self._stderr.seek(max(0, size - 4096))
            lines = self._stderr.read().decode("utf-8", "replace").strip().splitlines()
            return safe_text(lines[-1]) if lines else "it said nothing"
        return "it said nothing"

    def _kill(self) -> int | None:
        process, self._process = self._process, None
        if process is None:
            return None
        died = process.poll()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream:
                with contextlib.suppress(OSError):
                    stream.close()
        return process.returncode if died is None else died
