"""Operators one by one: is there a kernel, does it take these types, ranks, options."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.model.codes import finding
from harness.model.finding import Finding
from harness.model.graph import Model, Operator, OptionValue, Tensor, TensorType
from harness.model.kernel import MAX_RANK, Kernel, Match, match_types
from harness.model.rules.scope import Scope
from harness.model.sizes import type_name
from harness.model.support import KERNEL_SETS, find_kernel
from harness.model.versions import newest_version
from harness.units import quoted, safe_text

#: So many variables are held against each other: a model for a microcontroller has a few.
_MOST_RESOURCES = 1000
#: Custom operators that are compiled code for an accelerator, by how their names begin.
_ACCELERATORS = {
    "ethos-u": "an Arm Ethos-U",
    "edgetpu-custom-op": "a Google Edge TPU",
    "DISPATCH_OP": "an NPU (LiteRT dispatch)",
    "NPU_OP": "an NPU",
}
#: Inputs of TFLM's LSTM that must be absent: peephole 9-11, projection 16-17, layer norm 20-23 (lstm_shared.h).
_LSTM_VARIANT_INPUTS = {
    **dict.fromkeys(range(9, 12), "peephole weights"),
    **dict.fromkeys(range(16, 18), "projection"),
    **dict.fromkeys(range(20, 24), "layer norm coefficients"),
}
#: State inputs that the kernel wants to be variable tensors.
_STATE_INPUTS = {"UNIDIRECTIONAL_SEQUENCE_LSTM": (18, 19), "SVDF": (4,)}
#: The options table of operators whose kernels compute with it. TFLM takes a table of another type as absent, and an
#: absent one as zeros. With True the kernel is wrong without it.
_OPTIONS_TABLES: dict[str, tuple[str, bool]] = {
    "CONV_2D": ("Conv2DOptions", True),
    "DEPTHWISE_CONV_2D": ("DepthwiseConv2DOptions", True),
    "TRANSPOSE_CONV": ("TransposeConvOptions", True),
    "AVERAGE_POOL_2D": ("Pool2DOptions", True),
    "MAX_POOL_2D": ("Pool2DOptions", True),
    "L2_POOL_2D": ("Pool2DOptions", True),
    "SOFTMAX": ("SoftmaxOptions", True),
    "LEAKY_RELU": ("LeakyReluOptions", True),
    "SVDF": ("SVDFOptions", True),
    "SPACE_TO_DEPTH": ("SpaceToDepthOptions", True),
    "DEPTH_TO_SPACE": ("DepthToSpaceOptions", True),
    "FULLY_CONNECTED": ("FullyConnectedOptions", False),
    "CONCATENATION": ("ConcatenationOptions", False),
    "BATCH_MATMUL": ("BatchMatMulOptions", False),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": ("UnidirectionalSequenceLSTMOptions", False),
    "STRIDED_SLICE": ("StridedSliceOptions", False),
    "GATHER": ("GatherOptions", False),
    "PACK": ("PackOptions", False),
    "UNPACK": ("UnpackOptions", False),
    "ADD": ("AddOptions", False),
    "SUB": ("SubOptions", False),
    "MUL": ("MulOptions", False),
    "DIV": ("DivOptions", False),
}
#: ActivationFunctionType of schema.fbs; CalculateActivationRange computes TANH and SIGN_BIT as if there were none.
_FUSED_ACTIVATIONS = frozenset(range(4))
#: Inputs that are tensors of weights by nature: the rest of an operator's tensors are activations.
_WEIGHT_INPUTS = {
    "CONV_2D": {1, 2},
    "DEPTHWISE_CONV_2D": {1, 2},
    "FULLY_CONNECTED": {1, 2},
    "TRANSPOSE_CONV": {0, 1, 3},
    "SVDF": {1, 2, 3, 4},
    "UNIDIRECTIONAL_SEQUENCE_LSTM": set(range(1, 24)),
    "BATCH_MATMUL": {1},
    "PRELU": {1},
}


def check_kernels(model: Model, kernels: str) -> Iterator[Finding]:
    """One finding for each operator that has no kernel: all of them at once, whatever else is wrong."""
    places: dict[tuple[str, bool, str | None], list[str]] = {}
    used: set[int] = set()
    for subgraph, operator in model.operators():
        used.add(operator.opcode.index)
        custom = operator.opcode.name == "CUSTOM"
        unnamed = custom and not operator.opcode.custom_name
        if unnamed or find_kernel(operator.name, custom=custom, kernels=kernels) is None:
            key = (operator.name, custom, operator.opcode.custom_name)
            places.setdefault(key, []).append(f"subgraph {subgraph.index}, operator {operator.index}")
    for (name, custom, custom_name), where in places.items():
        yield _missing(name, custom, custom_name, where, kernels)
    yield from _codes(model, used)


def check_resources(model: Model) -> Iterator[Finding]:
    """Names of resource variables, as MicroResourceVariables::FindId compares them: with strcmp, null or not."""
    known: list[tuple[OptionValue, OptionValue]] = []
    for subgraph, operator in model.operators():
        if operator.name != "VAR_HANDLE":
            continue
        place = f"subgraph {subgraph.index}, operator {operator.index} (VAR_HANDLE)"
        container, name = operator.options.get("container"), operator.options.get("shared_name")
        fault = _first_null(container, name, known)
        if fault:
            yield finding("resource.names", place, fault)
            return
        if name is None:
            yield finding("resource.unnamed", place, "the resource variable has no shared_name")
        known.append((container, name))
        if len(known) > _MOST_RESOURCES:
            return


def _first_null(
    container: OptionValue, name: OptionValue, known: Sequence[tuple[OptionValue, OptionValue]]
) -> str | None:
    """The null pointer that TFLM would compare when it looks this variable up among those it knows."""
    for other_container, other_name in known:
        if container is not None and other_container is None:
            return "it has a container, and one before it has none"
        if container is not None and container != other_container:
            continue
        if name is None or other_name is None:
            return "it has no shared_name" if name is None else "one before it has no shared_name"
        if name == other_name:
            return None
    return None


def _missing(name: str, custom: bool, custom_name: str | None, where: list[str], kernels: str) -> Finding:
    place = where[0] + (f" and {len(where) - 1:,} more" if len(where) > 1 else "")
    shown = safe_text(name, 60)
    if not custom:
        others = [other for other in KERNEL_SETS if other != kernels and find_kernel(name, custom=False, kernels=other)]
        only = f"; the kernels {others[0]} have it" if others else ""
        message = f"TFLM has no kernel for {shown} in the kernels {kernels}{only}"
        return finding("operator.unsupported", place, message)
    if not custom_name:
        return finding("operator.custom_unnamed", place, "a custom operator without custom_code")
    for start, what in _ACCELERATORS.items():
        if custom_name.startswith(start):
            message = f"custom operator {quoted(custom_name, 60)} is code for {what}"
            return finding("operator.accelerator", place, message)
    if custom_name.startswith("Flex"):
        message = f"custom operator {quoted(custom_name, 60)} needs TensorFlow itself (the Flex delegate)"
        return finding("operator.flex", place, message)
    return finding("operator.custom", place, f"TFLM registers no custom operator {quoted(custom_name, 60)}")


def _codes(model: Model, used: set[int]) -> Iterator[Finding]:
    seen: dict[tuple[int, str | None], int] = {}
    unused: list[str] = []
    repeated: list[str] = []
    for code in model.operator_codes:
        name = safe_text(code.custom_name or code.name, 60)
        if code.index not in used:
            unused.append(name)
            continue
        if seen.setdefault((code.code, code.custom_name), code.index) != code.index:
            repeated.append(name)
        newest = newest_version(code.name)
        if code.name != "CUSTOM" and not 1 <= code.version <= newest:
            message = f"{name} has version {code.version}; known are 1 to {newest}"
            yield finding("operator.version", f"operator code {code.index}", message)
    if unused:
        yield finding("operator.unused_code", "operator codes", f"no operator is a {_some(unused)}")
    if repeated:
        yield finding("operator.duplicate_codes", "operator codes", f"named more than once: {_some(repeated)}")


def _some(names: list[str]) -> str:
    distinct = list(dict.fromkeys(names))
    return ", ".join(distinct[:8]) + (f" and {len(distinct) - 8} more" if len(distinct) > 8 else "")


def check_operator(
    scope: Scope, operator: Operator, kernel: Kernel, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
) -> Iterator[Finding]:
    """What the kernel of one operator asks for."""
    if operator.has_custom_options and operator.opcode.name != "CUSTOM":
        yield finding("operator.custom_options", scope.at(operator), "a builtin operator has custom options")
    activation = operator.options.get("fused_activation_function", 0)
    if activation not in _FUSED_ACTIVATIONS and operator.name != "UNIDIRECTIONAL_SEQUENCE_LSTM":
        message = f"fused activation {activation!r}; the kernels know 0 to 3 (none, RELU, RELU_N1_TO_1, RELU6)"
        yield finding("operator.options_value", scope.at(operator), message)
    if operator.has_external_options:
        yield finding("operator.external_options", scope.at(operator), "the custom options lie outside the flatbuffer")
    table, needed = _OPTIONS_TABLES.get(operator.name, ("", False))
    if table and operator.options_table != table and (needed or operator.options_type):
        message = f"the options are {operator.options_table or 'absent'}; the kernel wants {table}"
        yield finding("operator.options_missing", scope.at(operator), message)
    if kernel.max_inputs and len(inputs) > kernel.max_inputs:
        message = f"{len(inputs)} inputs; the kernel takes {kernel.max_inputs}"
        yield finding("operator.too_many_inputs", scope.at(operator), message)
    mismatch = _types(scope, operator, kernel, inputs, outputs)
    if mismatch is not None:
        yield mismatch
        return
    yield from _ranks(scope, operator, kernel, inputs, outputs)
    for place in kernel.constants:
        tensor = inputs[place] if place < len(inputs) else None
        if tensor is not None and not scope.data_sizes[tensor.index] and 0 not in tensor.dims:
            message = f"input {place} is no constant"
            yield finding("operator.input_not_constant", scope.at(operator, tensor.index), message)
    yield from _state(scope, operator, inputs)
    for index in operator.intermediates:
        if 0 not in scope.tensors[index].dims:
            message = f"intermediate tensor of shape {list(scope.tensors[index].dims)}"
            yield finding("operator.intermediate", scope.at(operator, index), message)


def _types(
    scope: Scope, operator: Operator, kernel: Kernel, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
) -> Finding | None:
    input_types = tuple([None if tensor is None else int(tensor.type) for tensor in inputs])
    output_types = tuple([int(tensor.type) for tensor in outputs])
    found = match_types(kernel, input_types, output_types)
    if found is Match.YES:
        return None
    have = ", ".join("absent" if tensor is None else type_name(tensor.type) for tensor in inputs[:12]) or "nothing"
    gives = ", ".join(type_name(tensor.type) for tensor in outputs[:12]) or "nothing"
    message = f"{have} → {gives}; TFLM takes {kernel.text}"
    if found is Match.COUNT:
        return finding("operator.inputs", scope.at(operator), message)
    code, remedy = _type_code(scope, operator, inputs, outputs), ""
    quantisable = {int(TensorType.FLOAT32), int(TensorType.INT16)} & {*input_types, *output_types}
    if code == "type.unsupported" and not (quantisable and "INT8" in kernel.text):
        # quantisation leaves other whole numbers as they are, and brings no kernel that is not there
        remedy = f"cast to the types that TFLM takes, or rewrite the {operator.name}"
    return finding(code, scope.at(operator), message, remedy)


def _type_code(scope: Scope, operator: Operator, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]) -> str:
    weights = _WEIGHT_INPUTS.get(operator.name, set())
    present = [tensor for tensor in (*inputs, *outputs) if tensor is not None]
    types = {tensor.type for tensor in present}
    if types & {TensorType.FLOAT16, TensorType.BFLOAT16}:
        return "type.float16"
    if TensorType.UINT8 in types and operator.name not in {"QUANTIZE", "DEQUANTIZE"}:
        return "type.uint8"
    if any(t.type in {TensorType.INT4, TensorType.INT2} and not scope.data_sizes[t.index] for t in present):
        return "type.int4_activation"
    activations = {t.type for place, t in enumerate(inputs) if t is not None and place not in weights}
    if TensorType.FLOAT32 in activations and any(
        t is not None and t.type in {TensorType.INT8, TensorType.INT4}
        for place, t in enumerate(inputs)
        if place in weights
    ):
        return "type.hybrid"
    values = {t.type for t in present if t.type not in {TensorType.INT32, TensorType.INT64, TensorType.BOOL}}
    return "type.mismatch" if len(values) > 1 else "type.unsupported"


def _ranks(
    scope: Scope, operator: Operator, kernel: Kernel, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
) -> Iterator[Finding]:
    for tensors, limits, what in (
        (inputs, kernel.input_ranks, "input"),
        (outputs, kernel.output_ranks, "output"),
    ):
        for place, least, most in limits:
            tensor = tensors[place] if place < len(tensors) else None
            if tensor is not None and not least <= len(tensor.dims) <= most:
                wanted = f"{least}" if least == most else f"{least} to {most}"
                message = f"{what} {place} has {len(tensor.dims)} dimensions; the kernel wants {wanted}"
                yield finding("shape.rank", scope.at(operator, tensor.index), message)
    for tensor in (*inputs, *outputs):
        if tensor is not None and len(tensor.dims) > MAX_RANK:
            message = f"{len(tensor.dims)} dimensions; the kernels take up to {MAX_RANK}"
            yield finding("shape.rank", scope.at(operator, tensor.index), message)


def _state(scope: Scope, operator: Operator, inputs: Sequence[Tensor | None]) -> Iterator[Finding]:
    if operator.name == "UNIDIRECTIONAL_SEQUENCE_LSTM":
        for place, what in _LSTM_VARIANT_INPUTS.items():
            tensor = inputs[place] if place < len(inputs) else None
            if tensor is not None:
                message = f"input {place} ({what}) must be absent (-1)"
                yield finding("operator.lstm_variant", scope.at(operator, tensor.index), message)
    for place in _STATE_INPUTS.get(operator.name, ()):
        tensor = inputs[place] if place < len(inputs) else None
        if tensor is not None and not tensor.is_variable:
            message = f"input {place} is the state, and no variable tensor"
            yield finding("operator.state_not_variable", scope.at(operator, tensor.index), message)
