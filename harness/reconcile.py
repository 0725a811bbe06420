"""Plan against measurement, term by term: every byte of difference is explained, or counted as unexplained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from harness.abi import abi_named
from harness.units import align_up, safe_text

#: Categories of RecordingMicroAllocator, by its own names (TFLM recording_micro_allocator.cc, PrintAllocations), and
#: the struct that fills each, where one struct does.
CATEGORY_STRUCTS: dict[str, str | None] = {
    "TfLiteEvalTensor data": "TfLiteEvalTensor",
    "Persistent TfLiteTensor data": "TfLiteTensor",
    "Persistent TfLiteTensor quantization data": "TfLiteAffineQuantization",
    "Persistent buffer data": None,
    "TfLiteTensor variable buffer data": None,
    "NodeAndRegistration struct": "NodeAndRegistration",
    "Operator runtime data": None,
    "Persistent compression data": None,
}
#: What the recording allocator does not put into a category: allocator and planner objects, operator parameters,
#: subgraph and scratch handle arrays, with their padding.
REST_OF_TAIL = "Allocator objects, operator parameters, handles"


class Agreement(str, Enum):
    """How a term came out. NOT_MEASURED: the device cannot tell it, so nothing is claimed."""

    EQUAL = "equal"
    EXPLAINED = "explained"
    UNEXPLAINED = "unexplained"
    NOT_MEASURED = "not_measured"


@dataclass(frozen=True, slots=True)
class CategoryBytes:
    """One category of the recording allocator: ``used_bytes`` is ``requested_bytes`` with alignment padding."""

    requested_bytes: int
    used_bytes: int
    count: int


@dataclass(frozen=True, slots=True)
class PlannedArena:
    """The plan's side. ``used_bytes`` is for the arena size that was measured (its remainder by 16 is in the number).
    ``struct_sizes`` are the sizes planned with. ``reasons`` say why the plan is only estimated."""

    used_bytes: int
    head_bytes: int
    tail_bytes: int
    min_exact_bytes: int
    exact: bool
    categories: Mapping[str, CategoryBytes] = field(default_factory=dict)
    struct_sizes: Mapping[str, int] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    tflm_commit: str = ""

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> PlannedArena:
        """The plan that a record holds (schema ``harness.plan``, version 1). Raises KeyError where it is none."""
        arena, target = document["arena"], document["target"]
        return cls(
            used_bytes=arena["used_bytes"],
            head_bytes=arena["head_bytes"],
            tail_bytes=arena["tail_bytes"],
            min_exact_bytes=arena["min_exact_bytes"],
            exact=arena["confidence"] == "exact",
            categories={
                name: CategoryBytes(entry["requested_bytes"], entry["used_bytes"], entry["count"])
                for name, entry in document["categories"].items()
            },
            struct_sizes=planned_struct_sizes(target["abi"]),
            reasons=tuple(arena.get("reasons", ())),
            tflm_commit=target["tflm_commit"],
        )


def planned_struct_sizes(abi: str) -> dict[str, int]:
    """sizeof of the structs that fill a category, as plans for the named ABI count them."""
    return {struct: abi_named(abi).size(struct) for struct in CATEGORY_STRUCTS.values() if struct is not None}


@dataclass(frozen=True, slots=True)
class MeasuredArena:
    """The device's side; None where it cannot tell. ``min_bytes`` is the smallest size that worked, found to
    ``step_bytes``; ``largest_failing_bytes`` the largest that did not."""

    used_bytes: int | None
    head_bytes: int | None = None
    tail_bytes: int | None = None
    min_bytes: int | None = None
    largest_failing_bytes: int | None = None
    step_bytes: int = 16
    categories: Mapping[str, CategoryBytes] = field(default_factory=dict)
    struct_sizes: Mapping[str, int] = field(default_factory=dict)
    tflm_commit: str = ""


@dataclass(frozen=True, slots=True)
class Term:
    """One number, planned and measured. ``unexplained_bytes`` is what is left of the difference, without sign."""

    name: str
    planned_bytes: int
    measured_bytes: int | None
    agreement: Agreement
    explanation: str = ""
    unexplained_bytes: int = 0

    @property
    def difference_bytes(self) -> int | None:
        """Measured minus planned."""
        return None if self.measured_bytes is None else self.measured_bytes - self.planned_bytes


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """``terms`` in the order used, tail, head, the tail's categories, min. ``unexplained_bytes`` is their sum; the
    difference of a total counts as explained by its parts where these were measured, so that no byte counts twice.
    ``advice`` says what to look at when bytes are left."""

    terms: tuple[Term, ...]
    unexplained_bytes: int
    advice: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        return self.unexplained_bytes == 0

    def to_document(self) -> dict[str, object]:
        """The ``reconciliation`` object of the JSON contract."""
        return {
            "terms": [
                {
                    "name": term.name,
                    "planned_bytes": term.planned_bytes,
                    "measured_bytes": term.measured_bytes,
                    "difference_bytes": term.difference_bytes,
                    "agreement": term.agreement.value,
                    "explanation": term.explanation,
                    "unexplained_bytes": term.unexplained_bytes,
                }
                for term in self.terms
            ],
            "unexplained_bytes": self.unexplained_bytes,
            "advice": list(self.advice),
        }


def reconcile(planned: PlannedArena, measured: MeasuredArena) -> Reconciliation:
    """Compare what was planned with what a device (or the host's interpreter) reported and needed."""
    parts = _parts(planned, measured)
    terms = (*_sums(planned, measured, parts), *parts, _minimum(planned, measured))
    unexplained = sum(term.unexplained_bytes for term in terms)
    return Reconciliation(terms, unexplained, _advice(planned, measured) if unexplained else ())


def _parts(planned: PlannedArena, measured: MeasuredArena) -> list[Term]:
    """The finest terms that the device can tell: head and tail, or head and the tail's categories."""
    if measured.head_bytes is None or measured.tail_bytes is None:
        return []
    head = _term("head", planned.head_bytes, measured.head_bytes)
    if not (planned.categories and measured.categories):
        return [head, _term("tail", planned.tail_bytes, measured.tail_bytes)]
    terms = [head]
    for name in dict.fromkeys((*CATEGORY_STRUCTS, *planned.categories, *measured.categories)):
        mine, theirs = planned.categories.get(name), measured.categories.get(name)
        if mine is None and theirs is None:
            continue
        cause, bytes_explained = _struct_cause(name, planned, measured)
        terms.append(
            _term(name, mine.used_bytes if mine else 0, theirs.used_bytes if theirs else 0, cause, bytes_explained)
        )
    rest_planned = planned.tail_bytes - sum(category.used_bytes for category in planned.categories.values())
    rest_measured = measured.tail_bytes - sum(category.used_bytes for category in measured.categories.values())
    terms.append(_term(REST_OF_TAIL, rest_planned, rest_measured))
    return terms


def _sums(planned: PlannedArena, measured: MeasuredArena, parts: list[Term]) -> list[Term]:
    """The totals that users know. Where parts are known, a difference is explained by them."""
    totals = [("used", planned.used_bytes, measured.used_bytes, parts)]
    if len(parts) > 2:
        totals.append(("tail", planned.tail_bytes, measured.tail_bytes, parts[1:]))
    terms = []
    for name, mine, theirs, below in totals:
        if theirs is None:
            terms.append(Term(name, mine, None, Agreement.NOT_MEASURED))
        else:
            from_parts = sum(part.difference_bytes or 0 for part in below)
            terms.append(_term(name, mine, theirs, "the sum of the terms below", from_parts))
    return terms


def _minimum(planned: PlannedArena, measured: MeasuredArena) -> Term:
    """The minimum is found to a step, so it is compared with the planned byte rounded up to that step."""
    expected = align_up(planned.min_exact_bytes, measured.step_bytes)
    if measured.min_bytes is None:
        return Term("min", expected, None, Agreement.NOT_MEASURED, "the search did not end")
    lower = measured.largest_failing_bytes
    if lower is None or lower < measured.min_bytes - measured.step_bytes:
        text = f"only bounded so far: {measured.min_bytes} works, the search did not look one step below"
        if expected <= measured.min_bytes and (lower is None or expected > lower):
            return Term("min", expected, None, Agreement.NOT_MEASURED, text)
        wrong = expected - measured.min_bytes if expected > measured.min_bytes else (lower or 0) - expected + 1
        return Term("min", expected, measured.min_bytes, Agreement.UNEXPLAINED, text, wrong)
    difference = measured.min_bytes - expected
    carried = _same_direction(difference, (measured.used_bytes or planned.used_bytes) - planned.used_bytes)
    return _term("min", expected, measured.min_bytes, "follows from the difference in used", carried)


def _term(name: str, planned: int, measured: int, cause: str = "", explained_bytes: int = 0) -> Term:
    if planned == measured:
        return Term(name, planned, measured, Agreement.EQUAL)
    left = abs(measured - planned - explained_bytes)
    agreement = Agreement.UNEXPLAINED if left else Agreement.EXPLAINED
    return Term(name, planned, measured, agreement, cause if explained_bytes else "", left)


def _struct_cause(name: str, planned: PlannedArena, measured: MeasuredArena) -> tuple[str, int]:
    """The part of a category's difference that comes from another size of its struct than the one planned with."""
    struct = CATEGORY_STRUCTS.get(name)
    category = planned.categories.get(name)
    if struct is None or category is None:
        return "", 0
    mine, theirs = planned.struct_sizes.get(struct), measured.struct_sizes.get(struct)
    if mine is None or theirs is None or mine == theirs:
        return "", 0
    count = category.count
    text = f"sizeof({struct}) is {theirs} in the firmware, {mine} in the plan, × {count}"
    return text, (theirs - mine) * count


def _same_direction(difference: int, offered: int) -> int:
    """As much of ``offered`` as goes the way of ``difference``, and no more than it."""
    if difference * offered <= 0:
        return 0
    return min(difference, offered) if difference > 0 else max(difference, offered)


def _advice(planned: PlannedArena, measured: MeasuredArena) -> tuple[str, ...]:
    lines = [f"the plan is an estimate: {safe_text(reason)}" for reason in planned.reasons]
    if planned.tflm_commit and measured.tflm_commit and not _same_commit(planned.tflm_commit, measured.tflm_commit):
        lines.append(f"the plan is for TFLM {planned.tflm_commit[:12]}, the device runs {measured.tflm_commit[:12]}")
    for struct, mine in planned.struct_sizes.items():
        theirs = measured.struct_sizes.get(struct)
        if theirs is not None and theirs != mine:
            lines.append(f"sizeof({struct}): {mine} in the plan, {theirs} in the firmware: plan with --abi-from RECORD")
    if not lines:
        lines.append("compare kernel set, core, compiler and interpreter of the plan with those of the firmware")
    return tuple(lines)


def _same_commit(one: str, other: str) -> bool:
    short = min(len(one), len(other))
    return one[:short] == other[:short]
