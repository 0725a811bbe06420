"""``--vary tflm=A,B``: the same suite with two TFLM libraries, and what explains each difference.

arena_used_bytes() is the head plus the categories of the recording allocator plus a rest, so differences of the parts
must add up to the difference of the whole; what does not is told as unexplained, never spread over the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.firmware.registry import Registry
from harness.lab.metrics import METRICS
from harness.reconcile import CATEGORY_STRUCTS, REST_OF_TAIL
from harness.record.lab_run import JobRecord
from harness.record.schema import RunTimesRecord, SweepRecord
from harness.record.store import read_record
from harness.record.upgrade import ByteTerm, CycleTerm, UpgradeRecord
from harness.units import quoted

#: A median may move by so many standard errors of the runs before it counts as a change; instructions are exact.
_NOISE_SIGMAS = 4.0


def parse_vary(text: str) -> tuple[str, str]:
    """``tflm=A,B`` → two library folders, each a path, or the commit or folder name of a registered library."""
    name, _, values = text.partition("=")
    parts = [part for part in values.split(",") if part]
    if name != "tflm" or len(parts) != 2:
        raise UsageError(f"--vary {quoted(text)} is not tflm=A,B", remedy="name two TFLM libraries: harness tflm list")
    first, second = (_library_folder(part) for part in parts)
    if first == second:
        raise UsageError(f"--vary {quoted(text)} names one library twice", remedy="name two: harness tflm list")
    return first, second


def _library_folder(text: str) -> str:
    if Path(text).is_dir():
        return str(Path(text).resolve())
    fitting = [
        entry.folder
        for entry in Registry().entries()
        if (entry.commit and entry.commit.startswith(text)) or Path(entry.folder).name == text
    ]
    if len(fitting) != 1:
        raise UsageError(
            f"{len(fitting)} TFLM libraries are called {quoted(text)}",
            remedy="name a folder, or the commit or folder name of a library that harness tflm list shows",
            code="tflm.choice",
        )
    return fitting[0]


def upgrades(jobs: Iterable[JobRecord], libraries: Sequence[str]) -> tuple[UpgradeRecord, ...]:
    """One comparison per model, board and kernel set, in the order of the jobs; of repeats the first counts."""
    pairs: dict[str, dict[str, JobRecord]] = {}
    for job in jobs:
        if job.repeat == 1 and job.tflm in libraries:
            pairs.setdefault(job.id.partition("/tflm=")[0], {})[job.tflm] = job
    return tuple(_upgrade(pair, libraries) for pair in pairs.values())


def _upgrade(pair: dict[str, JobRecord], libraries: Sequence[str]) -> UpgradeRecord:
    one, other = (pair.get(library) for library in libraries)
    known = one or other
    assert known is not None
    before, after = (_record(job) for job in (one, other))
    record = UpgradeRecord(
        model=known.model,
        board=known.board,
        kernels=" -> ".join(dict.fromkeys(job.kernels for job in (one, other) if job)),
        before=_commit(before) or libraries[0],
        after=_commit(after) or libraries[1],
    )
    for job, sweep in ((one, before), (other, after)):
        if sweep is None or sweep.measured is None:
            why = f"{job.status.value}: {job.reason}" if job else "it did not run"
            return _replace(record, problem=f"with {job.tflm if job else 'one library'}: {why}")
    assert before is not None
    assert after is not None
    terms = tuple(_byte_terms(before, after))
    return _replace(
        record, bytes=terms, cycles=tuple(_cycle_terms(before, after)), unexplained_bytes=_unexplained(terms)
    )


def _byte_terms(before: SweepRecord, after: SweepRecord) -> Iterator[ByteTerm]:
    for name in ("arena_min_bytes", "arena_used_bytes", "arena_head_bytes"):
        one, other = (_whole(METRICS[name].take(record)) for record in (before, after))
        text = ", ".join(_operator_changes(before, after)) if name == "arena_head_bytes" and one != other else ""
        yield ByteTerm(name=name, before=one, after=other, explanation=text)
    one_by_name, other_by_name = (_categories(record) for record in (before, after))
    for name in dict.fromkeys((*one_by_name, *other_by_name)):
        one, other = one_by_name.get(name, 0), other_by_name.get(name, 0)
        text = _struct_change(name, before, after) if one != other else ""
        yield ByteTerm(name=name, before=one, after=other, explanation=text)


def _categories(record: SweepRecord) -> dict[str, int]:
    """The recording allocator's categories and the rest of the tail; empty where the run does not tell them."""
    measured = record.measured
    if measured is None or not measured.categories:
        return {}
    found = {category.name: category.used_bytes for category in measured.categories}
    if measured.tail_bytes is not None:
        found[REST_OF_TAIL] = measured.tail_bytes - sum(found.values())
    return found


def _struct_change(category: str, before: SweepRecord, after: SweepRecord) -> str:
    """``sizeof(TfLiteEvalTensor) 12 -> 16``, and how many there are with each library."""
    struct = CATEGORY_STRUCTS.get(category)
    words = []
    if struct is not None:
        sizes = [record.device.struct_sizes.get(struct) if record.device else None for record in (before, after)]
        if None not in sizes and sizes[0] != sizes[1]:
            words.append(f"sizeof({struct}) {sizes[0]} -> {sizes[1]}")
    counts = [_count(record, category) for record in (before, after)]
    if counts[0] != counts[1]:
        words.append(f"count {counts[0]} -> {counts[1]}")
    one, other = (_tail_by_operator(record.plan or {}, category) for record in (before, after))
    return ", ".join([*words, *_changes(one, other)])


def _count(record: SweepRecord, category: str) -> int:
    categories = record.measured.categories if record.measured else ()
    return next((entry.count for entry in categories if entry.name == category), 0)


def _operator_changes(before: SweepRecord, after: SweepRecord) -> list[str]:
    """Scratch buffers, by operator, where the two plans differ: what moved the head."""
    one, other = (_scratch_by_operator(record.plan or {}) for record in (before, after))
    return [f"scratch of {change}" for change in _changes(one, other)]


def _changes(one: dict[str, int], other: dict[str, int]) -> list[str]:
    return [
        f"{name} {one.get(name, 0)} -> {other.get(name, 0)}"
        for name in dict.fromkeys((*one, *other))
        if one.get(name, 0) != other.get(name, 0)
    ]


def _tail_by_operator(plan: dict[str, Any], category: str) -> dict[str, int]:
    """What each operator keeps in a category, padding included, by the plan."""
    found: dict[str, int] = {}
    for item in plan.get("tail", ()):
        if item.get("category") == category and item.get("operator") is not None:
            name = f"operator {item['operator']}"
            found[name] = found.get(name, 0) + item["size_bytes"] + item["padding_bytes"]
    return found


def _scratch_by_operator(plan: dict[str, Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for placement in plan.get("placements", ()):
        if placement.get("scratch") is not None:
            name = f"operator {placement.get('operator', placement.get('first_use'))}"
            found[name] = found.get(name, 0) + placement["requested_bytes"]
    return found


def _cycle_terms(before: SweepRecord, after: SweepRecord) -> Iterator[CycleTerm]:
    one, other = before.timing, after.timing
    if one is None or other is None or one.timing != other.timing:
        return
    noise = _NOISE_SIGMAS * max(_standard_error(one.ample), _standard_error(other.ample))
    yield _cycles("Invoke", one.ample.median, other.ample.median, noise)
    rows = [timing.profile.operators if timing.profile else () for timing in (one, other)]
    if len(rows[0]) != len(rows[1]):
        return
    for at, (mine, theirs) in enumerate(zip(*rows, strict=True)):
        # one profiled run each: an operator's noise is at most that of the whole
        yield _cycles(f"{at} {mine.name}", mine.count, theirs.count, noise)


def _cycles(name: str, before: float, after: float, noise: float) -> CycleTerm:
    return CycleTerm(name=name, before=before, after=after, beyond_noise=abs(after - before) > noise)


def _standard_error(times: RunTimesRecord) -> float:
    return (times.stdev or 0.0) / math.sqrt(max(1, times.samples))


def _unexplained(terms: Sequence[ByteTerm]) -> int | None:
    """None where the parts are not told."""
    by_name = {term.name: term.difference for term in terms}
    whole, parts = by_name.pop("arena_used_bytes"), [by_name.pop("arena_head_bytes")]
    by_name.pop("arena_min_bytes")
    if whole is None or parts[0] is None or not by_name:
        return None
    return whole - parts[0] - sum(difference or 0 for difference in by_name.values())


def _record(job: JobRecord | None) -> SweepRecord | None:
    path = Path(job.attempts[-1].record_path) if job and job.attempts and job.attempts[-1].record_path else None
    return read_record(path) if path is not None and path.is_file() else None


def _commit(record: SweepRecord | None) -> str:
    return record.device.tflm_commit if record and record.device else ""


def _whole(value: float | int | None) -> int | None:
    return None if value is None else int(value)


def _replace(record: UpgradeRecord, **values: Any) -> UpgradeRecord:
    import msgspec

    return msgspec.structs.replace(record, **values)
