"""TFLM's interpreter in this process, with what it prints. Owner of ``import tflite_micro``.

It runs native code that crashes on purpose-made or too small arenas: only ever used in a process that may die.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from harness.wire.messages import AllocationCategory, AllocationRow, InterpreterKind

#: Largest arena that a trial may ask for. The memory is only touched as far as TFLM uses it.
CAPACITY_BYTES = 512 * 1024 * 1024

_TOTALS = re.compile(r"Arena allocation (total|head|tail) (\d+) bytes")
_CATEGORY = re.compile(r"'([^']+)' used (\d+) bytes with alignment overhead \(requested (\d+) bytes for (\d+) ")
#: RecordingMicroAllocator::PrintAllocations (recording_micro_allocator.cc, 90b983c).
_CATEGORIES = {
    "TfLiteEvalTensor data": AllocationCategory.EVAL_TENSOR_DATA,
    "Persistent TfLiteTensor data": AllocationCategory.PERSISTENT_TENSOR_DATA,
    "Persistent TfLiteTensor quantization data": AllocationCategory.PERSISTENT_TENSOR_QUANTIZATION_DATA,
    "Persistent buffer data": AllocationCategory.PERSISTENT_BUFFER_DATA,
    "TfLiteTensor variable buffer data": AllocationCategory.TENSOR_VARIABLE_BUFFER_DATA,
    "NodeAndRegistration struct": AllocationCategory.NODE_AND_REGISTRATION_ARRAY,
    "Operator runtime data": AllocationCategory.OP_DATA,
    "Persistent compression data": AllocationCategory.COMPRESSION_DATA,
}


def tflm_commit() -> str:
    """The TFLM commit (abbreviated) that the installed package was built from, as its metadata says."""
    description = metadata.distribution("tflite_micro").read_text("METADATA") or ""
    match = re.search(r"built from commit\s+\[([0-9a-f]{7,40})\]", description)
    return match.group(1) if match else ""


@dataclass(frozen=True, slots=True)
class RecordedAllocations:
    """What the recording allocator printed."""

    total_bytes: int
    head_bytes: int
    tail_bytes: int
    rows: tuple[AllocationRow, ...]


def parse_allocations(text: str) -> RecordedAllocations:
    """Raises ValueError when the text does not hold the three totals."""
    totals = {name: int(count) for name, count in _TOTALS.findall(text)}
    if totals.keys() != {"total", "head", "tail"}:
        raise ValueError("the recording allocator printed no totals")
    rows = tuple(
        AllocationRow(_CATEGORIES.get(name, AllocationCategory.UNKNOWN), int(requested), int(used), int(count))
        for name, used, requested, count in _CATEGORY.findall(text)
    )
    return RecordedAllocations(totals["total"], totals["head"], totals["tail"], rows)


class TflmLog:
    """What TFLM prints to file descriptor 2, kept in memory; outlives the process that prints."""

    def __init__(self) -> None:
        self._file = os.memfd_create("tflm-log")

    def capture(self) -> None:
        """From now on this process's descriptor 2 is the log."""
        os.dup2(self._file, 2)

    def clear(self) -> None:
        os.ftruncate(self._file, 0)
        os.lseek(self._file, 0, os.SEEK_SET)

    @property
    def size_bytes(self) -> int:
        return os.fstat(self._file).st_size

    def read(self, offset: int = 0, size: int = 65536) -> bytes:
        return os.pread(self._file, size, offset)

    def tail(self, limit: int) -> str:
        """The last lines, joined, at most ``limit`` characters; whole lines where they fit."""
        text = self.read(max(0, self.size_bytes - 4096)).decode("utf-8", "replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        joined = ""
        for line in reversed(lines):
            longer = f"{line} | {joined}" if joined else line
            if len(longer) > limit:
                return joined or line[:limit]
            joined = longer
        return joined


class HostInterpreter:
    """One interpreter with one arena. Raises RuntimeError with TFLM's reason where AllocateTensors fails."""

    def __init__(self, model: bytes, arena_bytes: int, kind: InterpreterKind, log: TflmLog) -> None:
        from tflite_micro.python.tflite_micro import runtime

        config = runtime.InterpreterConfig
        chosen = {
            InterpreterKind.RECORDING: config.kAllocationRecording,
            InterpreterKind.PRESERVE_ALL: config.kPreserveAllTensors,
        }[kind]
        self._log = log
        self._recording = kind is InterpreterKind.RECORDING
        self._interpreter: Any = runtime.Interpreter.from_bytes(
            model, arena_size=arena_bytes, intrepreter_config=chosen
        )

    def input_layout(self, index: int) -> tuple[Any, tuple[int, ...]]:
        """numpy dtype and shape of an input."""
        details = self._interpreter.get_input_details(index)
        return details["dtype"], tuple(int(dim) for dim in details["shape"])

    def set_input(self, index: int, data: bytes) -> None:
        import numpy as np

        dtype, shape = self.input_layout(index)
        self._interpreter.set_input(np.frombuffer(data, dtype).reshape(shape), index)

    def invoke(self) -> None:
        """Raises RuntimeError where Invoke fails."""
        if self._interpreter.invoke() != 0:
            raise RuntimeError("Invoke returned an error")

    def reset(self) -> None:
        self._interpreter.reset()

    def outputs(self, count: int) -> list[bytes]:
        return [self._interpreter.get_output(index).tobytes() for index in range(count)]

    def tensor(self, subgraph: int, index: int) -> bytes:
        """The bytes of any tensor; only with all tensors preserved."""
        data: bytes = self._interpreter.GetTensor(index, subgraph)["tensor_data"].tobytes()
        return data

    def allocations(self) -> RecordedAllocations | None:
        """None where the interpreter does not record."""
        if not self._recording:
            return None
        before = self._log.size_bytes
        self._interpreter.print_allocations()
        text = self._log.read(before).decode("utf-8", "replace")
        return parse_allocations(text)


def model_io(model: bytes) -> tuple[Sequence[int], Sequence[int], Sequence[tuple[int, int]]]:
    """Types of the inputs and outputs of subgraph 0 (TensorType values), and (subgraph, tensor) of every tensor."""
    from tflite_micro.tensorflow.lite.micro.python import schema_py_generated as schema

    root = schema.Model.GetRootAsModel(model, 0)
    main = root.Subgraphs(0)
    inputs = [main.Tensors(main.Inputs(i)).Type() for i in range(main.InputsLength())]
    outputs = [main.Tensors(main.Outputs(i)).Type() for i in range(main.OutputsLength())]
    tensors = [(g, t) for g in range(root.SubgraphsLength()) for t in range(root.Subgraphs(g).TensorsLength())]
    return inputs, outputs, tensors
