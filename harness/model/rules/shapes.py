"""The shapes of an operator's tensors against each other. TFLM checks few of them and computes past the ends of the
rest; each rule here is a condition of the kernel's Prepare, or one that its Eval takes for granted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from harness.model.codes import finding
from harness.model.finding import Finding
from harness.model.graph import Operator, Tensor
from harness.model.kernel import Kernel
from harness.model.rules.scope import Scope

Inputs = Sequence[Tensor | None]
Outputs = Sequence[Tensor]
#: What is wrong with an operator: (code, message).
Fault = tuple[str, str]
Rule = Callable[[Scope, Operator, Inputs, Outputs], Iterator[Fault]]

_MISMATCH = "shape.mismatch"
_OPTION = "operator.options_value"
_SAME, _VALID = 0, 1  # enum Padding of schema.fbs


def check_shapes(
    scope: Scope, operator: Operator, kernel: Kernel, inputs: Inputs, outputs: Outputs
) -> Iterator[Finding]:
    """``inputs`` and ``outputs`` are of types and ranks that the kernel takes, all their dimensions are known."""
    for tensor in outputs:
        if 0 in tensor.dims and tensor.dims != (0,):
            yield finding("shape.zero", scope.at(operator, tensor.index), f"output of shape {list(tensor.dims)}")
            return
    rule = _RULES.get(operator.name)
    if rule is None and kernel.broadcast_rank and len(inputs) >= 2:
        faults = _broadcast(kernel.broadcast_rank, inputs, outputs)
    else:
        faults = rule(scope, operator, inputs, outputs) if rule else iter(())
    for code, message in faults:
        yield finding(code, scope.at(operator), message)


def _dims(tensor: Tensor | None) -> tuple[int, ...]:
    return tensor.dims if tensor is not None else ()


def _option(operator: Operator, name: str, default: int = 0) -> int:
    value = operator.options.get(name, default)
    return int(value) if isinstance(value, (int, float)) else default


def _int32s(scope: Scope, tensor: Tensor | None) -> tuple[int, ...] | None:
    """The values of a constant INT32 tensor; None where it is none."""
    if tensor is None or not scope.data_sizes[tensor.index] or tensor.type != 2:
        return None
    data = scope.model.buffer_data(tensor.buffer)
    count = tensor.element_count
    if not 0 <= 4 * count <= len(data):
        return None
    return tuple(int.from_bytes(data[at : at + 4], "little", signed=True) for at in range(0, 4 * count, 4))


def _same_count(scope: Scope, operator: Operator, inputs: Inputs, outputs: Outputs) -> Iterator[Fault]:
    del scope, operator
    source = inputs[0]
    if source is not None and source.element_count != outputs[0].element_count:
        yield _MISMATCH, f"{list(source.dims)} → {list(outputs[0].dims)}: not the same number of elements"


def _squeeze(scope: Scope, operator: Operator, inputs: Inputs, outputs: Outputs) -> Iterator[Fault]:
    source, output = _dims(inputs[0]), outputs[0].dims
    option = operator.options.get("squeeze_dims")
    axes = option if isinstance(option, tuple) else ()
    places = {int(axis) + (len(source) if axis < 0 else 0) for axis in axes}
    if any(not 0 <= place < len(source) or source[place] != 1 for place in places):
        yield _OPTION, f"squeeze_dims {list(axes)} of {list(source)}: only dimensions of size 1 can be squeezed"
        return
    kept = [size for place, size in enumerate(source) if (place not in places if places else size != 1)]
    if len(output) < len(kept) or any(have < size for have, size in zip(output, kept, strict=False)):
        yield _MISMATCH, f"{list(source)} squeezed is {kept}, the output says {list(output)}"
        return
    yield from _same_count(scope, operator, inputs, outputs)


def _broadcast(most: int, inputs: Inputs, outputs: Outputs) -> Iterator[Fault]:
    shapes = [_dims(tensor) for tensor in inputs]
    expected = _broadcast_shape(shapes)
    text = f"{' and '.join(str(list(shape)) for shape in shapes)} → {list(outputs[0].dims)}"
    if expected is None:
        yield _MISMATCH, f"{text}: the inputs do not broadcast"
    elif math.prod(expected) != outputs[0].element_count:
        yield _MISMATCH, f"{text}: broadcasting gives {list(expected)}"
    elif len(set(shapes)) > 1 and len(expected) > most:
        yield "shape.rank", f"{text}: the kernel broadcasts up to {most} dimensions"


def _broadcast_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
    rank = max(map(len, shapes))
    result = []
    for place in range(-rank, 0):
        sizes = {shape[place] for shape in shapes if -place <= len(shape)} - {1}
        if len(sizes) > 1:
            return None
        result.append(sizes.pop() if sizes else 1)
    return tuple(result)


def _fully_connected(scope: Scope, operator: Operator, inputs: Inputs, outputs: Outputs) -> Iterator[Fault]:
    del scope, operator
    weights, source, output = _dims(inputs[1]), _dims(inputs[0]), outputs[0].dims
    units, depth = weights[-2], weights[-1]
    text = f"input {list(source)}, weights {list(weights)} → {list(output)}"
    if not output or output[-1] != units:
        yield _MISMATCH, f"{text}: the last output dimension is not the {units} units"
    elif math.prod(source) != math.prod(output[:-1]) * depth:
        yield _MISMATCH, f"{text}: the input is not {math.prod(output[:-1])} rows of {depth}"
    yield from _bias(inputs[2:], units)


def _bias(tensors: Inputs, channels: int) -> Iterator[Fault]:
    bias = tensors[0] if tensors else None
    if bias is not None and bias.element_count != channels:
        yield _MISMATCH, f"bias {list(bias.dims)} for {channels} channels"


def _convolution(scope: Scope, operator: Operator, inputs: Inputs, outputs: Outputs) -> Iterator[Fault]:
    del scope
    source, weights, output = _dims(inputs[0]), _dims(inputs[1]), outputs[0].dims
    text = f"input {list(source)}, weights {list(weights)} → {list(output)}"
    if operator.name == "CONV_2D":
        channels, fits = weights[0], min(weights[3], source[3]) > 0 and source[3] % weights[3] == 0
        fits = fits and channels % (source[3] // weights[3]) == 0
    else:
        multiplier = _option(operator, "depth_multiplier")
        channels, fits = weights[3], source[3] > 0 and source[3] * multiplier == weights[3]
        text += f", depth_multiplier {multiplier}"
    if not fits or output[3] != channels or output[0] != source[0]:
        yield _MISMATCH, f"{text}: batches or channels do not belong together"
    yield from _window(operator, source, weights[1:3], output, text)
    yield from _bias(inputs[2:], channels)


def _pool(scope: Scope, operator: Operator, inputs: Inputs, outputs: Outputs) -> Iterator[Fault]:
    del scope
    source, output = _dims(inputs[0]), outputs[0].dims
    window = _option(operator, "filter_height"), _option(operator, "filter_width")
    text = f"input {list(source)}, window {list(window)} → {list(output)}"
    if output[0] != source[0] or output[3] != source[3]:
        yield _MISMATCH, f"{text}: batches or channels differ"
    yield from _window(operator, source, window, output, text)


def _window(
    operator: Operator, source: Sequence[int], window: Sequence[int], output: Sequence[int], text: str
) -> Iterator[Fault]:
    if "stride_h" not in operator.options:
        return  # no options: another rule's business
    strides = _option(operator, "stride_h"), _option(operator, "stride_w")
    dilations = _option(operator, "dilation_h_factor", 1), _option(operator, "dilation_w_factor", 1)
    if min(strides) <= 0 or min(dilations) <= 0 or min(window) <= 0:
        yield _OPTION, f"stride {list(strides)}, dilation {list(dilations)}, window {list(window)}: must be positive"
        return
    padding = _option(operator, "padding")
    if padding not in {_SAME, _VALID}:
        yield _OPTION, f"padding {padding} is neither SAME (0) nor VALID (1)"
        return
    for axis, (stride, dilation, size) in enumerate(zip(strides, dilations, window, strict=True), start=1):
        reach = (size - 1) * dilation + 1
        expected = -(-(source[axis] if padding == _SAME else source[axis] - reach + 1) // stride)
        if output[axis] != max(expected, 0):
            kind = "SAME" if padding == _SAME else "VALID"
            yield _MISMATCH, f"{text}: dimension {axis} should be {expected} (stride {stride}, {kind})"


def _transpose_convolution(scope: Scope, operator: Operator, inputs: Inputs, outputs: Outputs) -> Iterator[Fault]:
    del scope
    source, weights, output = _dims(inputs[2]), _dims(inputs[1]), outputs[0].dims
    strides = _option(operator, "stride_h"), _option(operator, "stride_w")
    if min(strides) <= 0:
        yield _OPTION, f"stride {list(strides)}: must be positive"
    if source[3] != weights[3] or output[3] != weights[0] or output[0] != source[0]:
        text = f"input {list(source)}, weights {list(weights)} → {list(output)}"
        yield _MISMATCH, f"{text}: batches or channels do not belong together"
    yield from _bias(inputs[3:], weights[0])


def _concatenation(scope: Scope, operator: Operator, inputs: Inputs, outputs: Outputs) -> Iterator[Fault]:
    del scope
    output = outputs[0].dims
    axis = _option(operator, "axis")
    axis += len(output) if axis < 0 else 0
    shapes = [_dims(tensor) for tensor in inputs]
    if _option(operator, "fused_activation_function"):
        yield _OPTION, "a fused activation; the kernel takes none"
    if not 0 <= axis < len(output) or any(len(shape) != len(output) for shape in shapes):
        yield _MISMATCH, f"axis {axis} with {len(output)} output dimensions: the ranks differ or the axis is outside"
        return
    rest = output[:axis] + output[axis + 1 :]
    if any(shape[:axis] + shape[axis + 1 :] != rest for shape in shapes):
        yield _MISMATCH, f"inputs and output {list(output)} differ outside axis {axis}"
    elif sum(shape[axis] for shape in shapes) != output[axis]:
        yield _MISMATCH, f"axis {axis}: the inputs have {sum(shape[axis] for shape in shapes)}, output {output[axis]}"


def _split(scope: Scope, operator: Operator, inputs: Inputs, outputs: Outputs) -> Iterator[Fault]:
    axis_at, source_at = (0, 1) if operator.name == "SPLIT" else (2, 0)
    source = inputs[source_at]
    axis = _int32s(scope, inputs[axis_at])
    rank = len(_dims(source))
    if axis and not -rank <= axis[0] < rank:
        yield _MISMATCH, f"axis {axis[0]} with {rank} dimensions"
    if source is not None and source.element_count != sum(tensor.element_count for tensor in outputs):
        yield _MISMATCH, f"the {len(outputs)} outputs together are not as large as the input {list(source.dims)}"


def _pack(scope: Scope, operator: Operator, inputs: Inputs, outputs: Outputs) -> Iterator[Fault]:
    del scope, operator
    if sum(tensor.element_count for tensor in inputs if tensor is not None) != outputs[0].element_count:
        yield _MISMATCH, f"the {len(inputs)} inputs together are not as large as the output {list(outputs[0].dims)}"


def _unpack(scope: Scope, operator: Operator, inputs: Inputs, outputs: Outputs) -> Iterator[Fault]:
    del scope, operator
    source = inputs[0]
    if source is not None and outputs and source.element_count != sum(t.element_count for t in outputs):
        yield _MISMATCH, f"the {len(outputs)} outputs together are not as large as the input {list(source.dims)}"


def _pad(scope: Scope, operator: Operator, inputs: Inputs, outputs: Outputs) -> Iterator[Fault]:
    del operator
    source, output = _dims(inputs[0]), outputs[0].dims
    amounts = _int32s(scope, inputs[1])
    if amounts is None:
        return
    if len(amounts) != 2 * len(source) or len(output) != len(source):
        yield _MISMATCH, f"{len(amounts)} padding amounts for {len(source)} dimensions"
        return
    expected = [size + amounts[2 * axis] + amounts[2 * axis + 1] for axis, size in enumerate(source)]
    if list(output) != expected:
        yield _MISMATCH, f"{list(source)} padded is {expected}, the output says {list(output)}"


def _blocks(scope: Scope, operator: Operator, inputs: Inputs, outputs: Outputs) -> Iterator[Fault]:
    del scope
    block = _option(operator, "block_size")
    large, small = (
        (outputs[0].dims, _dims(inputs[0]))
        if operator.name == "DEPTH_TO_SPACE"
        else (
            _dims(inputs[0]),
            outputs[0].dims,
        )
    )
    if block <= 0:
        yield _OPTION, f"block_size {block}: must be positive"
    elif large[1:3] != (small[1] * block, small[2] * block) or large[3] * block * block != small[3]:
        yield _MISMATCH, f"{list(_dims(inputs[0]))} → {list(outputs[0].dims)} with block_size {block}"


def _transpose(scope: Scope, operator: Operator, inputs: Inputs, outputs: Outputs) -> Iterator[Fault]:
    del operator
    source, output = _dims(inputs[0]), outputs[0].dims
    order = _int32s(scope, inputs[1])
    if scope.kernels == "cmsis_nn" and len(source) > 4 and outputs[0].type == 9:
        yield "shape.rank", f"{len(source)} dimensions; the int8 kernel of CMSIS-NN takes 4"
    if order is None:
        return
    if sorted(order) != list(range(len(source))):
        yield _MISMATCH, f"permutation {list(order)} of {len(source)} dimensions"
    elif tuple(source[axis] for axis in order) != output:
        yield _MISMATCH, f"{list(source)} with permutation {list(order)} is not {list(output)}"


def _svdf(scope: Scope, operator: Operator, inputs: Inputs, outputs: Outputs) -> Iterator[Fault]:
    del scope
    source, feature, time, state = (_dims(inputs[place]) for place in (0, 1, 2, 4))
    rank = _option(operator, "rank")
    if rank <= 0 or feature[0] % rank:
        yield _OPTION, f"rank {rank} with {feature[0]} filters"
        return
    units = feature[0] // rank
    if outputs[0].dims != (source[0], units):
        yield _MISMATCH, f"output {list(outputs[0].dims)}; {source[0]} batches of {units} units are wanted"
    if feature[1] != source[1] or time[0] != feature[0] or state != (source[0], time[1] * feature[0]):
        text = f"input {list(source)}, feature {list(feature)}, time {list(time)}, state {list(state)}"
        yield _MISMATCH, f"{text}: they do not belong together"
    yield from _bias(inputs[3:4], units)


def _lstm(scope: Scope, operator: Operator, inputs: Inputs, outputs: Outputs) -> Iterator[Fault]:
    del scope
    source, hidden, output = _dims(inputs[0]), inputs[18], outputs[0].dims
    if len(_dims(hidden)) < 2 or hidden is None:
        yield _MISMATCH, f"hidden state of shape {list(_dims(hidden))}; two dimensions are read"
        return
    units = hidden.dims[1]
    batches = source[1] if operator.options.get("time_major") else source[0]
    wrong = [
        place
        for places, shape in (
            (range(1, 5), (units, source[2])),
            (range(5, 9), (units, units)),
            (range(12, 16), (units,)),
        )
        for place in places
        if _dims(inputs[place]) != shape
    ]
    if wrong:
        yield _MISMATCH, f"the shapes of inputs {wrong} do not go with {units} units and {source[2]} features"
    for place in (18, 19):
        state = inputs[place]
        if state is not None and state.element_count != batches * units:
            yield _MISMATCH, f"state input {place} is {list(state.dims)}, not {batches} × {units}"
    if output != (*source[:2], units):
        yield _MISMATCH, f"output {list(output)}; {[*source[:2], units]} is wanted"


def _batch_matmul(scope: Scope, operator: Operator, inputs: Inputs, outputs: Outputs) -> Iterator[Fault]:
    del scope
    left, right, output = _dims(inputs[0]), _dims(inputs[1]), outputs[0].dims
    rows, inner = left[-2:][::-1] if operator.options.get("adj_x") else left[-2:]
    other, columns = right[-2:][::-1] if operator.options.get("adj_y") else right[-2:]
    batches = _broadcast_shape([left[:-2], right[:-2], ()]) if len(left) > 2 or len(right) > 2 else ()
    text = f"{list(left)} × {list(right)} → {list(output)}"
    if inner != other or batches is None:
        yield _MISMATCH, f"{text}: the inner dimensions or batches do not go together"
    elif math.prod(output) != math.prod(batches) * rows * columns:
        yield _MISMATCH, f"{text}: the output has another size"


def _resize(scope: Scope, operator: Operator, inputs: Inputs, outputs: Outputs) -> Iterator[Fault]:
    del scope
    both = operator.options.get("align_corners") and operator.options.get("half_pixel_centers")
    if both and operator.name == "RESIZE_BILINEAR":
        yield _OPTION, "half_pixel_centers and align_corners exclude each other"
    source, output = _dims(inputs[0]), outputs[0].dims
    if (source[0], source[3]) != (output[0], output[3]):
        yield _MISMATCH, f"{list(source)} → {list(output)}: batches or channels differ"


_SAME_COUNT = """
    ABS CAST CEIL COS DEQUANTIZE ELU EXP FLOOR HARD_SWISH L2_NORMALIZATION LEAKY_RELU LOG LOGICAL_NOT LOGISTIC
    LOG_SOFTMAX NEG QUANTIZE RELU RELU6 RESHAPE REVERSE_V2 ROUND RSQRT SIN SOFTMAX SQRT SQUARE TANH
    CUMSUM ZEROS_LIKE EXPAND_DIMS
"""
_RULES: dict[str, Rule] = {
    **{name: _same_count for line in _SAME_COUNT.splitlines() for name in line.split()},
    "AVERAGE_POOL_2D": _pool,
    "BATCH_MATMUL": _batch_matmul,
    "CONCATENATION": _concatenation,
    "CONV_2D": _convolution,
    "DEPTHWISE_CONV_2D": _convolution,
    "DEPTH_TO_SPACE": _blocks,
    "FULLY_CONNECTED": _fully_connected,
    "L2_POOL_2D": _pool,
    "MAX_POOL_2D": _pool,
    "PACK": _pack,
    "PAD": _pad,
    "PADV2": _pad,
    "RESIZE_BILINEAR": _resize,
    "RESIZE_NEAREST_NEIGHBOR": _resize,
    "SPACE_TO_DEPTH": _blocks,
    "SPLIT": _split,
    "SPLIT_V": _split,
    "SQUEEZE": _squeeze,
    "SVDF": _svdf,
    "TRANSPOSE": _transpose,
    "TRANSPOSE_CONV": _transpose_convolution,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _lstm,
    "UNPACK": _unpack,
}
