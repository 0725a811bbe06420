"""The inputs of a run: seeded, filled with one value, or read from files; for device and reference alike."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import UnfitModelError, UsageError
from harness.model.graph import Model, Tensor, TensorType
from harness.units import quoted
from harness.wire import generator
from harness.wire.input_plan import InputPlan
from harness.wire.messages import InputKind, SetInput

#: numpy's name of each type that an input may have.
NUMPY_NAMES = {
    TensorType.FLOAT32: "float32",
    TensorType.INT32: "int32",
    TensorType.UINT8: "uint8",
    TensorType.INT64: "int64",
    TensorType.BOOL: "bool",
    TensorType.INT16: "int16",
    TensorType.INT8: "int8",
    TensorType.UINT32: "uint32",
    TensorType.UINT16: "uint16",
}


@dataclass(frozen=True, slots=True)
class InputChoice:
    """What the user asked for: ``files`` win over ``fill``, ``fill`` over ``seed``."""

    seed: int = 1
    fill: float | None = None
    files: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelInputs:
    """``plan`` tells the device; ``make`` makes the same bytes, one piece per input: only when they are needed, as a
    model may claim inputs larger than any memory. ``source`` names the choice in a record (``seed 1``, ``fill 2``,
    ``file sha256 …``): two runs with the same source had the same inputs."""

    plan: InputPlan
    make: Callable[[], tuple[bytes, ...]] = field(repr=False)
    source: str


def resolve_inputs(model: Model, choice: InputChoice, others: Sequence[Model] = ()) -> ModelInputs:
    """``others`` are in the same firmware: the inputs of all are numbered through, in this order. Raises UsageError
    where the choice does not fit the inputs, UnfitModelError where no choice can."""
    tensors = [tensor for one in (model, *others) for tensor in input_tensors(one)]
    if choice.files:
        return _from_files(tensors, choice.files)
    if choice.fill is not None:
        return _filled(tensors, choice.fill)
    return ModelInputs(InputPlan.seeded(choice.seed), lambda: _seeded(tensors, choice.seed), f"seed {choice.seed}")


def given_inputs(data: tuple[bytes, ...]) -> ModelInputs:
    """These very bytes, one piece per input."""
    settings = tuple(SetInput(index, InputKind.STAGED) for index in range(len(data)))
    digest = hashlib.sha256(b"".join(data)).hexdigest()
    return ModelInputs(InputPlan(settings, tuple(enumerate(data))), lambda: data, f"file sha256 {digest}")


def input_tensors(model: Model) -> list[Tensor]:
    """The inputs of subgraph 0, in order, all of types that can be given."""
    if not model.subgraphs:
        raise UnfitModelError("the model has no subgraph", remedy="convert the model again", code="model.no_subgraph")
    main = model.subgraphs[0]
    tensors = [main.tensors[index] for index in main.inputs]
    for number, tensor in enumerate(tensors):
        if tensor.type not in NUMPY_NAMES:
            name = getattr(tensor.type, "name", str(tensor.type))
            raise UnfitModelError(
                f"input {number} ({quoted(tensor.name)}) has type {name}: no value of it can be given",
                remedy="convert the model with float32, int8 or int16 inputs",
                code="input.type",
            )
    return tensors


def _seeded(tensors: list[Tensor], seed: int) -> tuple[bytes, ...]:
    return tuple(
        generator.generate_input(seed, index, int(tensor.type), tensor.element_count)
        for index, tensor in enumerate(tensors)
    )


def _filled(tensors: list[Tensor], value: float) -> ModelInputs:
    settings, elements = [], []
    for index, tensor in enumerate(tensors):
        try:
            element = generator.pattern_of(value, int(tensor.type))
        except (ValueError, OverflowError) as exc:
            raise UsageError(f"input {index} ({quoted(tensor.name)}): {exc}", remedy="choose another --fill") from exc
        pattern = int.from_bytes(element, "little")
        settings.append(SetInput(index, InputKind.PATTERN, pattern, len(element)))
        elements.append(element)
    counts = [tensor.element_count for tensor in tensors]

    def make() -> tuple[bytes, ...]:
        return tuple(element * count for element, count in zip(elements, counts, strict=True))

    return ModelInputs(InputPlan(tuple(settings)), make, f"fill {value:g}")


def _from_files(tensors: list[Tensor], files: tuple[Path, ...]) -> ModelInputs:
    if len(files) != len(tensors):
        names = ", ".join(quoted(tensor.name) for tensor in tensors)
        raise UsageError(
            f"{len(files)} input files for a model with {len(tensors)} inputs ({names})",
            remedy="give --input once per input, in the model's order",
        )
    return given_inputs(tuple(_load(path, tensor) for path, tensor in zip(files, tensors, strict=True)))


def _load(path: Path, tensor: Tensor) -> bytes:
    import numpy as np

    try:
        array: Any = np.load(path, allow_pickle=False)
    except OSError as exc:
        raise UsageError(f"cannot read {path}: {exc}", remedy="check the path") from exc
    except (ValueError, EOFError, OverflowError, MemoryError) as exc:
        raise UsageError(f"{path} is no plain .npy array: {exc}", remedy="save it with numpy.save") from exc
    if not isinstance(array, np.ndarray):
        raise UsageError(f"{path} holds several arrays", remedy="save one array with numpy.save")
    wanted = np.dtype(NUMPY_NAMES[TensorType(tensor.type)])
    if array.dtype != wanted or array.shape != tensor.dims:
        raise UsageError(
            f"{path} holds {array.dtype}{list(array.shape)}, "
            f"input {quoted(tensor.name)} takes {wanted}{list(tensor.dims)}",
            remedy="convert the array; values are taken as they are stored, not quantised here",
        )
    return bytes(np.ascontiguousarray(array).tobytes())
