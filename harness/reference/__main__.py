"""The child process of ``litert.run_litert``: model and inputs on stdin, outputs on stdout."""

from __future__ import annotations

import json
import os
import sys
from importlib import metadata
from typing import Any


def _backend() -> tuple[str, Any]:
    """Package and version, and the module with its Interpreter; the successor first."""
    try:
        from ai_edge_litert import interpreter as litert

        return f"ai-edge-litert {metadata.version('ai-edge-litert')}", litert
    except ImportError:
        pass
    from tflite_runtime import interpreter as runtime

    return f"tflite-runtime {metadata.version('tflite-runtime')}", runtime


def _run(module: Any, model: bytes, steps: list[tuple[bool, list[bytes]]]) -> tuple[list[list[bytes]], list[str]]:
    """A new interpreter before each step that begins with no state."""
    outputs: list[list[bytes]] = []
    dtypes: list[str] = []
    interpreter = None
    for reset, inputs in steps:
        if reset or interpreter is None:
            interpreter = _interpreter(module, model)
            interpreter.allocate_tensors()
        arrays = _infer(interpreter, inputs)
        outputs.append([array.tobytes() for array in arrays])
        dtypes = [array.dtype.name for array in arrays]
    return outputs, dtypes


def _infer(interpreter: Any, inputs: list[bytes]) -> list[Any]:
    import numpy as np

    for detail, data in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], np.frombuffer(data, detail["dtype"]).reshape(detail["shape"]))
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def _interpreter(module: Any, model: bytes) -> Any:
    """With LiteRT's reference kernels, which compute as TFLM's do, bit for bit; the optimised ones round differently.
    Some operators (ELU) have only an optimised kernel: then with those."""
    kinds = module.OpResolverType
    try:
        return module.Interpreter(model_content=model, num_threads=1, experimental_op_resolver_type=kinds.BUILTIN_REF)
    except ValueError as exc:
        if "Didn't find op" not in str(exc):
            raise
    return module.Interpreter(
        model_content=model,
        num_threads=1,
        experimental_op_resolver_type=kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )


def main() -> int:
    stdout = os.dup(1)
    os.dup2(2, 1)  # LiteRT prints; the answer is alone on the real stdout
    header = json.loads(sys.stdin.buffer.readline())
    model = sys.stdin.buffer.read(header["model_bytes"])
    read = sys.stdin.buffer.read
    steps = [(step["reset"], [read(size) for size in step["input_bytes"]]) for step in header["steps"]]
    backend, refused = "", ""
    outputs: list[list[bytes]] = []
    dtypes: list[str] = []
    try:
        backend, module = _backend()
        outputs, dtypes = _run(module, model, steps)
    except Exception as exc:
        refused = " ".join(f"{type(exc).__name__}: {exc}".split())  # LiteRT's messages have several lines
    sizes = [[len(data) for data in step] for step in outputs]
    answer = {"backend": backend, "refused": refused, "dtypes": dtypes, "output_bytes": sizes}
    with os.fdopen(stdout, "wb") as out:
        out.write(json.dumps(answer).encode() + b"\n" + b"".join(data for step in outputs for data in step))
    return 0


sys.exit(main())
