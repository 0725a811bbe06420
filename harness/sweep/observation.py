"""What is looked at after the ample run, in the same boot: recorded allocations, and outputs against a reference."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from harness.deadline import Deadline
from harness.device.bench import TrialRun
from harness.device.client import Device
from harness.inputs import ModelInputs
from harness.model.graph import Model
from harness.record.schema import MeasuredRecord, ReferenceRecord
from harness.reference.comparison import Agreement, Comparison, compare
from harness.reference.litert import ReferenceRun, run_litert
from harness.sweep.evidence import measured_record
from harness.sweep.tflm_reference import run_tflm_on_host
from harness.units import safe_text
from harness.wire import generator
from harness.wire import messages as wire

#: LiteRT gets this long; TFLM's kernels are slower than its, so a model that TFLM ran in time is done much sooner.
_LITERT_TIMEOUT_S = 60.0
_MOST_HOST_BYTES = 2 * 1024 * 1024
_MOST_SERIAL_BYTES = 64 * 1024  # six seconds at 115200 baud


@dataclass(frozen=True, slots=True)
class Observation:
    """``compare`` False leaves the reference out."""

    device: Device
    hello: wire.Hello
    timing: str
    model: Model
    inputs: ModelInputs
    deadline: Deadline
    compare: bool = True

    def take(self, run: TrialRun) -> tuple[MeasuredRecord, ReferenceRecord | None]:
        allocations = None
        if self.hello.can(wire.Capability.ALLOCATIONS):
            allocations = self.device.allocations(self.deadline.sooner(5.0))
        reference = self._reference(run) if self.compare else None
        return measured_record(run, self.hello, self.timing, allocations), reference

    def _reference(self, run: TrialRun) -> ReferenceRecord:
        """LiteRT's outputs; where LiteRT does not run the model, those of TFLM's host interpreter."""
        timeout = min(_LITERT_TIMEOUT_S, self.deadline.remaining_s)
        litert = run_litert(self.model.data, self.inputs.make(), timeout)
        if not litert.refused:
            return self._compared(run, litert)
        refused = safe_text(litert.refused)
        if self.hello.board == "host":  # what was measured is the reference
            return ReferenceRecord(_tflm(self.hello), Agreement.SELF.value, litert_refused=refused)
        host = run_tflm_on_host(self.model, self.inputs, self.deadline.sooner(timeout))
        if host.refused:
            return ReferenceRecord(host.backend, Agreement.UNKNOWN.value, litert_refused=refused)
        return msgspec.structs.replace(self._compared(run, host), litert_refused=refused)

    def _compared(self, run: TrialRun, reference: ReferenceRun) -> ReferenceRecord:
        assert run.report is not None
        if generator.digest(*reference.outputs) == run.report.output_digest:
            comparison = Comparison(Agreement.BIT_EXACT, 0.0, 0.0)
        elif sum(len(data) for data in reference.outputs) > self._most_output_bytes:
            comparison = Comparison(Agreement.DIFFERENT)
        else:
            comparison = compare(self._outputs(), reference.outputs, reference.dtypes)
        return ReferenceRecord(
            reference.backend, comparison.agreement.value, comparison.max_difference, comparison.mean_difference
        )

    @property
    def _most_output_bytes(self) -> int:
        """Outputs that would take more than some seconds to read are compared by their digest only."""
        return _MOST_HOST_BYTES if self.hello.board == "host" else _MOST_SERIAL_BYTES

    def _outputs(self) -> list[bytes]:
        read = self.device.read_object
        chunk = self.hello.chunk_bytes
        return [read(wire.ReadObject.OUTPUT, index, chunk, self.deadline) for index in range(self.hello.output_count)]


def _tflm(hello: wire.Hello) -> str:
    return f"TFLM host interpreter {hello.tflm_commit}"
