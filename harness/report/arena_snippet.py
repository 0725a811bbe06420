"""What to write into the program that the arena is for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from harness.record.schema import SweepRecord
from harness.units import format_size, safe_text, short_commit


def arena_snippet(record: SweepRecord) -> Iterator[str]:
    """Lines of C++ with the measured minimum and the recommended size; none where no minimum was found."""
    search, recommended = record.search, record.recommendation
    if search is None or search.min_bytes is None or recommended is None:
        return
    fails = f"  // fails with {search.largest_failing_bytes}" if search.largest_failing_bytes is not None else ""
    yield f"with headroom {recommended.headroom:g}, {format_size(recommended.arena_bytes)}; for your program:"
    yield f"  // measured: {_what(record)}"
    yield f"  constexpr size_t kTensorArenaMinimum = {search.min_bytes};{fails}"
    yield f"  constexpr size_t kTensorArenaSize = {recommended.arena_bytes};"
    yield '  static_assert(kTensorArenaSize >= kTensorArenaMinimum, "the model does not work in this arena");'
    yield "  alignas(16) static uint8_t tensor_arena[kTensorArenaSize];"


def _what(record: SweepRecord) -> str:
    commit = record.device.tflm_commit if record.device else ""
    tflm = f"TFLM {short_commit(commit)}" if commit else "this TFLM"
    name = safe_text(record.model_name, 200)
    return f"{name} on {safe_text(PurePath(record.board).name)}, {record.kernels} kernels, {tflm} only"
