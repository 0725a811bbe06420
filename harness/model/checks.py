"""The pre-flight checklist: everything that is known to go wrong in TFLM, found before anything is built or run.

TFLM is no validator: most of what is refused here it would run, and give wrong numbers or crash.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from harness.errors import UnfitModelError
from harness.model.codes import finding
from harness.model.finding import Finding, Severity
from harness.model.graph import Model, Operator
from harness.model.indices import find_index_faults
from harness.model.rules.control_flow import check_control_flow
from harness.model.rules.file import check_file, check_header
from harness.model.rules.offline_plan import check_offline_plan
from harness.model.rules.operators import check_kernels, check_operator, check_resources
from harness.model.rules.order import check_order
from harness.model.rules.quantization import check_quantization
from harness.model.rules.scope import Scope
from harness.model.rules.shapes import check_shapes
from harness.model.rules.tensors import check_tensors
from harness.model.state import is_stateful
from harness.model.support import REFERENCE, find_kernel

#: So many findings of one code are listed; the rest are counted.
_MOST_OF_ONE_CODE = 20


def check_model(model: Model, kernels: str = REFERENCE) -> tuple[Finding, ...]:
    """All findings, the refused ones first. ``kernels``: ``reference`` or ``cmsis_nn``. Takes a model that was read
    leniently: where an index is out of range, only that and the header are judged."""
    findings = list(_limited(_findings(model, str(getattr(kernels, "value", kernels)))))
    order = [Severity.REFUSED, Severity.WARNING, Severity.INFO]
    return tuple(sorted(findings, key=lambda entry: order.index(entry.severity)))


def _findings(model: Model, kernels: str) -> Iterator[Finding]:
    yield from check_header(model)
    faults = find_index_faults(model)
    first = next(faults, None)
    if first is not None:
        yield from chain([first], faults)
        return
    yield from check_file(model)
    yield from check_kernels(model, kernels)
    yield from check_resources(model)
    scopes = [Scope(model, subgraph, kernels) for subgraph in model.subgraphs]
    for scope in scopes:
        yield from check_tensors(scope)
        yield from check_order(scope)
        for operator in scope.subgraph.operators:
            yield from _operator(scope, operator)
    yield from check_control_flow(scopes)
    yield from check_offline_plan(model)
    if is_stateful(model):
        yield finding("model.stateful", "model", "the model keeps state between runs")


def _operator(scope: Scope, operator: Operator) -> Iterator[Finding]:
    """Types and ranks first: what follows takes them for granted. Nothing here where there is no kernel:
    ``check_kernels`` names those all at once."""
    kernel = find_kernel(operator.name, custom=operator.opcode.name == "CUSTOM", kernels=scope.kernels)
    if kernel is None:
        return
    inputs, outputs = scope.inputs(operator), scope.outputs(operator)
    found = list(check_operator(scope, operator, kernel, inputs, outputs))
    yield from found
    codes = {entry.code for entry in found}
    if any(code.startswith("type.") or code == "operator.inputs" for code in codes):
        return
    yield from check_quantization(scope, operator, kernel, inputs, outputs)
    known = all(tensor is None or min(tensor.dims, default=0) >= 0 for tensor in (*inputs, *outputs))
    if known and "shape.rank" not in codes:
        yield from check_shapes(scope, operator, kernel, inputs, outputs)


def _limited(findings: Iterator[Finding]) -> Iterator[Finding]:
    counts: dict[str, int] = {}
    last: dict[str, Finding] = {}
    for entry in findings:
        counts[entry.code] = counts.get(entry.code, 0) + 1
        if counts[entry.code] <= _MOST_OF_ONE_CODE:
            yield entry
        last[entry.code] = entry
    for code, count in counts.items():
        if count > _MOST_OF_ONE_CODE:
            entry = last[code]
            more = count - _MOST_OF_ONE_CODE
            yield Finding(code, entry.severity, "model", f"and {more:,} more of {code}", entry.remedy)


def refuse_unfit(model: Model, kernels: str) -> None:
    """Raises UnfitModelError with the first reason to refuse the model, and how many more there are."""
    refused = [entry for entry in check_model(model, kernels) if entry.severity is Severity.REFUSED]
    if refused:
        first = refused[0]
        more = f" (and {len(refused) - 1} more: harness check)" if len(refused) > 1 else ""
        raise UnfitModelError(f"{first.where}: {first.message}{more}", remedy=first.remedy, code=first.code)
