"""What a runner has to know of a model: its state, its resource variables, the operators to register."""

from __future__ import annotations

from harness.model.graph import Model, OperatorCode, OptionValue

#: Builtin operators that change a variable tensor among their inputs.
_CHANGES_STATE = frozenset({"SVDF", "UNIDIRECTIONAL_SEQUENCE_LSTM"})
#: Custom operators that keep data between runs: signal/micro/kernels and kernels/circular_buffer.cc of TFLM.
_STATEFUL_CUSTOM = frozenset(
    {
        "CIRCULAR_BUFFER",
        "SignalDelay",
        "SignalFilterBankSpectralSubtraction",
        "SignalFramer",
        "SignalOverlapAdd",
        "SignalStacker",
    }
)


def is_stateful(model: Model) -> bool:
    """Whether a run can depend on the runs before it: LSTM and SVDF states, resource variables, signal buffers."""
    for subgraph, operator in model.operators():
        name = operator.name
        if operator.opcode.name == "CUSTOM":
            if name in _STATEFUL_CUSTOM:
                return True
        elif name == "ASSIGN_VARIABLE" or (
            name in _CHANGES_STATE
            and any(index >= 0 and subgraph.tensors[index].is_variable for index in operator.inputs)
        ):
            return True
    return False


def resource_variable_count(model: Model) -> int:
    """How many resource variables the interpreter needs: VAR_HANDLE operators over all subgraphs, each pair of
    container and shared name once (MicroResourceVariables::CreateIdIfNoneFound)."""
    found: dict[OptionValue, set[OptionValue]] = {}  # name → containers
    for _, operator in model.operators():
        if operator.name != "VAR_HANDLE":
            continue
        container, name = operator.options.get("container"), operator.options.get("shared_name")
        # a handle without a container finds the variable of that name in any container
        if container is not None or name not in found:
            found.setdefault(name, set()).add(container)
    return sum(map(len, found.values()))


def used_operators(model: Model) -> tuple[OperatorCode, ...]:
    """The operators that an op resolver has to register: one code per builtin operator or custom name, over all
    subgraphs, in the order of their first use. Versions do not count: TFLM registers an operator once."""
    found: dict[tuple[int, str | None], OperatorCode] = {}
    for _, operator in model.operators():
        code = operator.opcode
        found.setdefault((code.code, code.custom_name if code.name == "CUSTOM" else None), code)
    return tuple(found.values())
