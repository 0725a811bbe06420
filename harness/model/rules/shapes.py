"""The shapes of an operator's tensors against each other. TFLM checks few of them and computes past the ends of the
rest; each rule here is a condition of the kernel's Prepare, or one that its Eval takes for granted."""

from __future__ import annotations

import math
from collections.abc import Iterator

from harness.model.codes import finding
from harness.model.finding import Finding
from harness.model.graph import Operator, TensorType
from harness.model.kernel import Kernel
from harness.model.rules.scope import Scope
from harness.model.rules.shape_facts import MISMATCH, Fault, Inputs, Outputs, Rule, broadcast_shape, dims_of
from harness.model.rules.shape_movement import MOVEMENT_RULES
from harness.model.rules.shape_products import PRODUCT_RULES
from harness.model.rules.shape_windows import WINDOW_RULES
from harness.model.support import CMSIS_NN, CMSIS_NN_FOUR_DIMENSIONS

#: Where an operator's data is, if it is not the first input.
_DATA_PLACES = {"SPLIT": 1, "TRANSPOSE_CONV": 2, "EMBEDDING_LOOKUP": 1}
#: Operators whose first input may be of size 0 though the output is not.
_EMPTY_INPUT = frozenset(
    {"ASSIGN_VARIABLE", "BROADCAST_ARGS", "CONCATENATION", "FILL", "IF", "READ_VARIABLE", "SHAPE", "WHILE"}
)


def check_shapes(
    scope: Scope, operator: Operator, kernel: Kernel, inputs: Inputs, outputs: Outputs
) -> Iterator[Finding]:
    """``inputs`` and ``outputs`` are of types and ranks that the kernel takes, all their dimensions are known."""
    for tensor in outputs:
        if 0 in tensor.dims and tensor.dims != (0,):
            yield finding("shape.zero", scope.at(operator, tensor.index), f"output of shape {list(tensor.dims)}")
            return
    if scope.kernels == CMSIS_NN and operator.name in CMSIS_NN_FOUR_DIMENSIONS:
        wide = next(
            (t for t in (*inputs, *outputs) if t is not None and len(t.dims) > 4 and t.type == outputs[0].type), None
        )
        if wide is not None and wide.type == TensorType.INT8:
            message = f"{len(wide.dims)} dimensions; the int8 kernel of CMSIS-NN takes 4"
            yield finding("shape.rank", scope.at(operator, wide.index), message)
            return
    place = _DATA_PLACES.get(operator.name, 0)
    data = inputs[place] if place < len(inputs) else None
    if (
        data is not None
        and 0 in data.dims
        and operator.name not in _EMPTY_INPUT
        and outputs
        and outputs[0].element_count
    ):
        message = f"an input of shape {list(data.dims)}, an output of shape {list(outputs[0].dims)}"
        yield finding(MISMATCH, scope.at(operator, data.index), message)
        return
    rule = _RULES.get(operator.name)
    if rule is None and kernel.broadcast_rank and len(inputs) >= 2:
        faults = _broadcast(kernel.broadcast_rank, inputs, outputs)
    else:
        faults = rule(scope, operator, inputs, outputs) if rule else iter(())
    for code, message in faults:
        yield finding(code, scope.at(operator), message)


def _same_count(scope: Scope, operator: Operator, inputs: Inputs, outputs: Outputs) -> Iterator[Fault]:
    del scope, operator
    source = inputs[0]
    if source is not None and source.element_count != outputs[0].element_count:
        yield MISMATCH, f"{list(source.dims)} → {list(outputs[0].dims)}: not the same number of elements"


def _broadcast(most: int, inputs: Inputs, outputs: Outputs) -> Iterator[Fault]:
    shapes = [dims_of(tensor) for tensor in inputs]
    expected = broadcast_shape(shapes)
    text = f"{' and '.join(str(list(shape)) for shape in shapes)} → {list(outputs[0].dims)}"
    if expected is None:
        yield MISMATCH, f"{text}: the inputs do not broadcast"
    elif math.prod(expected) != outputs[0].element_count:
        yield MISMATCH, f"{text}: broadcasting gives {list(expected)}"
    elif len(set(shapes)) > 1 and len(expected) > most:
        yield "shape.rank", f"{text}: the kernel broadcasts up to {most} dimensions"


_SAME_COUNT = """
    ABS CAST CEIL COS CUMSUM DEQUANTIZE DYNAMIC_UPDATE_SLICE ELU EXP EXPAND_DIMS FLOOR HARD_SWISH L2_NORMALIZATION
    LEAKY_RELU LOG LOGICAL_NOT LOGISTIC LOG_SOFTMAX NEG QUANTIZE RELU RELU6 RESHAPE REVERSE_V2 ROUND RSQRT SIN SOFTMAX
    SQRT SQUARE TANH ZEROS_LIKE
"""
_RULES: dict[str, Rule] = {
    **{name: _same_count for line in _SAME_COUNT.splitlines() for name in line.split()},
    **MOVEMENT_RULES,
    **PRODUCT_RULES,
    **WINDOW_RULES,
}
