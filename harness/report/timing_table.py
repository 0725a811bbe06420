"""Times for a person: runs, operators, and what makes them comparable. Only a measured clock makes milliseconds."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from harness.record.schema import CertificateRecord, EnvironmentRecord, ProfileRecord, RunTimesRecord, TimingRecord
from harness.units import format_bytes, safe_text

#: How a timing kind is called in a table.
_UNITS = {"cycles": "cycles", "systick": "cycles (SysTick)", "instructions": "instructions", "host_ns": "ns, host"}


def timing_report(timing: TimingRecord, environment: EnvironmentRecord | None) -> Iterator[RenderableType]:
    """What to print of a measurement, in order."""
    yield _runs_table(timing)
    if timing.profile:
        yield _operators_table(timing.profile, timing)
    yield from (Text("  " + line) for line in _lines(timing, environment))


def certificate_line(certificate: CertificateRecord) -> str:
    """The certificate in a sentence."""
    works, fails = certificate.works, certificate.fails
    line = f"certified: a static arena of {format_bytes(works.arena_bytes)} B works (build {works.build_id[:8]})"
    if fails is None:
        return line + ", and nothing smaller can be built"
    why = fails.reason or fails.outcome
    return f"{line}, one of {format_bytes(fails.arena_bytes)} B fails: {why} (build {fails.build_id[:8]})"


def _unit(timing: TimingRecord) -> str:
    return _UNITS.get(timing.timing, timing.timing)


def _runs_table(timing: TimingRecord) -> Table:
    table = Table(box=None, padding=(0, 2), pad_edge=True)
    table.add_column(f"Invoke, {_unit(timing)}")
    for name in ("runs", "first", "min", "median", "max", "stdev"):
        table.add_column(name, justify="right", no_wrap=True)
    if timing.clock:
        table.add_column("median, ms", justify="right", no_wrap=True)
    for times in (timing.ample, timing.minimum):
        if times:
            table.add_row(*_runs_row(times, timing))
    return table


def _runs_row(times: RunTimesRecord, timing: TimingRecord) -> Iterator[str]:
    yield f"arena {format_bytes(times.arena_bytes)} B"
    runs = f"{times.runs:,}" if times.samples == times.runs else f"{times.runs:,} ({times.samples:,} kept)"
    yield runs
    yield f"{times.first:,}"
    yield f"{times.minimum:,}"
    yield f"{times.median:,.0f}"
    yield f"{times.maximum:,}"
    yield "-" if times.stdev is None else f"{times.stdev:,.1f}"
    if timing.clock:
        yield f"{times.median / timing.clock.hz * 1e3:.3f}"


def _operators_table(profile: ProfileRecord, timing: TimingRecord) -> Table:
    table = Table(box=None, padding=(0, 2), pad_edge=True)
    table.add_column("operator")
    table.add_column("kernel")
    table.add_column(_unit(timing), justify="right", no_wrap=True)
    table.add_column("%", justify="right", no_wrap=True)
    for number, row in enumerate(profile.operators):
        share = 100 * row.count / profile.invoke
        table.add_row(f"{number} {safe_text(row.name, 40)}", row.kernel, f"{row.count:,}", f"{share:.1f}")
    share = 100 * profile.unattributed / profile.invoke
    table.add_row("in no operator", "", f"{profile.unattributed:,}", f"{share:.1f}")
    return table


def _lines(timing: TimingRecord, environment: EnvironmentRecord | None) -> Iterator[str]:
    if timing.profile and timing.profile.truncated:
        yield f"truncated: the device could not keep {timing.profile.truncated} of the profiler's events"
    if timing.timing == "instructions":
        yield "an emulated core counts instructions: these are not times on hardware"
    elif timing.timing == "host_ns":
        yield "times of this computer say nothing about a chip"
    if timing.clock:
        off = f" (±{timing.clock.uncertainty_hz / 1e6:.2f})"
        yield f"clock: {timing.clock.hz / 1e6:.2f} MHz{off} measured over {timing.clock.span_s:.2f} s"
    if environment and environment.compiler:
        yield _environment_line(environment)
    if environment and environment.flash_bytes and environment.ram_bytes:
        flash, ram = format_bytes(environment.flash_bytes), format_bytes(environment.ram_bytes)
        yield f"firmware: {flash} B of flash, {ram} B of RAM"
    stack = timing.ample.stack_used_bytes
    if stack is not None:
        size = environment.stack_bytes if environment else None
        yield f"stack: {format_bytes(stack)} B used" + (f" of {format_bytes(size)}" if size else "")


def _environment_line(environment: EnvironmentRecord) -> str:
    def state(name: str, value: bool | None) -> str:
        return "" if value is None else f"{name} {'on' if value else 'off'}"

    core = f"{environment.core_clock_hz / 1e6:g} MHz as configured" if environment.core_clock_hz else ""
    waits = environment.flash_wait_states
    parts = (
        environment.compiler,
        environment.optimisation,
        f"arena in {environment.arena_region}",
        core,
        "" if waits is None else f"{waits} flash wait states",
        state("I-cache", environment.icache_enabled),
        state("D-cache", environment.dcache_enabled),
        state("flash accelerator", environment.flash_accelerator_enabled),
    )
    return "built and run with: " + ", ".join(safe_text(part) for part in parts if part)
