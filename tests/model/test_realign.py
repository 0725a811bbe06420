"""``--realign``: a copy that says and computes the same, with constants on 16 bytes."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.errors import UnfitModelError
from harness.model.builder import EXAMPLES
from harness.model.checks import check_model
from harness.model.graph import Model
from harness.model.reader import parse_model, read_model
from harness.model.realign import realign


def misaligned(data: bytes) -> bytes:
    """The same flatbuffer, four bytes further: all its constants off by four. Offsets are relative but the root's."""
    return (int.from_bytes(data[:4], "little") + 4).to_bytes(4, "little") + data[4:8] + bytes(4) + data[8:]


def run(data: bytes) -> list[Any]:
    """Outputs of LiteRT on seeded inputs, whichever of its packages is installed."""
    try:
        from tflite_runtime.interpreter import Interpreter
    except ImportError:
        from ai_edge_litert.interpreter import Interpreter
    interpreter = Interpreter(model_content=data)
    interpreter.allocate_tensors()
    generator = np.random.default_rng(3)
    for detail in interpreter.get_input_details():
        values = generator.integers(-50, 50, detail["shape"])
        interpreter.set_tensor(detail["index"], values.astype(detail["dtype"]))
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]).copy() for detail in interpreter.get_output_details()]


def facts(model: Model) -> tuple[object, ...]:
    return model.schema_version, model.subgraphs, model.operator_codes, model.signatures, model.metadata


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_a_realigned_copy_is_aligned_and_says_the_same(name: str) -> None:
    original = parse_model(misaligned(EXAMPLES[name]()))
    copy = parse_model(realign(original))
    assert facts(copy) == facts(original)
    assert all(buffer.offset % 16 == 0 for buffer in copy.buffers if buffer.size_bytes)
    assert "layout.unaligned_buffers" not in {finding.code for finding in check_model(copy)}
    assert [bytes(copy.buffer_data(b.index)) for b in copy.buffers] == [
        bytes(original.buffer_data(b.index)) for b in original.buffers
    ]


@pytest.mark.cases
@pytest.mark.parametrize(
    "name", ["arduino_hello_world", "emlearn_mnist_cnn_int8", "mobilenet_v2_quantized_1x3x224x224"]
)
def test_a_realigned_real_model_computes_the_same(shared_dir: Path, name: str) -> None:
    original = read_model(shared_dir / "models" / f"{name}.tflite")
    assert any(buffer.offset % 16 for buffer in original.buffers if buffer.size_bytes)
    copy = realign(original)
    assert len(copy) <= len(original.data) + 16 * len(original.buffers) + 4096
    for ours, theirs in zip(run(copy), run(original.data), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.cases
def test_external_buffers_are_taken_in_and_the_model_passes(shared_dir: Path) -> None:
    original = read_model(shared_dir / "cases" / "synth" / "external_buffers_offset_size.tflite")
    copy = parse_model(realign(original))
    assert [buffer.external for buffer in copy.buffers if buffer.external] == []
    assert [finding.code for finding in check_model(copy) if finding.severity.value == "refused"] == []
    for ours, theirs in zip(run(copy.data), run(original.data), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_file_with_fields_of_a_newer_schema_is_not_rewritten() -> None:
    """A Model table with an eleventh slot, which this version does not know: writing it anew would lose the field."""
    slots = [0] * 10 + [4]
    vtable = struct.pack("<HH11H", 4 + 22, 8, *slots)
    head = struct.pack("<I4s", 8 + len(vtable) + 2, b"TFL3") + vtable + b"\0\0"
    newer = parse_model(head + struct.pack("<iI", len(vtable) + 2, 1))
    with pytest.raises(UnfitModelError, match="known schema does not: Model"):
        realign(newer)
