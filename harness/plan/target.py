"""What a plan is made for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from harness.abi import ILP32, LP64, abi_named
from harness.errors import UsageError
from harness.plan.core import core_named
from harness.units import quoted


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


#: What the board ``host`` runs: the PyPI wheel tflite-micro, reference kernels, recording interpreter.
HOST = "host"


def target_for(
    core: str | None = None,
    *,
    abi: str | None = None,
    kernels: Kernels | str | None = None,
    interpreter: Interpreter | str | None = None,
) -> PlanTarget:
    """A target with the rest filled in: Cortex-M4, CMSIS-NN and the plain interpreter; for ``host`` (or ABI lp64) what
    the PyPI wheel is. Raises UsageError for a name that does not exist."""
    if core is None:
        core = HOST if abi == LP64 else "cortex-m4"
    core = core_named(core).name
    host = core == HOST
    abi = abi or (LP64 if host else ILP32)
    kernels = kernels or (Kernels.REFERENCE if host else Kernels.CMSIS_NN)
    interpreter = interpreter or (Interpreter.RECORDING if host else Interpreter.PLAIN)
    commit = abi_named(abi).tflm_commit
    return PlanTarget(abi, core, _member(Kernels, kernels), _member(Interpreter, interpreter), commit)


_Choice = TypeVar("_Choice", Kernels, Interpreter)


def _member(choices: type[_Choice], name: str) -> _Choice:
    try:
        return choices(name)
    except ValueError:
        names = ", ".join(choice.value for choice in choices)
        kind = "kernel set" if choices is Kernels else "interpreter"
        raise UsageError(f"no {kind} is named {quoted(name)}", remedy=f"choose one of {names}") from None
