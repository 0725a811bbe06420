"""What if the inputs had other shapes: LiteRT works the shapes of all tensors out, in a process of its own.

TFLM has no dynamic shapes: it takes those in the file. So the question is what a model would need if it were converted
with these shapes. Run as ``python -m harness.shapes`` this module is the child: model bytes on stdin, JSON out.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.errors import MissingDependencyError, UnfitModelError, UsageError
from harness.model.graph import Model, Tensor
from harness.units import quoted, safe_text

#: Time that LiteRT may take to resize and run the model once.
TIMEOUT_S = 120.0
#: The most elements that an input may be asked to have: 64 Mi.
MAX_ELEMENTS = 1 << 26


@dataclass(frozen=True, slots=True)
class DynamicInput:
    """An input of the main subgraph with dimensions that the converter left open (-1 in ``signature``)."""

    position: int
    tensor: int
    name: str
    shape: tuple[int, ...]
    signature: tuple[int, ...]


def dynamic_inputs(model: Model) -> list[DynamicInput]:
    """The inputs that have open dimensions."""
    found = []
    main = model.subgraphs[0] if model.subgraphs else None
    for position, index in enumerate(main.inputs if main else ()):
        tensor = model.subgraphs[0].tensors[index]
        signature = tensor.shape_signature or ()
        if any(dim < 0 for dim in signature):
            found.append(DynamicInput(position, index, tensor.name, tensor.dims, signature))
    return found


def parse_shapes(model: Model, texts: Sequence[str]) -> dict[int, tuple[int, ...]]:
    """``["input=1,49,10,1"]`` → tensor index of the main subgraph → dims. An input goes by its tensor's name, its name
    in the signature, or its position; ``input`` means the only one. Only open dimensions may be given another size."""
    shapes: dict[int, tuple[int, ...]] = {}
    if texts and not model.subgraphs:
        raise UsageError("the model has no subgraph, so no input", remedy="leave --shape away")
    for text in texts:
        name, equals, numbers = text.rpartition("=")
        dims = _dims(numbers) if equals else None
        if not name or dims is None:
            raise UsageError(f"{quoted(text)} is not NAME=DIMS", remedy="write it like --shape input=1,49,10,1")
        tensor = _input(model, name)
        if tensor.index in shapes:
            raise UsageError(f"input {quoted(name)} has two shapes", remedy="give one --shape for each input")
        _check(tensor, dims)
        shapes[tensor.index] = dims
    return shapes


def _dims(text: str) -> tuple[int, ...] | None:
    parts = [part.strip() for part in text.replace("x", ",").split(",")]
    if not all(part.isascii() and part.isdigit() and int(part) > 0 for part in parts):
        return None
    return tuple(int(part) for part in parts)


def _input(model: Model, name: str) -> Tensor:
    main = model.subgraphs[0]
    names: dict[str, int] = {}
    for position, index in enumerate(main.inputs):
        names[str(position)] = index
    if len(main.inputs) == 1:
        names["input"] = main.inputs[0]
    for signature in model.signatures:
        if signature.subgraph == 0:
            names |= {key: index for key, index in signature.inputs if index in main.inputs}
    names |= {main.tensors[index].name: index for index in main.inputs}
    if name not in names:
        known = ", ".join(quoted(main.tensors[index].name, 60) for index in main.inputs) or "none"
        raise UsageError(f"the model has no input {quoted(name)}; its inputs: {known}", remedy="name one of them")
    return main.tensors[names[name]]


def _check(tensor: Tensor, dims: tuple[int, ...]) -> None:
    signature = tensor.shape_signature or tensor.dims
    what = f"input {quoted(tensor.name, 60)}"
    if len(dims) != len(signature):
        raise UsageError(
            f"{what} has {len(signature)} dimensions {list(signature)}, not {len(dims)}", remedy="give each a size"
        )
    for axis, (dim, given) in enumerate(zip(signature, dims, strict=True)):
        if dim >= 0 and dim != given:
            raise UsageError(
                f"dimension {axis} of {what} is fixed at {dim} in the file, not open",
                remedy="only dimensions that are -1 in the shape signature can vary; convert the model again",
            )
    count = 1
    for dim in dims:
        count *= dim
    if count > MAX_ELEMENTS:
        raise UsageError(f"{what} would have {count} elements", remedy=f"at most {MAX_ELEMENTS} are worked out")


def with_input_shapes(model: Model, shapes: Mapping[int, tuple[int, ...]]) -> Model:
    """The model as if converted with these input shapes. Raises UnfitModelError where LiteRT cannot work them out."""
    if len(model.subgraphs) > 1:
        raise UnfitModelError(
            f"the model has {len(model.subgraphs)} subgraphs; shapes are worked out for models with one",
            code="shape.subgraphs",
            remedy="convert the model with the shapes that you want to plan for",
        )
    answer = _ask_litert(model, shapes)
    if error := answer.get("missing"):
        raise MissingDependencyError(
            f"--shape needs LiteRT: {safe_text(error)}", remedy="pip install tflite-runtime, or ai-edge-litert"
        )
    if error := answer.get("error"):
        raise UnfitModelError(
            f"LiteRT cannot give the inputs these shapes: {safe_text(error, 300)}",
            code="shape.refused",
            remedy="convert the model with the shapes that you want to plan for",
        )
    main = model.subgraphs[0]
    tensors = tuple(
        replace(tensor, shape=tuple(dims)) if (dims := answer["shapes"].get(str(tensor.index))) is not None else tensor
        for tensor in main.tensors
    )
    return replace(model, subgraphs=(replace(main, tensors=tensors),))


def _ask_litert(model: Model, shapes: Mapping[int, tuple[int, ...]]) -> dict[str, Any]:
    command = [sys.executable, "-m", "harness.shapes", json.dumps({str(k): list(v) for k, v in shapes.items()})]
    try:
        done = subprocess.run(command, input=model.data, capture_output=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return {"error": f"it took longer than {TIMEOUT_S:.0f} s"}
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        return {"error": f"LiteRT stopped with exit code {done.returncode}"}
    return answer if isinstance(answer, dict) else {"error": "no answer"}


def _child(shapes: Mapping[str, list[int]], data: bytes) -> dict[str, Any]:
    """In the child: resize, run once so that shapes that depend on other shapes settle, and list all shapes."""
    try:
        try:
            from tflite_runtime import interpreter as litert
        except ImportError:
            from ai_edge_litert import interpreter as litert
    except ImportError as exc:
        return {"missing": str(exc)}
    try:
        resolver = litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        interpreter = litert.Interpreter(model_content=data, experimental_op_resolver_type=resolver)
        for index, dims in shapes.items():
            interpreter.resize_tensor_input(int(index), dims)
        interpreter.allocate_tensors()
        interpreter.invoke()
        details = interpreter.get_tensor_details()
    except (RuntimeError, ValueError, MemoryError) as exc:
        return {"error": str(exc)}
    return {"shapes": {str(detail["index"]): [int(dim) for dim in detail["shape"]] for detail in details}}


if __name__ == "__main__":
    json.dump(_child(json.loads(sys.argv[1]), sys.stdin.buffer.read()), sys.stdout)
