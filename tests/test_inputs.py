"""Inputs: the same bytes for the device's plan and for the reference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness.errors import UnfitModelError, UsageError
from harness.inputs import InputChoice, resolve_inputs
from harness.model.graph import Model, SubGraph, Tensor, TensorType
from harness.wire.messages import ALL_INPUTS, InputKind, SetInput


def model(*inputs: tuple[TensorType, tuple[int, ...]]) -> Model:
    tensors = tuple(Tensor(i, f"in{i}", kind, shape, 0) for i, (kind, shape) in enumerate(inputs))
    main = SubGraph(0, "", tensors, (), tuple(range(len(tensors))), ())
    return Model("m", "00", b"", 3, "", (), (main,), ())


FLOAT_AND_INT8 = model((TensorType.FLOAT32, (2,)), (TensorType.INT8, (1, 3)))


def test_seeded_inputs_have_the_sizes_of_the_tensors_and_differ_by_seed_and_input() -> None:
    one, two = resolve_inputs(FLOAT_AND_INT8, InputChoice(1)), resolve_inputs(FLOAT_AND_INT8, InputChoice(2))
    assert [len(data) for data in one.make()] == [8, 3]
    assert one.make() == resolve_inputs(FLOAT_AND_INT8, InputChoice(1)).make() != two.make()
    assert one.plan.settings == (SetInput(ALL_INPUTS, InputKind.SEED, 1),)
    assert one.source == "seed 1"


def test_a_fill_is_the_value_as_each_input_stores_it() -> None:
    filled = resolve_inputs(FLOAT_AND_INT8, InputChoice(fill=2.0))
    assert filled.make() == (np.array([2, 2], np.float32).tobytes(), b"\x02\x02\x02")
    assert filled.plan.settings == (
        SetInput(0, InputKind.PATTERN, 0x40000000, 4),
        SetInput(1, InputKind.PATTERN, 2, 1),
    )


def test_nothing_is_made_before_it_is_needed() -> None:
    """A damaged model claimed an input of 1.8 GB; making it took all memory before anything could refuse the model."""
    huge = model((TensorType.INT16, (1, 1 << 40)))
    assert resolve_inputs(huge, InputChoice(1)).source == "seed 1"
    assert resolve_inputs(huge, InputChoice(fill=3)).source == "fill 3"


def test_an_input_that_no_value_fits_is_the_models_fault() -> None:
    with pytest.raises(UnfitModelError, match=r'input 0 \("in0"\) has type STRING'):
        resolve_inputs(model((TensorType.STRING, (1,))), InputChoice())


def test_as_many_files_as_inputs(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.zeros(2, np.float32))
    with pytest.raises(UsageError, match="1 input files for a model with 2 inputs"):
        resolve_inputs(FLOAT_AND_INT8, InputChoice(files=(path,)))


def test_a_file_that_promises_more_than_memory_holds_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.zeros(2, np.float32))
    path.write_bytes(path.read_bytes().replace(b"(2,), }" + b" " * 12, b"(2000000000000,), }"))
    with pytest.raises(UsageError, match="is no plain"):
        resolve_inputs(model((TensorType.FLOAT32, (2,))), InputChoice(files=(path,)))
