"""What TFLM's structures measure, per ABI and build, and TFLM's fixed limits: each with its source."""

from harness.abi.layout import ILP32, ILP32_LONG_ENUMS, LP64, Abi, Struct, abi_named, abi_reported
from harness.abi.limits import (
    ARENA_ALIGNMENT,
    LINEAR_PLANNER_MAX_BUFFERS,
    MAX_CONCATENATION_INPUTS,
    MAX_SCRATCH_BUFFERS_PER_OP,
)

__all__ = [
    "ARENA_ALIGNMENT",
    "ILP32",
    "ILP32_LONG_ENUMS",
    "LINEAR_PLANNER_MAX_BUFFERS",
    "LP64",
    "MAX_CONCATENATION_INPUTS",
    "MAX_SCRATCH_BUFFERS_PER_OP",
    "Abi",
    "Struct",
    "abi_named",
    "abi_reported",
]
