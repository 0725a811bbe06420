"""One rig's worker: a process of its own, so that a crash of a driver, or a wait without end, is one rig's trouble.

Reads orders on stdin, one JSON line each, and ends when stdin does: a killed scheduler leaves no worker behind.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from pathlib import Path
from typing import BinaryIO

import msgspec

from harness.board.catalogue import load_board
from harness.firmware.registry import VARIABLE, Registry
from harness.inputs import InputChoice
from harness.lab.order import Message, Order, Result, Told
from harness.lab.protocol_lines import protocol_tail
from harness.model.reader import read_model
from harness.plan.arena import plan_arena
from harness.record.schema import ErrorRecord
from harness.sweep.flow import keep_record, sweep_model
from harness.sweep.image import firmware_for
from harness.sweep.request import SweepRequest
from harness.trial import Trial
from harness.units import format_bytes


class _Reporter:
    """Implements ``Progress``: every step is a line to the scheduler."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out

    def stage(self, text: str) -> None:
        self.send(Told(text=text))

    def trial(self, trial: Trial, number: int) -> None:
        reason = f" ({trial.reason.value})" if trial.reason else ""
        self.send(Told(text=f"trial {number}: {format_bytes(trial.arena_bytes)} B {trial.outcome.value}{reason}"))

    def device_text(self, text: str) -> None:
        pass

    def send(self, message: Message) -> None:
        self._out.write(msgspec.json.encode(message) + b"\n")
        self._out.flush()


def request_of(order: Order) -> SweepRequest:
    results = Path(order.results)
    return SweepRequest(
        model_path=Path(order.model_path),
        board=order.board,
        boards_dirs=tuple(Path(folder) for folder in order.boards_dirs),
        kernels=order.kernels or (_only_kernels() if order.tflm else None),
        inputs=InputChoice(order.seed, order.fill, tuple(Path(name) for name in order.inputs)),
        step_bytes=order.step_bytes,
        timeout_s=order.timeout_s,
        trial_timeout_s=order.trial_timeout_s,
        results=results,
        transcript=results / "transcript.jsonl",
        rig=None if order.board == "host" else order.rig,
        interpreter=order.interpreter or None,
        runs=order.runs,
        certify=order.certify,
        tolerance_steps=order.tolerance_steps,
    )


def build_only(request: SweepRequest, started: float) -> Result:
    """The image as the sweep of the same request will want it. Raises what the sweep will tell."""
    model = read_model(request.model_path)
    firmware = firmware_for(load_board(request.board, request.boards_dirs), request)
    firmware.program(model, plan_arena(model, firmware.target).min_exact_bytes)
    return Result(exit_code=0, seconds=round(time.monotonic() - started, 3))


def _only_kernels() -> str | None:
    """The kernel set of the libraries that are there, where they have one: what a library of an upgrade run is for."""
    kernels = {library.kernels for library in Registry().libraries()}
    return kernels.pop() if len(kernels) == 1 else None


def carry_out(order: Order, reporter: _Reporter) -> Result:
    """Never raises: what goes wrong is in the result."""
    started = time.monotonic()
    if order.tflm:
        os.environ[VARIABLE] = order.tflm
    try:
        request = request_of(order)
        if order.build_only:
            return build_only(request, started)
        draft = sweep_model(request, reporter)
        record = keep_record(draft)
    except Exception as exc:
        error = ErrorRecord("worker.internal", f"{type(exc).__name__}: {exc}", "report it: this is a bug of harness")
        return Result(exit_code=1, seconds=time.monotonic() - started, error=error)
    assert request.transcript is not None
    tail = protocol_tail(request.transcript)
    if record.status == "ok":
        request.transcript.unlink(missing_ok=True)
    return Result(
        exit_code=int(draft.exit_code),
        seconds=round(time.monotonic() - started, 3),
        record=record,
        error=record.error,
        record_path=record.record_path or "",
        protocol_tail=tail,
    )


def _read_orders(orders: queue.SimpleQueue[bytes]) -> None:
    for line in sys.stdin.buffer:
        orders.put(line)
    os._exit(0)  # nobody waits for what is being done now; the journal has what is finished


def main() -> None:
    """Carries out orders until stdin ends."""
    # what a library prints must not get between the messages
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    orders: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read_orders, args=(orders,), daemon=True).start()
    reporter = _Reporter(out)
    while True:
        order = msgspec.json.decode(orders.get(), type=Order)
        reporter.send(carry_out(order, reporter))


if __name__ == "__main__":
    main()
