"""What a plan is made for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Kernels(str, Enum):
    REFERENCE = "reference"
    CMSIS_NN = "cmsis_nn"


class Interpreter(str, Enum):
    """PLAIN: MicroInterpreter; RECORDING: RecordingMicroInterpreter; PRESERVE_ALL: plain with preserve_all_tensors."""

    PLAIN = "plain"
    RECORDING = "recording"
    PRESERVE_ALL = "preserve_all"


@dataclass(frozen=True, slots=True)
class PlanTarget:
    """``abi`` is ``ilp32`` (Cortex-M) or ``lp64`` (host); ``core`` is ``host`` or ``cortex-m0`` … ``cortex-m85``."""

    abi: str
    core: str
    kernels: Kernels
    interpreter: Interpreter
    tflm_commit: str
