"""Kernel rules: which operators have one, CMSIS-NN's buffer sizes, refusals, and what has no rule."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.errors import UnfitModelError, UsageError
from harness.model.builder import EXAMPLES
from harness.model.builder.graph import ModelBuilder
from harness.model.graph import Model, TensorType
from harness.model.reader import parse_model
from harness.plan.arena import Confidence, plan_arena
from harness.plan.core import CORES, core_named
from harness.plan.kernels import planned_operators
from harness.plan.kernels.cmsis_nn import (
    Window,
    average_pool,
    convolve_s8,
    convolve_s16,
    depthwise_s4,
    depthwise_s8,
    fully_connected_s8,
    transpose_convolve_s8,
)
from harness.plan.target import target_for
from tests.plan.one_operator import one

#: micro_mutable_op_resolver.h at TFLM 90b983c: every AddXxx.
REGISTERED = """
ABS ADD ADD_N ARG_MAX ARG_MIN ASSIGN_VARIABLE AVERAGE_POOL_2D BATCH_MATMUL BATCH_TO_SPACE_ND BROADCAST_ARGS
BROADCAST_TO CALL_ONCE CAST CEIL CONCATENATION CONV_2D COS CUMSUM DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE DIV
DYNAMIC_UPDATE_SLICE ELU EMBEDDING_LOOKUP EQUAL EXP EXPAND_DIMS FILL FLOOR FLOOR_DIV FLOOR_MOD FULLY_CONNECTED
GATHER GATHER_ND GREATER GREATER_EQUAL HARD_SWISH IF L2_NORMALIZATION L2_POOL_2D LEAKY_RELU LESS LESS_EQUAL LOG
LOGICAL_AND LOGICAL_NOT LOGICAL_OR LOGISTIC LOG_SOFTMAX MAXIMUM MAX_POOL_2D MEAN MINIMUM MIRROR_PAD MUL NEG
NOT_EQUAL PACK PAD PADV2 PRELU QUANTIZE READ_VARIABLE REDUCE_ALL REDUCE_MAX REDUCE_MIN RELU RELU6 RESHAPE
RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR REVERSE_V2 ROUND RSQRT SELECT_V2 SHAPE SIN SLICE SOFTMAX SPACE_TO_BATCH_ND
SPACE_TO_DEPTH SPLIT SPLIT_V SQRT SQUARE SQUARED_DIFFERENCE SQUEEZE STRIDED_SLICE SUB SUM SVDF TANH TRANSPOSE
TRANSPOSE_CONV UNIDIRECTIONAL_SEQUENCE_LSTM UNPACK VAR_HANDLE WHILE ZEROS_LIKE
"""
REGISTERED_CUSTOM = """
CIRCULAR_BUFFER TFLM_DECODE SignalDelay TFLite_Detection_PostProcess SignalEnergy ethos-u SignalFftAutoScale
SignalFilterBank SignalFilterBankLog SignalFilterBankSquareRoot SignalFilterBankSpectralSubtraction SignalFramer
SignalIrfft SignalOverlapAdd SignalPCAN SignalRfft SignalStacker SignalWindow
"""

M0, M4, M55 = CORES["cortex-m0"], CORES["cortex-m4"], CORES["cortex-m55"]


def test_every_operator_that_tflm_registers_has_a_rule_and_no_other() -> None:
    assert planned_operators() == set(REGISTERED.split())
    assert planned_operators(custom=True) == set(REGISTERED_CUSTOM.split())


#: Input 1x10x10x8, a 3x3 filter, 16 output channels, stride 1, no dilation, pad 1.
WINDOW = Window(1, 10, 10, 8, 3, 3, 8, 16, 10, 1, 1, 1, 1, 1, 1)


def test_convolution_sizes_are_those_that_cmsis_nn_returns() -> None:
    """Figures printed by a program around the C functions (CMSIS-NN 4ab83cc, compiled with GCC)."""
    assert [convolve_s8(WINDOW, core) for core in (M0, M4, M55)] == [288, 288, 320]
    odd = replace(WINDOW, channels=3, filter_channels=3)
    assert [convolve_s8(odd, core) for core in (M0, M4, M55)] == [112, 112, 128]
    assert [convolve_s16(odd, core) for core in (M4, M55)] == [108, 256]


def test_a_pointwise_convolution_needs_no_buffer_unless_it_is_padded() -> None:
    pointwise = replace(WINDOW, filter_height=1, filter_width=1, pad_height=0, pad_width=0)
    assert [convolve_s8(pointwise, core) for core in (M0, M4, M55)] == [0, 0, 0]
    assert convolve_s8(replace(pointwise, pad_width=1), M4) == 32
    assert convolve_s16(pointwise, M4) == 32


def test_a_one_row_convolution_has_its_own_buffer_with_mve() -> None:
    row = replace(WINDOW, in_height=1, filter_height=1, in_width=20, out_width=20, pad_height=0)
    assert (convolve_s8(row, M4), convolve_s8(row, M55)) == (96, 32)
    assert convolve_s8(replace(row, pad_width=0, out_width=18), M55) == 24


def test_depthwise_sizes() -> None:
    same = replace(WINDOW, out_channels=8, filter_channels=1)
    assert [depthwise_s8(same, core) for core in (M0, M4, M55)] == [0, 0, 4464]
    wide = replace(same, filter_height=5, filter_width=5, pad_height=2, pad_width=2)
    assert [depthwise_s8(wide, core) for core in (M0, M4, M55)] == [0, 400, 12400]
    assert [depthwise_s4(same, core) for core in (M0, M4, M55)] == [144, 144, 4464]
    assert depthwise_s8(replace(wide, out_channels=16), M4) == 0
    one_channel = replace(WINDOW, channels=1, filter_channels=1)
    assert [depthwise_s8(one_channel, core) for core in (M4, M55)] == [0, 208]


def test_transpose_convolution_asks_twice() -> None:
    assert transpose_convolve_s8(WINDOW, M4) == (2304, 0)
    assert transpose_convolve_s8(replace(WINDOW, channels=20), M4) == (720, 2880)


def test_sums_and_pools() -> None:
    assert [fully_connected_s8(10, core) for core in (M0, M4, M55)] == [0, 0, 40]
    assert [average_pool(10, core) for core in (M0, M4, M55)] == [0, 40, 0]


def test_cores_by_their_short_and_long_names() -> None:
    assert core_named("m33").dsp
    assert not core_named("cortex-m33+nodsp").dsp
    assert not core_named("Cortex-M0+").dsp
    assert not core_named("cortex-m55+nomve").mve
    assert target_for("m4").core == "cortex-m4"
    with pytest.raises(UsageError, match="no core is named cortex-a53"):
        core_named("cortex-a53")


def test_a_kernel_set_or_interpreter_that_does_not_exist_names_those_that_do() -> None:
    with pytest.raises(UsageError, match='no kernel set is named "esp_nn"') as caught:
        target_for(kernels="esp_nn")
    assert caught.value.remedy == "choose one of reference, cmsis_nn"
    with pytest.raises(UsageError, match='no interpreter is named "fast"'):
        target_for(interpreter="fast")


def test_a_custom_operator_without_a_rule_makes_the_plan_an_estimate_that_names_it() -> None:
    model = parse_model(one("MyOp", [(TensorType.FLOAT32, (4,))], [(TensorType.FLOAT32, (4,))], custom={}))
    plan = plan_arena(model, target_for())
    assert plan.confidence is Confidence.ESTIMATED
    assert plan.reasons == ("MyOp (0/0): no rule for this custom operator: its buffers are not in the plan",)


def test_a_custom_operator_with_a_builtin_name_is_not_that_builtin() -> None:
    builder = ModelBuilder()
    source = builder.graph.input((1, 4), TensorType.FLOAT32)
    output = builder.graph.tensor("out", (1, 4), TensorType.FLOAT32)
    builder.graph.operator("not-relu", [source], [output])
    builder.graph.output(output)
    model = parse_model(builder.finish().replace(b"not-relu", b"RELU\0\0\0\0"))
    assert plan_arena(model, target_for()).confidence is Confidence.ESTIMATED


def test_ethos_u_is_planned_as_an_estimate() -> None:
    model = parse_model(one("ethos-u", [(TensorType.INT8, (4,))], [(TensorType.INT8, (4,))], custom={}))
    assert "Ethos-U" in plan_arena(model, target_for()).reasons[0]


def test_a_builtin_operator_that_tflm_lacks_is_refused_in_its_words() -> None:
    model = parse_model(one("ATAN2", [(TensorType.FLOAT32, (4,))] * 2, [(TensorType.FLOAT32, (4,))]))
    with pytest.raises(UnfitModelError, match=r"Didn't find op for builtin opcode \"ATAN2\""):
        plan_arena(model, target_for())


def test_signal_options_that_are_no_flexbuffer_are_refused() -> None:
    data = one("SignalFilterBankLog", [(TensorType.UINT32, (4,))], [(TensorType.INT16, (4,))], custom={})
    assert plan_arena(parse_model(data), target_for()).confidence is Confidence.EXACT
    delay = one("SignalDelay", [(TensorType.INT16, (8,))], [(TensorType.INT16, (8,))])
    with pytest.raises(UnfitModelError, match="the custom options are not a FlexBuffer map"):
        plan_arena(parse_model(delay), target_for())


def test_host_with_cmsis_nn_was_never_measured() -> None:
    model = _example("hello_int8")
    assert plan_arena(model, target_for("host", kernels="cmsis_nn")).confidence is Confidence.ESTIMATED
    assert plan_arena(model, target_for("cortex-m4", abi="lp64")).confidence is Confidence.ESTIMATED
    assert plan_arena(model, target_for("cortex-m4", abi="ilp32_long_enums")).confidence is Confidence.ESTIMATED


def _example(name: str) -> Model:
    return parse_model(EXAMPLES[name](), name)


def test_element_wise_kernels_refuse_no_type_in_prepare() -> None:
    """TFLM's Prepare has a type check there that never fires (elementwise.cc, PrepareAbsRsqrt); RSQRT runs on INT16,
    and a plan that refused it would be wrong. Measured with real TFLM on an emulated Cortex-M4: 644 bytes used."""
    model = parse_model(one("RSQRT", [(TensorType.INT16, (2, 33))], [(TensorType.INT16, (2, 33))]))

    assert plan_arena(model, target_for("cortex-m4")).used_bytes == 644
