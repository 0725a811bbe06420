"""A soak for a person."""

from __future__ import annotations

from collections.abc import Iterator

from harness.record.schema import SoakRecord
from harness.units import format_bytes, format_size, safe_text

_WORDS = {
    "constant": "constant",
    "stateful": "stateful: the outputs depend on earlier runs, and repeat from boot to boot",
    "unstable": "NOT CONSTANT",
    "unfinished": "not finished",
}


def soak_lines(soak: SoakRecord) -> Iterator[str]:
    """What to print of a soak, in order."""
    resumed = f", {soak.resumed_runs:,} of them earlier" if soak.resumed_runs else ""
    yield (
        f"soak: {_WORDS.get(soak.verdict, soak.verdict)} over {soak.runs:,} runs{resumed}, {soak.boots} fresh boots, "
        f"{soak.restarts} resets within a boot, {soak.seconds:.1f} s"
    )
    if soak.stateful:
        yield "the model has state: it was reset before each run"
    if soak.deviation:
        fault = soak.deviation.fault or {}
        registers = [f"{name} {fault[name]:#010x}" for name in ("pc", "lr", "cfsr", "hfsr") if fault.get(name)]
        if registers:
            yield f"fault record: {safe_text(str(fault.get('kind')))}, " + ", ".join(registers)
    if not soak.boots:
        return
    used = "not told" if soak.used_bytes is None else f"{format_bytes(soak.used_bytes)} B"
    yield f"in an arena of {format_size(soak.arena_bytes)}: {used} used, outputs {soak.output_digest}"
    if soak.min_count and soak.max_count is not None:
        spread = 100 * (soak.max_count / soak.min_count - 1)
        allowed = soak.allowed_spread_percent
        judged = "not judged: this computer's time" if allowed is None else f"{allowed:g} % allowed"
        yield f"{soak.min_count:,} … {soak.max_count:,} {soak.timing} per run: {spread:.2f} % apart, {judged}"
    stack = "" if soak.stack_used_bytes is None else f"{format_bytes(soak.stack_used_bytes)} B of stack; "
    around = "intact" if soak.guards == "intact" else "not checked on this board"
    free = "intact" if soak.fill == "intact" else "not checked"
    yield f"{stack}bytes around the arena: {around}; free bytes within it: {free}"
