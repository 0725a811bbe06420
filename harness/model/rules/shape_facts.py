"""What the shape rules share: dimensions, options and constant values as plain numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from harness.model.graph import Operator, Tensor, TensorType
from harness.model.rules.scope import Scope

Inputs = Sequence[Tensor | None]
Outputs = Sequence[Tensor]
#: What is wrong with an operator: (code, message).
Fault = tuple[str, str]
Rule = Callable[[Scope, Operator, Inputs, Outputs], Iterator[Fault]]

MISMATCH = "shape.mismatch"
OPTION = "operator.options_value"
#: Axes, paddings, permutations: no more numbers than two for each dimension.
_MOST_VALUES = 64


def dims_of(tensor: Tensor | None) -> tuple[int, ...]:
    return tensor.dims if tensor is not None else ()


def option_of(operator: Operator, name: str, default: int = 0) -> int:
    value = operator.options.get(name, default)
    return int(value) if isinstance(value, (int, float)) else default


def int32s_of(scope: Scope, tensor: Tensor | None) -> tuple[int, ...] | None:
    """The values of a constant INT32 tensor; None where it is none."""
    if tensor is None or not scope.data_sizes[tensor.index] or tensor.type != TensorType.INT32:
        return None
    data = scope.model.buffer_data(tensor.buffer)
    count = tensor.element_count
    if not (count <= _MOST_VALUES and 0 <= 4 * count <= len(data)):
        return None
    return tuple(int.from_bytes(data[at : at + 4], "little", signed=True) for at in range(0, 4 * count, 4))


def broadcast_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
    rank = max(map(len, shapes))
    result = []
    for place in range(-rank, 0):
        sizes = {shape[place] for shape in shapes if -place <= len(shape)} - {1}
        if len(sizes) > 1:
            return None
        result.append(sizes.pop() if sizes else 1)
    return tuple(result)


def check_bias(tensors: Inputs, channels: int) -> Iterator[Fault]:
    bias = tensors[0] if tensors else None
    if bias is not None and bias.element_count != channels:
        yield MISMATCH, f"bias {list(bias.dims)} for {channels} channels"
