"""Models of this project whose minimum is known: what a board that is trusted must find again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.model.builder.examples import EXAMPLES
from harness.plan.target import Kernels

#: The numbers hold for this TFLM only.
TFLM_COMMIT = "90b983c2b3f1480642e040bbd2ddb37b998f3424"
#: Cortex-M4 and M7 gave equal numbers for every model that was measured on both; others are not known.
CORES = frozenset({"cortex-m4", "cortex-m7"})


@dataclass(frozen=True, slots=True)
class KnownMinimum:
    """``min_bytes`` works and 16 less do not, with the plain interpreter."""

    name: str
    sha256: str
    kernels: Kernels
    used_bytes: int
    min_bytes: int


_HELLO = "a00d4e7e1cacb279"
_RESIDUAL = "7c8f4b0a08092fc0"
_SVDF = "d9e9e16a33b532b3"

#: The planner's exact numbers, found again by `harness qualify` with real TFLM on the twins of an M4 and of an M7
#: (results/evidence/qualification-*.json).
_KNOWN = (
    KnownMinimum("hello_int8", _HELLO, Kernels.REFERENCE, 676, 1072),
    KnownMinimum("hello_int8", _HELLO, Kernels.CMSIS_NN, 772, 1168),
    KnownMinimum("svdf_int8", _SVDF, Kernels.REFERENCE, 1684, 2352),
    KnownMinimum("svdf_int8", _SVDF, Kernels.CMSIS_NN, 1716, 2384),
    KnownMinimum("residual_int8", _RESIDUAL, Kernels.REFERENCE, 6324, 6336),
    KnownMinimum("residual_int8", _RESIDUAL, Kernels.CMSIS_NN, 6372, 6384),
)


def known_minima(kernels: str) -> list[KnownMinimum]:
    return [known for known in _KNOWN if known.kernels.value == kernels]


def write_model(known: KnownMinimum, folder: Path) -> Path:
    """The model as a file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{known.name}.tflite"
    path.write_bytes(EXAMPLES[known.name]())
    return path
