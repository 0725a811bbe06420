"""Shapes of operators that slide a window: convolutions, pooling, resizing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.model.graph import Operator
from harness.model.rules.scope import Scope
from harness.model.rules.shape_facts import (
    MISMATCH,
    OPTION,
    Fault,
    Inputs,
    Outputs,
    Rule,
    check_bias,
    dims_of,
    int32s_of,
    option_of,
)

_SAME, _VALID = 0, 1  # enum Padding of schema.fbs


def _convolution(scope: Scope, operator: Operator, inputs: Inputs, outputs: Outputs) -> Iterator[Fault]:
    del scope
    source, weights, output = dims_of(inputs[0]), dims_of(inputs[1]), outputs[0].dims
    text = f"input {list(source)}, weights {list(weights)} → {list(output)}"
    if operator.name == "CONV_2D":
        channels, fits = weights[0], min(weights[3], source[3]) > 0 and source[3] % weights[3] == 0
        fits = fits and channels % (source[3] // weights[3]) == 0
    else:
        multiplier = option_of(operator, "depth_multiplier")
        channels, fits = weights[3], source[3] > 0 and source[3] * multiplier == weights[3]
        text += f", depth_multiplier {multiplier}"
    if not fits or output[3] != channels or output[0] != source[0]:
        yield MISMATCH, f"{text}: batches or channels do not belong together"
    yield from _window(operator, source, weights[1:3], output, text)
    yield from check_bias(inputs[2:], channels)


def _pool(scope: Scope, operator: Operator, inputs: Inputs, outputs: Outputs) -> Iterator[Fault]:
    del scope
    source, output = dims_of(inputs[0]), outputs[0].dims
    window = option_of(operator, "filter_height"), option_of(operator, "filter_width")
    text = f"input {list(source)}, window {list(window)} → {list(output)}"
    if output[0] != source[0] or output[3] != source[3]:
        yield MISMATCH, f"{text}: batches or channels differ"
    yield from _window(operator, source, window, output, text)


def _window(
    operator: Operator, source: Sequence[int], window: Sequence[int], output: Sequence[int], text: str
) -> Iterator[Fault]:
    if "stride_h" not in operator.options:
        return  # no options: another rule's business
    strides = option_of(operator, "stride_h"), option_of(operator, "stride_w")
    dilations = option_of(operator, "dilation_h_factor", 1), option_of(operator, "dilation_w_factor", 1)
    if min(strides) <= 0 or min(dilations) <= 0 or min(window) <= 0:
        yield OPTION, f"stride {list(strides)}, dilation {list(dilations)}, window {list(window)}: must be positive"
        return
    padding = option_of(operator, "padding")
    if padding not in {_SAME, _VALID}:
        yield OPTION, f"padding {padding} is neither SAME (0) nor VALID (1)"
        return
    for axis, (stride, dilation, size) in enumerate(zip(strides, dilations, window, strict=True), start=1):
        reach = (size - 1) * dilation + 1
        expected = -(-(source[axis] if padding == _SAME else source[axis] - reach + 1) // stride)
        if output[axis] != max(expected, 0):
            kind = "SAME" if padding == _SAME else "VALID"
            yield MISMATCH, f"{text}: dimension {axis} should be {expected} (stride {stride}, {kind})"


def _transpose_convolution(scope: Scope, operator: Operator, inputs: Inputs, outputs: Outputs) -> Iterator[Fault]:
    wanted = int32s_of(scope, inputs[0])
    if wanted is not None and wanted != outputs[0].dims:
        yield MISMATCH, f"the shape asked for is {list(wanted)}, the output says {list(outputs[0].dims)}"
    source, weights, output = dims_of(inputs[2]), dims_of(inputs[1]), outputs[0].dims
    strides = option_of(operator, "stride_h"), option_of(operator, "stride_w")
    if min(strides) <= 0:
        yield OPTION, f"stride {list(strides)}: must be positive"
    if source[3] != weights[3] or output[3] != weights[0] or output[0] != source[0]:
        text = f"input {list(source)}, weights {list(weights)} → {list(output)}"
        yield MISMATCH, f"{text}: batches or channels do not belong together"
    yield from check_bias(inputs[3:], weights[0])


def _resize(scope: Scope, operator: Operator, inputs: Inputs, outputs: Outputs) -> Iterator[Fault]:
    both = operator.options.get("align_corners") and operator.options.get("half_pixel_centers")
    if both and operator.name == "RESIZE_BILINEAR":
        yield OPTION, "half_pixel_centers and align_corners exclude each other"
    source, output = dims_of(inputs[0]), outputs[0].dims
    size = int32s_of(scope, inputs[1])
    if (source[0], source[3]) != (output[0], output[3]):
        yield MISMATCH, f"{list(source)} → {list(output)}: batches or channels differ"
    elif size is not None and size != output[1:3]:
        yield MISMATCH, f"the size asked for is {list(size)}, the output says {list(output)}"


WINDOW_RULES: dict[str, Rule] = {
    "AVERAGE_POOL_2D": _pool,
    "CONV_2D": _convolution,
    "DEPTHWISE_CONV_2D": _convolution,
    "L2_POOL_2D": _pool,
    "MAX_POOL_2D": _pool,
    "RESIZE_BILINEAR": _resize,
    "RESIZE_NEAREST_NEIGHBOR": _resize,
    "TRANSPOSE_CONV": _transpose_convolution,
}
