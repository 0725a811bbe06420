"""Outputs of a device against those of LiteRT and of TFLM's host interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import msgspec

from harness.deadline import Deadline
from harness.device.bench import Bench, TrialRun
from harness.errors import HarnessError
from harness.model.graph import Model
from harness.record.schema import ReferenceRecord
from harness.reference.comparison import INTEGER_TOLERANCE_STEPS, Agreement, Comparison, compare, worst_of
from harness.reference.litert import ReferenceRun, run_litert
from harness.sweep.tflm_reference import run_tflm_on_host
from harness.sweep.vectors import Vector, read_outputs, run_vector, vectors_of_each
from harness.units import safe_text
from harness.wire import generator
from harness.wire import messages as wire

#: LiteRT gets this long; TFLM's kernels are slower than its, so a model that TFLM ran in time is done much sooner.
_LITERT_TIMEOUT_S = 300.0
_MOST_HOST_BYTES = 2 * 1024 * 1024
_MOST_SERIAL_BYTES = 64 * 1024  # six seconds at 115200 baud


@dataclass(slots=True)
class OutputComparison:
    """``vectors`` are compared; the first was run by the trial. A device that cannot run more compares only that.
    Of ``models`` that share an arena the references are those of each alone."""

    bench: Bench
    hello: wire.Hello
    models: Sequence[Model]
    vectors: Sequence[Vector]
    deadline: Deadline
    tolerance_steps: float | None = None

    def take(self, run: TrialRun) -> ReferenceRecord:
        """LiteRT's outputs first; where LiteRT does not run the model, those of TFLM's host interpreter."""
        if not self.hello.can(wire.Capability.MEASURE):
            self.vectors = self.vectors[:1]
        litert, host = self._references()
        runs = [reference for reference in (litert, host) if reference and not reference.refused]
        compared = [
            self._record(reference, rows) for reference, rows in zip(runs, self._compare(run, runs), strict=True)
        ]
        refused = safe_text(litert.refused)
        if litert.refused:
            if host is None:  # what was measured is the reference
                return ReferenceRecord(_tflm(self.hello), Agreement.SELF.value, litert_refused=refused)
            if host.refused:
                return self._unknown(host, litert_refused=refused)
            return msgspec.structs.replace(compared[0], litert_refused=refused)
        others = tuple(compared[1:])
        if host and host.refused:
            others = (self._unknown(host),)
        return msgspec.structs.replace(compared[0], others=others)

    def _references(self) -> tuple[ReferenceRun, ReferenceRun | None]:
        """(LiteRT, TFLM on this computer), both at once; the host board needs no second one."""
        timeout = min(_LITERT_TIMEOUT_S, self.deadline.remaining_s)
        each = vectors_of_each(self.models, self.vectors)

        def in_litert() -> ReferenceRun:
            steps = [(model, [vector.step for vector in vectors]) for model, vectors in each]
            return _together([run_litert(model.data, own, timeout) for model, own in steps])

        def on_host() -> ReferenceRun:
            return _together([run_tflm_on_host(*alone, self.deadline.sooner(timeout)) for alone in each])

        with ThreadPoolExecutor(2) as pool:
            litert = pool.submit(in_litert)
            if self.hello.board == "host":
                return litert.result(), None
            host = pool.submit(on_host)
            return litert.result(), host.result()

    def _compare(self, run: TrialRun, references: Sequence[ReferenceRun]) -> list[list[Comparison]]:
        """For each reference, one comparison for each vector."""
        assert run.report is not None
        rows: list[list[Comparison]] = [[] for _ in references]
        for number, vector in enumerate(self.vectors if references else ()):
            digest = run.report.output_digest
            if number:
                digest = run_vector(self.bench, self.hello, vector, self.deadline)
            outputs: tuple[bytes, ...] | None = None
            for row, reference in zip(rows, references, strict=True):
                theirs = reference.outputs[number]
                if generator.digest(*theirs) == digest:
                    row.append(Comparison(Agreement.BIT_EXACT, 0.0, 0.0))
                elif sum(map(len, theirs)) > self._most_output_bytes:
                    row.append(Comparison(Agreement.DIFFERENT))
                else:
                    outputs = outputs or read_outputs(self.bench.device, self.hello, self.deadline)
                    row.append(compare(outputs, theirs, reference.dtypes, self._steps))
        return rows

    @property
    def _steps(self) -> float:
        return INTEGER_TOLERANCE_STEPS if self.tolerance_steps is None else self.tolerance_steps

    @property
    def _most_output_bytes(self) -> int:
        """Outputs that would take more than some seconds to read are compared by their digest only."""
        return _MOST_HOST_BYTES if self.hello.board == "host" else _MOST_SERIAL_BYTES

    def _record(self, reference: ReferenceRun, comparisons: Sequence[Comparison]) -> ReferenceRecord:
        worst = worst_of(comparisons)
        return ReferenceRecord(
            reference.backend,
            worst.agreement.value,
            worst.max_difference,
            worst.mean_difference,
            vectors=len(comparisons),
            tolerance_steps=self._steps,
            unit=worst.unit,
        )

    def _unknown(self, reference: ReferenceRun, litert_refused: str = "") -> ReferenceRecord:
        refused = safe_text(reference.refused)
        return ReferenceRecord(
            reference.backend, Agreement.UNKNOWN.value, litert_refused=litert_refused, vectors=0, refused=refused
        )


def require_agreement(reference: ReferenceRecord | None, tolerance_steps: float | None) -> None:
    """Raises HarnessError where a tolerance was named and a reference's outputs are further off."""
    if reference is None or tolerance_steps is None:
        return
    for one in (reference, *reference.others):
        if one.agreement == Agreement.DIFFERENT.value:
            by = "" if one.max_difference is None else f" by up to {one.largest}"
            raise HarnessError(
                f"the outputs differ{by} from those of {one.backend}; {tolerance_steps:g} steps are allowed",
                remedy="harness check says what TFLM computes otherwise; --kernels reference tells whether an "
                "optimised kernel is at fault; --tolerance allows more",
                code="outputs.differ",
            )


def _together(runs: Sequence[ReferenceRun]) -> ReferenceRun:
    """The outputs of several models, one model's behind another's; refused where one of them is."""
    for run in runs:
        if run.refused:
            return run
    outputs = zip(*(run.outputs for run in runs), strict=True)
    dtypes = tuple(dtype for run in runs for dtype in run.dtypes)
    return ReferenceRun(runs[0].backend, tuple(sum(step, ()) for step in outputs), dtypes)


def _tflm(hello: wire.Hello) -> str:
    return f"TFLM host interpreter {hello.tflm_commit}"
