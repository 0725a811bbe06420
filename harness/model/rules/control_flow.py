"""IF, WHILE and CALL_ONCE: the subgraphs that they name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.model.codes import finding
from harness.model.finding import Finding
from harness.model.graph import Model, Operator, SubGraph, Tensor, TensorType
from harness.model.rules.scope import Scope
from harness.model.sizes import type_name

#: The option fields of each control-flow operator that name a subgraph.
SUBGRAPH_FIELDS = {
    "IF": ("then_subgraph_index", "else_subgraph_index"),
    "WHILE": ("cond_subgraph_index", "body_subgraph_index"),
    "CALL_ONCE": ("init_subgraph_index",),
}


def called_subgraphs(operator: Operator) -> tuple[int, ...]:
    """The subgraphs that an operator names, in the order of its options; empty for all but control flow."""
    fields = SUBGRAPH_FIELDS.get(operator.name, ())
    values = (operator.options.get(name, -1) for name in fields)
    return tuple(value if isinstance(value, int) else -1 for value in values)


def check_control_flow(scopes: Sequence[Scope]) -> Iterator[Finding]:
    """Over all subgraphs at once: recursion and subgraphs that nothing calls are facts of the whole model."""
    count = len(scopes)
    valid = True
    calls: list[list[int]] = [[] for _ in scopes]
    for scope in scopes:
        for operator in scope.subgraph.operators:
            for target in called_subgraphs(operator):
                if 0 <= target < count:
                    calls[scope.subgraph.index].append(target)
                else:
                    valid = False
                    message = f"subgraph {target} is out of range: the model has {count} subgraphs"
                    yield finding("flow.subgraph_index", scope.at(operator), message)
    loop = _find_loop(calls)
    if loop:
        text = " → ".join(map(str, loop))
        yield finding("flow.recursive", f"subgraph {loop[0]}", f"the subgraphs call each other in a circle: {text}")
    called = {target for targets in calls for target in targets}
    for scope in scopes[1:]:
        if scope.subgraph.index not in called:
            yield finding("flow.uncalled", scope.at(), "no operator calls this subgraph")
    if valid:
        for scope in scopes:
            for operator in scope.subgraph.operators:
                if operator.name in {"IF", "WHILE"}:
                    yield from _check_call(scope, operator)


def _find_loop(calls: list[list[int]]) -> list[int]:
    """A circle of calls, its first member repeated at the end; empty where there is none."""
    done: set[int] = set()
    for start in range(len(calls)):
        path = {start: None}  # in order, and quick to ask
        pending = [iter(calls[start] if start not in done else ())]
        while pending:
            target = next(pending[-1], None)
            if target is None:
                pending.pop()
                done.add(path.popitem()[0])
            elif target in path:
                circle = list(path)
                return [*circle[circle.index(target) :], target]
            elif target not in done:
                path[target] = None
                pending.append(iter(calls[target]))
    return []


def _check_call(scope: Scope, operator: Operator) -> Iterator[Finding]:
    model = scope.model
    first, second = (model.subgraphs[index] for index in called_subgraphs(operator))
    inputs, outputs = scope.inputs(operator), scope.outputs(operator)
    if operator.name == "IF":
        condition = inputs[0] if inputs else None
        if condition is None or condition.type != TensorType.BOOL or condition.element_count != 1:
            yield finding("flow.mismatch", scope.at(operator), "the condition is not one BOOL")
        for branch, what in ((first, "then"), (second, "else")):
            yield from _pairs(scope, operator, f"{what} input", inputs[1:], _ends(branch, branch.inputs))
            yield from _pairs(scope, operator, f"{what} output", outputs, _ends(branch, branch.outputs))
        return
    condition_outputs = _ends(first, first.outputs)
    if len(condition_outputs) != 1 or condition_outputs[0].type != TensorType.BOOL:
        yield finding("flow.mismatch", scope.at(operator), "the condition subgraph does not give one BOOL")
    yield from _pairs(scope, operator, "condition input", inputs, _ends(first, first.inputs))
    yield from _pairs(scope, operator, "body input", inputs, _ends(second, second.inputs))
    yield from _pairs(scope, operator, "body output", outputs, _ends(second, second.outputs))
    yield from _pairs(scope, operator, "loop variable", inputs, outputs)


def _ends(subgraph: SubGraph, indices: tuple[int, ...]) -> list[Tensor]:
    return [subgraph.tensors[index] for index in indices]


def _pairs(
    scope: Scope, operator: Operator, what: str, ours: Sequence[Tensor | None], theirs: Sequence[Tensor]
) -> Iterator[Finding]:
    if len(ours) != len(theirs):
        message = f"{len(ours)} tensors of the operator against {len(theirs)} of the subgraph, as {what}"
        yield finding("flow.mismatch", scope.at(operator), message)
        return
    for number, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        if mine is None or mine.type != other.type or mine.element_count != other.element_count:
            message = f"{what} {number}: {_describe(mine)} against {_describe(other)}"
            yield finding("flow.mismatch", scope.at(operator), message)


def _describe(tensor: Tensor | None) -> str:
    return "an absent tensor" if tensor is None else f"{type_name(tensor.type)} {list(tensor.dims)}"


def calls_itself(model: Model) -> bool:
    """Whether the subgraphs of a model call each other in a circle. Indices out of range are not followed."""
    count = len(model.subgraphs)
    return bool(
        _find_loop(
            [
                [
                    target
                    for operator in subgraph.operators
                    for target in called_subgraphs(operator)
                    if 0 <= target < count
                ]
                for subgraph in model.subgraphs
            ]
        )
    )
