"""What each of TFLM's kernels asks of the arena: one rule per operator, written from the kernel's Init and Prepare.

TFLM 90b983c (tensorflow/lite/micro/kernels, signal/micro/kernels) and CMSIS-NN 4ab83cc.
"""

from harness.plan.kernels import (
    activations,
    control,
    conv,
    custom,
    dense,
    elementwise,
    pooling,
    recurrent,
    reduce,
    shape,
    signal,
    slicing,
)
from harness.plan.kernels.params import PARAMETER_STRUCTS
from harness.plan.kernels.registry import Kernel, kernel_for, planned_operators

__all__ = [
    "PARAMETER_STRUCTS",
    "Kernel",
    "activations",
    "control",
    "conv",
    "custom",
    "dense",
    "elementwise",
    "kernel_for",
    "planned_operators",
    "pooling",
    "recurrent",
    "reduce",
    "shape",
    "signal",
    "slicing",
]
