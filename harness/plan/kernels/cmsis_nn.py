"""The buffer sizes that CMSIS-NN computes (commit 4ab83cc, ``arm_*_get_buffer_size*``), for GCC.

armclang 6.10.5 and later needs ``4 * channels`` more for a fast 1x1 convolution with DSP, and turns a one-channel
depthwise convolution into a convolution only above 8 output channels.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.plan.core import Core
from harness.units import align_up

#: arm_nnsupportfunctions.h, CH_IN_BLOCK_MVE: channels per block of the MVE depthwise kernel.
_MVE_DEPTHWISE_BLOCK = 124
#: arm_nnsupportfunctions.h, CONVERT_DW_CONV_WITH_ONE_INPUT_CH_AND_OUTPUT_CH_ABOVE_THRESHOLD, GCC's value.
_ONE_CHANNEL_TO_CONV_THRESHOLD = 1
#: arm_nnsupportfunctions.h, REVERSE_TCOL_EFFICIENT_THRESHOLD: input channels.
_REVERSE_THRESHOLD = 16


@dataclass(frozen=True, slots=True)
class Window:
    """One spatial filter over one input: sizes in elements, ``channels`` of the input, ``pad`` per side as TFLM
    computes it."""

    batch: int
    in_height: int
    in_width: int
    channels: int
    filter_height: int
    filter_width: int
    filter_channels: int
    out_channels: int
    out_width: int
    stride_height: int
    stride_width: int
    dilation_height: int
    dilation_width: int
    pad_height: int
    pad_width: int

    @property
    def column_length(self) -> int:
        return self.channels * self.filter_height * self.filter_width

    @property
    def undilated(self) -> bool:
        return self.dilation_height == 1 and self.dilation_width == 1


def convolve_s8(window: Window, core: Core) -> int:
    """arm_convolve_wrapper_s8_get_buffer_size; int4 filters ask the same function."""
    if (
        (window.pad_height, window.pad_width) == (0, 0)
        and (window.filter_height, window.filter_width) == (1, 1)
        and window.undilated
        and window.channels == window.filter_channels
    ):
        return 0
    one_row = window.in_height == 1 and window.filter_height == 1 and window.dilation_width == 1
    in_words = (window.stride_width * window.channels) % 4 == 0 and window.channels == window.filter_channels
    if core.mve and one_row and in_words:
        return _convolve_1_x_n_mve(window)
    return _im2col_s8(window.column_length, core)


def convolve_s16(window: Window, core: Core) -> int:
    """arm_convolve_wrapper_s16_get_buffer_size."""
    return 64 * -(-window.column_length // 8) if core.mve else 4 * window.column_length


def depthwise_s8(window: Window, core: Core) -> int:
    """arm_depthwise_conv_wrapper_s8_get_buffer_size."""
    if core.mve and window.channels == 1 and window.out_channels > _ONE_CHANNEL_TO_CONV_THRESHOLD:
        return _one_channel_as_convolution(window, core)
    if not (window.channels == window.out_channels and window.batch == 1 and window.undilated):
        return 0
    small_pad = window.pad_height <= 1 and window.pad_width <= 1
    if not core.mve and small_pad and (window.filter_height, window.filter_width) == (3, 3):
        return 0
    return _depthwise_columns(window, core) if core.dsp else 0


def depthwise_s4(window: Window, core: Core) -> int:
    """arm_depthwise_conv_wrapper_s4_get_buffer_size: has no 3x3 exception, and asks for the DSP size without DSP."""
    if window.channels == window.out_channels and window.batch == 1 and window.undilated:
        return _depthwise_columns(window, core)
    return 0


def transpose_convolve_s8(window: Window, core: Core) -> tuple[int, int]:
    """arm_transpose_conv_s8_get_buffer_size and …_get_reverse_conv_buffer_size. The second may be 0, and TFLM asks for
    it nevertheless."""
    if window.stride_width <= 2 and window.stride_height <= 2 and window.channels > _REVERSE_THRESHOLD:
        return _im2col_s8(window.column_length, core), window.column_length * window.out_channels
    # the C source takes the vertical stride for both
    columns = (window.in_width - 1) * window.stride_width + max(window.filter_width, window.stride_height)
    return 4 * columns * window.out_channels * max(window.filter_height, window.stride_height), 0


def fully_connected_s8(out_channels: int, core: Core) -> int:
    """arm_fully_connected_s8_get_buffer_size: the kernel sums, MVE only."""
    return 4 * out_channels if core.mve else 0


def average_pool(channels: int, core: Core) -> int:
    """arm_avgpool_s8_get_buffer_size, and the same for s16."""
    return 4 * channels if core.dsp and not core.mve else 0


def svdf_s8(filters: int, core: Core) -> int:
    """arm_svdf_s8_get_buffer_size."""
    return 4 * filters if core.mve else 0


def _im2col_s8(column_length: int, core: Core) -> int:
    """arm_convolve_s8_get_buffer_size."""
    return 64 * -(-column_length // 16) if core.mve else 4 * align_up(column_length, 4)


def _depthwise_columns(window: Window, core: Core) -> int:
    """arm_depthwise_conv_s8_opt_get_buffer_size_mve and …_dsp."""
    kernel = window.filter_height * window.filter_width
    return 4 * _MVE_DEPTHWISE_BLOCK * kernel if core.mve else 2 * window.channels * kernel


def _one_channel_as_convolution(window: Window, core: Core) -> int:
    """arm_deptwise_conv_s8_one_in_ch_get_buffer_size_mve: the filter is turned into a convolution's, with one
    channel."""
    return convolve_s8(window, core) + window.out_channels * window.filter_height * window.filter_width


def _convolve_1_x_n_mve(window: Window) -> int:
    """arm_convolve_1_x_n_s8_get_buffer_size_mve. ``%`` truncates towards zero in C."""
    stride = window.stride_width
    total_pad = (window.out_width - 1) * stride + window.filter_width - window.in_width
    asymmetric = abs(total_pad) % 2 * (1 if total_pad > 0 else -1)
    pad = window.pad_width
    right = max(1, _divide(pad + asymmetric + stride - 1, stride)) if pad + asymmetric != 0 else 0
    left = max(1, _divide(pad + stride - 1, stride)) if pad != 0 else 0
    unpadded = max(window.out_width - (right + left), 0)
    if right + unpadded + left != window.out_width:
        return 64 * -(-window.column_length // 16)
    pad_left = pad * window.channels
    pad_right = right * window.channels if asymmetric else pad_left
    row = window.filter_width * window.channels
    return max(row + pad_left, row - window.channels + pad_right)


def _divide(numerator: int, denominator: int) -> int:
    """C's division of ints."""
    quotient = abs(numerator) // abs(denominator)
    return quotient if (numerator >= 0) == (denominator >= 0) else -quotient
