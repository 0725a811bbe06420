"""Which kernel each operator of a model got: CMSIS-NN's, or the reference one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain

from harness.model.graph import Model

#: Operator → prefix of the CMSIS-NN functions that its optimised kernel calls. TFLM 90b983c,
#: tensorflow/lite/micro/kernels/cmsis_nn/: one file per operator; operators without one have the reference kernel only.
CMSIS_NN_PREFIXES: dict[str, tuple[str, ...]] = {
    "ADD": ("arm_elementwise_add",),
    "AVERAGE_POOL_2D": ("arm_avgpool",),
    "BATCH_MATMUL": ("arm_batch_matmul",),
    "CONV_2D": ("arm_convolve",),
    "DEPTHWISE_CONV_2D": ("arm_depthwise_conv",),
    "FULLY_CONNECTED": ("arm_fully_connected", "arm_vector_sum"),
    "MAXIMUM": ("arm_maximum",),
    "MAX_POOL_2D": ("arm_max_pool",),
    "MINIMUM": ("arm_minimum",),
    "MUL": ("arm_elementwise_mul",),
    "PAD": ("arm_pad",),
    "PADV2": ("arm_pad",),
    "SOFTMAX": ("arm_softmax",),
    "SVDF": ("arm_svdf",),
    "TRANSPOSE": ("arm_transpose",),
    "TRANSPOSE_CONV": ("arm_transpose_conv",),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": ("arm_lstm",),
}


def operator_kernels(models: Sequence[Model], kernels: str, functions: Collection[str]) -> dict[str, str]:
    """Operator → ``cmsis_nn`` when its CMSIS-NN functions are in the linked program, ``reference`` otherwise.

    A float operator of an optimised kernel still runs the reference code inside; the symbols tell what was linked.
    """
    found: dict[str, str] = {}
    for _, operator in chain.from_iterable(model.operators() for model in models):
        prefixes = CMSIS_NN_PREFIXES.get(operator.name, ())
        linked = any(name.startswith(prefixes) for name in functions) if prefixes else False
        found[operator.name] = "cmsis_nn" if kernels == "cmsis_nn" and linked else "reference"
    return dict(sorted(found.items()))
