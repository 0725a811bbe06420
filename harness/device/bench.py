"""The bench: one device and its probe, doing one trial per fresh boot."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from harness.deadline import Deadline
from harness.device.client import Device, RebootedError, SilenceError
from harness.device.line_speed import LineSpeed
from harness.device.verdict import Evidence, NoAnswer, judge
from harness.errors import DeviceError, LinkError
from harness.probe.protocol import FlashImage, Probe
from harness.trial import Outcome, Reason, Trial
from harness.units import safe_text
from harness.wire import generator
from harness.wire import messages as wire
from harness.wire.input_plan import InputPlan


@dataclass(frozen=True, slots=True)
class TrialRun:
    """A trial with everything that the device told about it; ``report`` is None where it told nothing."""

    trial: Trial
    report: wire.TrialReport | None = None
    fault: wire.FaultRecord | None = None


#: A request that arrives before a device listens is lost and costs a retransmission: its boot line is waited for, but
#: not for long, as the line itself may be lost.
_BOOT_LINE_S = 0.3
#: Uploads from this size on are worth the change of rate: a third of a second at 115200 baud.
_WORTH_SPEED_BYTES = 4096


def _is_certain(evidence: Evidence) -> bool:
    """Whether one trial is enough. A device that never said that it works may not have heard the request, and one that
    reset without a fault record may have lost its power: what happens only once is no evidence."""
    if isinstance(evidence, NoAnswer):
        return evidence.stage is not None
    return not (isinstance(evidence, wire.FaultRecord) and evidence.kind is wire.FaultKind.NONE)


class Bench:
    """Runs trials. A lost link is tried again on a fresh boot, at most ``link_tries`` times in all, and recorded."""

    def __init__(
        self,
        probe: Probe,
        device: Device,
        image: FlashImage,
        inputs: InputPlan,
        *,
        trial_timeout_s: float,
        boot_timeout_s: float = 5.0,
        link_tries: int = 3,
        symbol_at: Callable[[int], str] = lambda _address: "",
        line_speed: LineSpeed | None = None,
    ) -> None:
        self.probe = probe
        self.device = device
        self.image = image
        self.inputs = inputs
        self.trial_timeout_s = trial_timeout_s
        self._boot_timeout_s = boot_timeout_s
        self._link_tries = link_tries
        self._symbol_at = symbol_at
        self._line_speed = line_speed

    def boot(self, deadline: Deadline) -> wire.Hello:
        """One fresh boot of the flashed image; DeviceError when another image answers."""
        if self._line_speed is not None:
            self._line_speed.lower()
        self.probe.reset(deadline)
        self.device.forget()
        self.device.await_boot_line(deadline.sooner(_BOOT_LINE_S))
        hello = self.device.hello(deadline.sooner(self._boot_timeout_s))
        if hello.build_id.hex() != self.image.build_id:
            raise DeviceError(
                f"the device runs build {hello.build_id.hex()}, flashed was {self.image.build_id}",
                remedy="reset the board and run again; if it stays, flash with --force-flash",
                code="device.wrong_build",
            )
        if hello.model_sha256.hex() != self.image.model_sha256:
            raise DeviceError(
                f"the device runs model {hello.model_sha256.hex()[:16]}…, not {self.image.model_sha256[:16]}…",
                remedy="flash again",
                code="device.wrong_model",
            )
        return hello

    def run(self, arena_bytes: int, ample_digest: int | None, deadline: Deadline) -> TrialRun:
        """One trial; ``ample_digest`` None for the ample run. Link errors are an outcome here, not an exception."""
        started = time.monotonic()
        lost = ""
        for attempt in range(1, self._link_tries + 1):
            evidence = self._attempt(arena_bytes, deadline)
            if not isinstance(evidence, str):
                if attempt > 1 or _is_certain(evidence):
                    return self._judged(evidence, arena_bytes, ample_digest, time.monotonic() - started, attempt)
            else:
                lost = evidence
            if deadline.passed:
                break
        seconds = time.monotonic() - started
        detail = safe_text(lost)
        return TrialRun(
            Trial(arena_bytes, Outcome.ERROR, Reason.LINK_LOST, detail, seconds=seconds, attempts=self._link_tries)
        )

    def _attempt(self, arena_bytes: int, deadline: Deadline) -> Evidence | str:
        """Evidence, or what was wrong with the link."""
        try:
            return self._try(arena_bytes, deadline)
        except (LinkError, RebootedError) as exc:  # a reboot before the trial began says nothing about it
            return exc.message

    def _try(self, arena_bytes: int, deadline: Deadline) -> Evidence:
        """Evidence of one trial; LinkError when there is none."""
        hello = self.boot(deadline)
        if hello.fault_pending:  # left by an earlier trial: not this one's
            self.device.fault(deadline.sooner(self._boot_timeout_s))
        self.set_inputs(hello, deadline)
        trial_deadline = deadline.sooner(self.trial_timeout_s)
        started = time.monotonic()
        try:
            return self.device.trial(arena_bytes, trial_deadline)
        except RebootedError:
            return self.fault_record(deadline)
        except SilenceError as silence:
            seconds = time.monotonic() - started
            self.boot(Deadline.after(self._boot_timeout_s))  # LinkError here: the link is dead, not the model
            return NoAnswer(round(seconds, 1), silence.stage)

    def fault_record(self, deadline: Deadline) -> wire.FaultRecord:
        """What the device kept of its last fault, in a new session; of kind NONE where it kept nothing."""
        soon = deadline.sooner(self._boot_timeout_s)
        hello = self.device.hello(soon)
        if hello.fault_pending:
            return self.device.fault(soon)
        return wire.FaultRecord(wire.FaultKind.NONE, wire.Stage.UNKNOWN, 0, 0, 0, 0, 0, 0, 0, 0, 0, "")

    def set_inputs(self, hello: wire.Hello, deadline: Deadline, others: InputPlan | None = None) -> None:
        """Tell the device its inputs (the bench's own, or others), and upload those that are given: fast, where there
        is much of it."""
        inputs = others or self.inputs
        much = sum(len(data) for _, data in inputs.staged) >= _WORTH_SPEED_BYTES
        if self._line_speed is not None and others is None and much:
            self._line_speed.raise_rate(self.device, hello, deadline)
        for setting in inputs.settings:
            self.device.set_input(setting, deadline)
        for index, data in inputs.staged:
            held = self.device.write_input(index, data, hello.chunk_bytes, deadline)
            if held != generator.digest(data):
                raise LinkError(f"input {index} arrived with other bytes than were sent", remedy="run again")

    def _judged(
        self, evidence: Evidence, arena_bytes: int, ample_digest: int | None, seconds: float, attempts: int
    ) -> TrialRun:
        verdict = judge(evidence, arena_bytes, ample_digest)
        report = evidence if isinstance(evidence, wire.TrialReport) else None
        used = report.used_bytes if report and report.used_bytes != wire.UNKNOWN_U32 else None
        trial = Trial(
            arena_bytes,
            verdict.outcome,
            verdict.reason,
            verdict.detail + (self.where(evidence) if isinstance(evidence, wire.FaultRecord) else ""),
            used_bytes=used if verdict.outcome is Outcome.WORKS else None,
            output_digest=f"{report.output_digest:016x}" if report and verdict.outcome is Outcome.WORKS else "",
            seconds=round(seconds, 4),
            attempts=attempts,
        )
        return TrialRun(trial, report, evidence if isinstance(evidence, wire.FaultRecord) else None)

    def where(self, fault: wire.FaultRecord) -> str:
        """``, in function``: the one that a fault record's PC is in; empty where it is not known."""
        name = self._symbol_at(fault.pc) if fault.pc else ""
        return f", in {safe_text(name)}" if name else ""
