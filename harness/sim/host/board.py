"""The host board as the tool sees it: a probe (flash, reset) and a serial port to open."""

from __future__ import annotations

import importlib.util
import json
import os
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

from harness.deadline import Deadline
from harness.errors import MissingDependencyError, ProbeError
from harness.probe.protocol import FlashImage

#: Importing TFLM and numpy takes a fraction of a second; a loaded machine may need many.
_START_TIMEOUT_S = 60.0


class HostBoard:
    """Implements ``Probe``. ``port`` is the device that pyserial opens. Close it: it owns a child process."""

    def __init__(self, *, interpreter: str = "RECORDING") -> None:
        require_tflm()
        self._interpreter = interpreter
        self._process = subprocess.Popen(
            [sys.executable, "-m", "harness.sim.host"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # numpy's threads would be forked with every boot
        )
        try:
            self.port: str = self._answer(Deadline.after(_START_TIMEOUT_S))["port"]
        except BaseException:
            self.close()
            raise

    def flash(self, image: FlashImage, deadline: Deadline) -> int:
        """Hand over the model file. It is read here and now; a change of the file later has no effect."""
        self._command(
            {
                "do": "flash",
                "model_path": str(Path(image.model_path).resolve()),
                "build_id": image.build_id,
                "model_sha256": image.model_sha256,
                "interpreter": image.interpreter.upper() or self._interpreter,
            },
            deadline,
        )
        return 1

    def reset(self, deadline: Deadline) -> None:
        """Kill the firmware process, however it hangs, and boot a fresh one."""
        self._command({"do": "reset"}, deadline)

    def read_memory(self, address: int, size: int, deadline: Deadline) -> bytes:  # noqa: ARG002
        raise ProbeError("the host board has no memory to read by address", code="probe.unsupported")

    def close(self) -> None:
        """End the child process and everything that it started."""
        process = self._process
        if process.stdin:
            process.stdin.close()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for stream in (process.stdout, process.stderr):
            if stream:
                stream.close()

    def _command(self, command: dict[str, Any], deadline: Deadline) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(command).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as exc:
            raise self._died() from exc
        answer = self._answer(deadline)
        if "error" in answer:
            raise ProbeError(
                f"the host board cannot {command['do']}: {answer['error']}", remedy="check that the file is still there"
            )

    def _answer(self, deadline: Deadline) -> dict[str, Any]:
        """One line from the child, no later than the deadline."""
        stdout = self._process.stdout
        assert stdout is not None
        line = b""
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([stdout], [], [], min(deadline.remaining_s, _START_TIMEOUT_S))
            if not ready:
                raise ProbeError(
                    "the host board's process did not answer in time",
                    remedy="give it more: --timeout, or run again when the computer is less busy",
                    code="probe.timeout",
                )
            piece = os.read(stdout.fileno(), 65536)
            if not piece:
                raise self._died()
            line += piece
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _died(self) -> ProbeError:
        self._process.kill()
        _, err = self._process.communicate()
        last = err.decode("utf-8", "replace").strip().splitlines()[-1:] or ["it said nothing"]
        return ProbeError(
            f"the host board's process ended with {self._process.returncode}: {last[0]}",
            remedy="harness doctor tells whether tflite-micro works here",
            code="probe.died",
        )


def require_tflm() -> None:
    """Raises MissingDependencyError where the host board cannot be: it needs Linux and the tflite-micro package."""
    if not sys.platform.startswith("linux"):
        raise MissingDependencyError(
            f"the host board runs on Linux only (tflite-micro has no wheels for {sys.platform})",
            remedy="plan with harness plan, or sweep on a real board",
        )
    if importlib.util.find_spec("tflite_micro") is None:
        raise MissingDependencyError(
            "the package tflite-micro is not installed",
            remedy="pip install tflite-micro (wheels exist for Linux x86-64)",
        )
