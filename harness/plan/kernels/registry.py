"""Which rule plans which operator: by TFLM's names (micro_mutable_op_resolver.h) and the kernel set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.model.graph import Operator
from harness.plan.node import Node
from harness.plan.target import Kernels

Rule = Callable[[Node], None]


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel's Init and Prepare as rules; None where the kernel has none."""

    init: Rule | None
    prepare: Rule | None


#: Builtin and custom operators apart: a custom operator may have a builtin's name.
_KERNELS: dict[tuple[bool, str, Kernels], Kernel] = {}


def register(
    *operators: str, init: str | Rule | None = None, kernels: Kernels = Kernels.REFERENCE, custom: bool = False
) -> Callable[[Rule], Rule]:
    """Decorates a Prepare rule. ``init`` names the struct that Init allocates, or is a rule of its own."""

    def decorate(prepare: Rule) -> Rule:
        add(*operators, init=init, prepare=prepare, kernels=kernels, custom=custom)
        return prepare

    return decorate


def add(
    *operators: str,
    init: str | Rule | None = None,
    prepare: Rule | None = None,
    kernels: Kernels = Kernels.REFERENCE,
    custom: bool = False,
) -> None:
    rule = _allocates(init) if isinstance(init, str) else init
    for operator in operators:
        assert (custom, operator, kernels) not in _KERNELS, operator
        _KERNELS[custom, operator, kernels] = Kernel(rule, prepare)


def kernel_for(operator: Operator, kernels: Kernels) -> Kernel | None:
    """The kernel of an operator; the reference one where the set has none of its own; None without a rule."""
    custom = operator.opcode.name == "CUSTOM"
    name = operator.name
    return _KERNELS.get((custom, name, kernels)) or _KERNELS.get((custom, name, Kernels.REFERENCE))


def planned_operators(custom: bool = False) -> frozenset[str]:
    """The builtin (or custom) operators that have a rule."""
    return frozenset(operator for is_custom, operator, _ in _KERNELS if is_custom == custom)


def _allocates(struct: str) -> Rule:
    return lambda node: node.persist_struct(struct)
