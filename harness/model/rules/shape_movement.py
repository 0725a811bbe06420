"""Shapes of operators that move values: joining, cutting, padding, picking, reducing."""

from __future__ import annotations

import math
from collections.abc import Iterator

from harness.model.graph import Operator
from harness.model.rules.scope import Scope
from harness.model.rules.shape_facts import (
    MISMATCH,
    OPTION,
    Fault,
    Inputs,
    Outputs,
    Rule,
    dims_of,
    int32s_of,
    option_of,
)


def _concatenation(scope: Scope, operator: Operator, inputs: Inputs, outputs: Outputs) -> Iterator[Fault]:
    del scope
    output = outputs[0].dims
    axis = option_of(operator, "axis")
    axis += len(output) if axis < 0 else 0
    shapes = [dims_of(tensor) for tensor in inputs]
    if option_of(operator, "fused_activation_function"):
        yield OPTION, "a fused activation; the kernel takes none"
    if not 0 <= axis < len(output) or any(len(shape) != len(output) for shape in shapes):
        yield MISMATCH, f"axis {axis} with {len(output)} output dimensions: the ranks differ or the axis is outside"
        return
    rest = output[:axis] + output[axis + 1 :]
    if any(shape[:axis] + shape[axis + 1 :] != rest for shape in shapes):
        yield MISMATCH, f"inputs and output {list(output)} differ outside axis {axis}"
    elif sum(shape[axis] for shape in shapes) != output[axis]:
        yield MISMATCH, f"axis {axis}: the inputs have {sum(shape[axis] for shape in shapes)}, output {output[axis]}"


def _split(scope: Scope, operator: Operator, inputs: Inputs, outputs: Outputs) -> Iterator[Fault]:
    axis_at, source_at = (0, 1) if operator.name == "SPLIT" else (2, 0)
    source = inputs[source_at]
    axis = int32s_of(scope, inputs[axis_at])
    rank = len(dims_of(source))
    if axis and not -rank <= axis[0] < rank:
        yield MISMATCH, f"axis {axis[0]} with {rank} dimensions"
    if source is not None and source.element_count != sum(tensor.element_count for tensor in outputs):
        yield MISMATCH, f"the {len(outputs)} outputs together are not as large as the input {list(source.dims)}"


def _pack(scope: Scope, operator: Operator, inputs: Inputs, outputs: Outputs) -> Iterator[Fault]:
    del scope, operator
    if sum(tensor.element_count for tensor in inputs if tensor is not None) != outputs[0].element_count:
        yield MISMATCH, f"the {len(inputs)} inputs together are not as large as the output {list(outputs[0].dims)}"


def _unpack(scope: Scope, operator: Operator, inputs: Inputs, outputs: Outputs) -> Iterator[Fault]:
    del scope, operator
    source = inputs[0]
    if source is not None and outputs and source.element_count != sum(t.element_count for t in outputs):
        yield MISMATCH, f"the {len(outputs)} outputs together are not as large as the input {list(source.dims)}"


def _pad(scope: Scope, operator: Operator, inputs: Inputs, outputs: Outputs) -> Iterator[Fault]:
    del operator
    source, output = dims_of(inputs[0]), outputs[0].dims
    amounts = int32s_of(scope, inputs[1])
    if amounts is None:
        return
    if len(amounts) != 2 * len(source) or len(output) != len(source):
        yield MISMATCH, f"{len(amounts)} padding amounts for {len(source)} dimensions"
        return
    expected = [size + amounts[2 * axis] + amounts[2 * axis + 1] for axis, size in enumerate(source)]
    if list(output) != expected:
        yield MISMATCH, f"{list(source)} padded is {expected}, the output says {list(output)}"


def _blocks(scope: Scope, operator: Operator, inputs: Inputs, outputs: Outputs) -> Iterator[Fault]:
    del scope
    block = option_of(operator, "block_size")
    large, small = (
        (outputs[0].dims, dims_of(inputs[0]))
        if operator.name == "DEPTH_TO_SPACE"
        else (
            dims_of(inputs[0]),
            outputs[0].dims,
        )
    )
    if block <= 0:
        yield OPTION, f"block_size {block}: must be positive"
    elif large[1:3] != (small[1] * block, small[2] * block) or large[3] * block * block != small[3]:
        yield MISMATCH, f"{list(dims_of(inputs[0]))} → {list(outputs[0].dims)} with block_size {block}"


def _transpose(scope: Scope, operator: Operator, inputs: Inputs, outputs: Outputs) -> Iterator[Fault]:
    del operator
    source, output = dims_of(inputs[0]), outputs[0].dims
    order = int32s_of(scope, inputs[1])
    if order is None:
        return
    if sorted(order) != list(range(len(source))):
        yield MISMATCH, f"permutation {list(order)} of {len(source)} dimensions"
    elif tuple(source[axis] for axis in order) != output:
        yield MISMATCH, f"{list(source)} with permutation {list(order)} is not {list(output)}"


def _squeeze(scope: Scope, operator: Operator, inputs: Inputs, outputs: Outputs) -> Iterator[Fault]:
    del scope
    source, output = dims_of(inputs[0]), outputs[0].dims
    option = operator.options.get("squeeze_dims")
    axes = option if isinstance(option, tuple) else ()
    places = {int(axis) + (len(source) if axis < 0 else 0) for axis in axes}
    if any(not 0 <= place < len(source) or source[place] != 1 for place in places):
        yield OPTION, f"squeeze_dims {list(axes)} of {list(source)}: only dimensions of size 1 can be squeezed"
        return
    kept = [size for place, size in enumerate(source) if (place not in places if places else size != 1)]
    if len(output) < len(kept) or any(have < size for have, size in zip(output, kept, strict=False)):
        yield MISMATCH, f"{list(source)} squeezed is {kept}, the output says {list(output)}"
        return
    if math.prod(source) != outputs[0].element_count:
        yield MISMATCH, f"{list(source)} → {list(output)}: not the same number of elements"


def _reduce(scope: Scope, operator: Operator, inputs: Inputs, outputs: Outputs) -> Iterator[Fault]:
    del operator
    source, output = dims_of(inputs[0]), outputs[0]
    axes = int32s_of(scope, inputs[1])
    if axes is None:
        return
    places = {axis + (len(source) if axis < 0 else 0) for axis in axes}
    if any(not 0 <= place < len(source) for place in places):
        yield MISMATCH, f"axes {list(axes)} of {list(source)}: outside"
    elif math.prod(size for place, size in enumerate(source) if place not in places) != output.element_count:
        yield MISMATCH, f"{list(source)} reduced over {list(axes)} is not {list(output.dims)}"


def _gather(scope: Scope, operator: Operator, inputs: Inputs, outputs: Outputs) -> Iterator[Fault]:
    del scope
    source, picks = dims_of(inputs[0]), dims_of(inputs[1])
    axis, batches = option_of(operator, "axis"), option_of(operator, "batch_dims")
    axis += len(source) if axis < 0 else 0
    batches += len(picks) if batches < 0 else 0
    if not 0 <= batches <= axis < len(source) or batches > len(picks):
        yield MISMATCH, f"axis {axis}, batch_dims {batches} of {list(source)} and {list(picks)}"
    elif math.prod(source[:axis] + picks[batches:] + source[axis + 1 :]) != outputs[0].element_count:
        yield MISMATCH, f"{list(picks)} picks out of {list(source)} at axis {axis} are not {list(outputs[0].dims)}"


def _gather_nd(scope: Scope, operator: Operator, inputs: Inputs, outputs: Outputs) -> Iterator[Fault]:
    del scope, operator
    source, picks = dims_of(inputs[0]), dims_of(inputs[1])
    depth = picks[-1]
    if depth > len(source):
        yield MISMATCH, f"indices of {depth} numbers into {len(source)} dimensions"
    elif math.prod(picks[:-1] + source[depth:]) != outputs[0].element_count:
        yield MISMATCH, f"{list(picks)} indices into {list(source)} do not give {list(outputs[0].dims)}"


def _slice(scope: Scope, operator: Operator, inputs: Inputs, outputs: Outputs) -> Iterator[Fault]:
    del operator
    source, output = dims_of(inputs[0]), outputs[0].dims
    begin, size = int32s_of(scope, inputs[1]), int32s_of(scope, inputs[2])
    if begin is None or size is None:
        return
    if not len(begin) == len(size) == len(source) == len(output):
        yield MISMATCH, f"begin {list(begin)} and size {list(size)} of {list(source)}"
        return
    expected = tuple(
        full - start if count == -1 else count for full, start, count in zip(source, begin, size, strict=True)
    )
    inside = all(
        start >= 0 and start + count <= full for full, start, count in zip(source, begin, expected, strict=True)
    )
    if not inside or expected != output:
        yield MISMATCH, f"begin {list(begin)}, size {list(size)} of {list(source)} is not {list(output)}"


def _shape(scope: Scope, operator: Operator, inputs: Inputs, outputs: Outputs) -> Iterator[Fault]:
    del scope, operator
    rank = len(dims_of(inputs[0]))
    if outputs[0].element_count != rank:
        yield MISMATCH, f"the shape of {rank} dimensions does not fill {list(outputs[0].dims)}"


MOVEMENT_RULES: dict[str, Rule] = {
    **dict.fromkeys(("ARG_MAX", "ARG_MIN", "MEAN", "REDUCE_ALL", "REDUCE_MAX", "REDUCE_MIN", "SUM"), _reduce),
    "CONCATENATION": _concatenation,
    "DEPTH_TO_SPACE": _blocks,
    "GATHER": _gather,
    "GATHER_ND": _gather_nd,
    "MIRROR_PAD": _pad,
    "PACK": _pack,
    "PAD": _pad,
    "PADV2": _pad,
    "SHAPE": _shape,
    "SLICE": _slice,
    "SPACE_TO_DEPTH": _blocks,
    "SPLIT": _split,
    "SPLIT_V": _split,
    "SQUEEZE": _squeeze,
    "TRANSPOSE": _transpose,
    "UNPACK": _unpack,
}
