"""What may change from run to run, and what is the first that should not have: pure comparison, no device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.record.schema import SoakChunkRecord
from harness.wire import messages as wire

#: How much more of the stack a later boot may have used: one interrupt's frame with the FPU's registers (104 bytes,
#: ARMv7-M) and its handler, which may or may not come at the deepest moment.
STACK_ALLOWANCE_BYTES = 256


@dataclass(frozen=True, slots=True)
class Deviation:
    """``what`` changed in one of the runs ``first_run`` … ``last_run`` (equal where it is known exactly)."""

    what: str
    first_run: int
    last_run: int
    detail: str
    fault: wire.FaultRecord | None = None


@dataclass(slots=True)
class Counts:
    """The range of the runs' counts so far. ``spread_percent`` None: counts are not judged."""

    spread_percent: float | None
    lowest: int | None = None
    highest: int | None = None

    def take(self, low: int, high: int) -> None:
        self.lowest = low if self.lowest is None else min(low, self.lowest)
        self.highest = high if self.highest is None else max(high, self.highest)

    def allows(self, low: int, high: int) -> bool:
        """Whether all runs stay within the spread when these are among them."""
        if self.spread_percent is None:
            return True
        lowest = low if self.lowest is None else min(low, self.lowest)
        highest = high if self.highest is None else max(high, self.highest)
        return highest <= lowest * (1 + self.spread_percent / 100)

    def first_beyond(self, samples: Sequence[int]) -> int | None:
        """The index of the first sample that does not stay within the spread of those before it."""
        seen = Counts(self.spread_percent, self.lowest, self.highest)
        for index, sample in enumerate(samples):
            if not seen.allows(sample, sample):
                return index
            seen.take(sample, sample)
        return None


@dataclass(frozen=True, slots=True)
class Expected:
    """What the runs of a boot must show. ``digest`` None: outputs may change. ``stack_used_bytes`` None: not known
    yet, or UNKNOWN_U32 as reports say it."""

    digest: int | None
    used_bytes: int
    stack_used_bytes: int | None


def deviation_of_burst(
    report: wire.MeasureReport, first_run: int, expected: Expected, counts: Counts, samples: Sequence[int]
) -> Deviation | None:
    """What a burst of runs from ``first_run`` on shows. ``samples`` are the burst's counts in order, needed only where
    ``counts`` do not allow them."""
    digest = expected.digest
    last_run = first_run + max(report.runs, 1) - 1
    if report.failed_run != wire.UNKNOWN_U32:
        at = first_run + report.failed_run
        return Deviation("invoke_failed", at, at, "Invoke returned an error after it had worked")
    if report.guard is wire.GuardState.OVERRUN:
        return Deviation("guard", first_run, last_run, "bytes outside the arena were written")
    if digest is not None:
        if report.output_digest != digest:
            detail = f"outputs {report.output_digest:016x}, before {digest:016x}"
            return Deviation("outputs", first_run, first_run, detail)
        if report.first_deviation != wire.UNKNOWN_U32:
            at = first_run + report.first_deviation
            return Deviation("outputs", at, at, f"other outputs than the {digest:016x} of the runs before")
    if report.used_bytes != expected.used_bytes:
        detail = f"{report.used_bytes} bytes used, {expected.used_bytes} after AllocateTensors"
        return Deviation("used_bytes", first_run, last_run, detail)
    stack = expected.stack_used_bytes
    if stack is not None and report.stack_used_bytes > stack + STACK_ALLOWANCE_BYTES:
        detail = f"{report.stack_used_bytes} bytes of stack used, {stack} in the boot's first runs"
        return Deviation("stack", first_run, last_run, detail)
    if not counts.allows(report.min_cycles, report.max_cycles):
        at_index = counts.first_beyond(samples)
        before = f"{counts.lowest:,} … {counts.highest:,} before" if counts.lowest is not None else "in one boot"
        detail = (
            f"{report.min_cycles:,} … {report.max_cycles:,} counts, {before}; "
            f"{counts.spread_percent:g} % of spread are allowed"
        )
        if at_index is not None:
            at = first_run + at_index
            return Deviation("cycles", at, at, f"{samples[at_index]:,} counts: {detail}")
        return Deviation("cycles", first_run, last_run, detail)
    return None


def deviation_of_chunk(chunk: SoakChunkRecord, first: SoakChunkRecord) -> Deviation | None:
    """How a whole boot differs from the first one."""
    last_run = chunk.first_run + chunk.runs - 1

    def changed(what: str, detail: str) -> Deviation:
        return Deviation(what, chunk.first_run, last_run, detail)

    if chunk.used_bytes != first.used_bytes:
        return changed("used_bytes", f"{chunk.used_bytes} bytes used, in the first boot {first.used_bytes}")
    if chunk.output_digest != first.output_digest:
        return changed("outputs", f"a fresh boot gave {chunk.output_digest}, the first {first.output_digest}")
    opening = (chunk.opening_digest, chunk.opening_deviation)
    if chunk.keeps_state and first.keeps_state and opening != (first.opening_digest, first.opening_deviation):
        return changed("outputs", f"the first runs of a boot gave {opening[0]}, in the first boot otherwise")
    if chunk.stack_used_bytes is not None and first.stack_used_bytes is not None:
        growth = chunk.stack_used_bytes - first.stack_used_bytes
        if growth > STACK_ALLOWANCE_BYTES:
            return changed("stack", f"{growth} bytes more of stack than the {first.stack_used_bytes} of the first boot")
    return None
