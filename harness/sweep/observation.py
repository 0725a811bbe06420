"""What is looked at after the ample run, in the same boot: recorded allocations, and outputs against a reference."""

from __future__ import annotations

from dataclasses import dataclass

from harness.deadline import Deadline
from harness.device.bench import TrialRun
from harness.device.client import Device
from harness.inputs import ModelInputs
from harness.model.graph import Model
from harness.record.schema import MeasuredRecord, ReferenceRecord
from harness.reference.comparison import Agreement, Comparison, compare
from harness.reference.litert import run_litert
from harness.sweep.evidence import measured_record
from harness.units import safe_text
from harness.wire import generator
from harness.wire import messages as wire

#: LiteRT gets this long; TFLM's kernels are slower than its, so a model that TFLM ran in time is done much sooner.
_LITERT_TIMEOUT_S = 60.0


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
        assert run.report is not None
        timeout = min(_LITERT_TIMEOUT_S, self.deadline.remaining_s)
        litert = run_litert(self.model.data, self.inputs.make(), timeout)
        if litert.refused or not litert.backend:
            return self._tflm_as_reference(safe_text(litert.refused or "not installed"))
        if generator.digest(*litert.outputs) == run.report.output_digest:
            comparison = Comparison(Agreement.BIT_EXACT, 0.0, 0.0)
        else:
            comparison = compare(self._outputs(), litert.outputs, litert.dtypes)
        return ReferenceRecord(
            litert.backend, comparison.agreement.value, comparison.max_difference, comparison.mean_difference
        )

    def _tflm_as_reference(self, refused: str) -> ReferenceRecord:
        """LiteRT does not run the model: TFLM's host interpreter is the reference. On the host board that is itself."""
        backend = f"TFLM host interpreter {self.hello.tflm_commit}"
        agreement = Agreement.SELF if self.hello.board == "host" else Agreement.UNKNOWN
        return ReferenceRecord(backend, agreement.value, litert_refused=refused)

    def _outputs(self) -> list[bytes]:
        read = self.device.read_object
        chunk = self.hello.chunk_bytes
        return [read(wire.ReadObject.OUTPUT, index, chunk, self.deadline) for index in range(self.hello.output_count)]
