"""What is looked at after the ample run, in the same boot: recorded allocations, and outputs against references."""

from __future__ import annotations

from dataclasses import dataclass

from harness.deadline import Deadline
from harness.device.bench import TrialRun
from harness.device.client import Device
from harness.record.schema import MeasuredRecord, ReferenceRecord
from harness.sweep.agreement import OutputComparison
from harness.sweep.evidence import measured_record
from harness.wire import messages as wire


@dataclass(frozen=True, slots=True)
class Observation:
    """``outputs`` None leaves the references out."""

    device: Device
    hello: wire.Hello
    timing: str
    deadline: Deadline
    outputs: OutputComparison | None

    def take(self, run: TrialRun) -> tuple[MeasuredRecord, ReferenceRecord | None]:
        allocations = None
        if self.hello.can(wire.Capability.ALLOCATIONS):
            allocations = self.device.allocations(self.deadline.sooner(5.0))
        reference = self.outputs.take(run) if self.outputs else None
        return measured_record(run, self.hello, self.timing, allocations), reference
