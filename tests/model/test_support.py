"""The support table: what it covers, and the little language that its rows are written in."""

from __future__ import annotations

import pytest

from harness.firmware.op_resolver import BUILTIN_METHODS, CUSTOM_METHODS
from harness.model.graph import TensorType
from harness.model.kernel import Match, kernel, match_types
from harness.model.schema import BUILTIN_OPERATORS
from harness.model.support import CMSIS_NN_DIFFERENCES, CUSTOM_KERNELS, REFERENCE_KERNELS, find_kernel
from harness.model.versions import newest_version

F, I8, I32 = int(TensorType.FLOAT32), int(TensorType.INT8), int(TensorType.INT32)


def test_the_table_has_the_operators_that_firmware_can_register() -> None:
    assert set(REFERENCE_KERNELS) == set(BUILTIN_METHODS)
    assert set(CUSTOM_KERNELS) == set(CUSTOM_METHODS)
    assert set(REFERENCE_KERNELS) <= set(BUILTIN_OPERATORS)
    assert set(CMSIS_NN_DIFFERENCES) <= set(REFERENCE_KERNELS)


@pytest.mark.parametrize("name", ["TILE", "TOPK_V2", "CONV_3D", "STABLEHLO_COMPOSITE", "BUILTIN_250"])
def test_operators_that_tflm_lacks_have_no_kernel(name: str) -> None:
    assert find_kernel(name, custom=False) is None


def test_a_builtin_name_is_no_custom_operator() -> None:
    assert find_kernel("ADD", custom=True) is None
    assert find_kernel("SignalRfft", custom=False) is None
    assert find_kernel("SignalRfft", custom=True) is CUSTOM_KERNELS["SignalRfft"]


ROWS = [
    ("f f? > f", (F, F), (F,), Match.YES),
    ("f f? > f", (F, None), (F,), Match.YES),
    ("f f? > f", (F,), (F,), Match.YES),
    ("f f~ > f", (F, None), (F,), Match.COUNT),
    ("f f~ > f", (F,), (F,), Match.YES),
    ("f f > f", (F,), (F,), Match.COUNT),
    ("f f > f", (F, F, F), (F,), Match.COUNT),
    ("f > f", (F,), (), Match.COUNT),
    ("f f* > f", (F, F, F, F), (F,), Match.YES),
    ("f f* > f", (F, F, I8), (F,), Match.TYPES),
    ("f/i8 > f", (I8,), (F,), Match.YES),
    ("T=f/i8: T T > T", (I8, I8), (I8,), Match.YES),
    ("T=f/i8: T T > T", (I8, I8), (F,), Match.TYPES),
    ("T=f/i8: T T > T", (I32, I32), (I32,), Match.TYPES),
    ("T .? > T", (I32,), (I32,), Match.YES),
    ("T .? > T", (I32, F), (F,), Match.TYPES),
    ("f > f | i8 > i8", (I8,), (I8,), Match.YES),
    (">", (), (), Match.YES),
    (">", (F,), (), Match.COUNT),
]


@pytest.mark.parametrize(("spec", "inputs", "outputs", "expected"), ROWS)
def test_a_row_takes_what_it_says(
    spec: str, inputs: tuple[int | None, ...], outputs: tuple[int | None, ...], expected: Match
) -> None:
    assert match_types(kernel(spec), inputs, outputs) is expected


def test_a_kernel_says_its_types_in_words() -> None:
    assert REFERENCE_KERNELS["EQUAL"].text.startswith("FLOAT32, FLOAT32 → BOOL; BOOL, BOOL → BOOL")
    assert REFERENCE_KERNELS["VAR_HANDLE"].text == "nothing → RESOURCE"


def test_versions_that_litert_knows() -> None:
    assert (newest_version("FULLY_CONNECTED"), newest_version("CONV_2D"), newest_version("NEG")) == (10, 7, 1)
