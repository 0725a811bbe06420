"""Bytes in, Model out; or a ModelFileError that says what the bytes are."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import numpy as np
import pytest
import tflite

from harness.errors import ExitCode, ModelFileError
from harness.model.builder import EXAMPLES
from harness.model.graph import TensorType
from harness.model.reader import ModelIndexError, parse_model, read_model


def empty_model(identifier: bytes = b"TFL3") -> bytes:
    """The smallest flatbuffer: a root table without a field (vtable at 8, table at 12)."""
    return struct.pack("<I4sHHi", 12, identifier, 4, 4, 4)


def test_a_model_without_fields_has_the_defaults_of_the_schema() -> None:
    model = parse_model(empty_model(), "x.tflite")
    assert (model.path, model.schema_version, model.description, model.size_bytes) == ("x.tflite", 0, "", 16)
    assert (model.subgraphs, model.buffers, model.operator_codes, model.signatures) == ((), (), (), ())


NOT_MODELS = [
    (b"", "model.empty", "the file is empty (0 bytes)"),
    (b"\x1c\0\0\0", "model.truncated", "the file is only 4 bytes long; the header of a .tflite model alone has 8"),
    (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 98640\n",
        "model.lfs_pointer",
        "the file is a Git LFS pointer, not the model itself (the model has 98,640 bytes)",
    ),
    (b"PK\x03\x04TFL3xxxx", "model.archive", "the file is a zip archive"),
    (b"\x1f\x8b\x08\x00abcd", "model.archive", "the file is gzip-compressed data"),
    (b"\x89HDF\r\n\x1a\n0000", "model.other_format", "the file is an HDF5 file (a Keras model)"),
    (b"<!DOCTYPE html><html>", "model.text", "the file is a web page, not a .tflite model"),
    (b"alignas(16) const unsigned char g[] = {", "model.text", "the file is C source text, not a .tflite model"),
    (b"../a/b.tflite", "model.text", 'the file is text that begins "../a/b.tflite", not a .tflite model'),
    (
        empty_model(b"TFL2"),
        "model.identifier",
        'bytes 4 to 8 of the file are "TFL2", not the file identifier TFL3 of a .tflite model',
    ),
    (
        struct.pack("<I", 16) + empty_model(),
        "model.size_prefixed",
        "the flatbuffer is size-prefixed: its length stands before it, and TFLM does not expect that",
    ),
    (
        bytes(4) + empty_model(),
        "model.shifted",
        "the file identifier TFL3 stands at byte 8, not at byte 4: the model is shifted by 4 bytes",
    ),
    (
        b"\xf0\0\0\0TFL3",
        "model.truncated",
        "the root table reaches from byte 240 to byte 244, but the file ends at byte 8",
    ),
    (struct.pack("<I4sHHi", 14, b"TFL3", 4, 4, 4) + b"\0\0", "model.damaged", "the root table is not on a multiple"),
    (struct.pack("<I4sHHi", 12, b"TFL3", 4, 4, 400), "model.damaged", "the vtable of Model lies outside the file"),
    (struct.pack("<I4sHHi", 12, b"TFL3", 400, 4, 4), "model.truncated", "the vtable of Model reaches from byte 8"),
    (struct.pack("<I4sHHi", 12, b"TFL3", 2, 4, 4), "model.damaged", "the vtable of Model says that it is 2 bytes"),
]


@pytest.mark.parametrize(
    ("data", "code", "message"), NOT_MODELS, ids=[f"{c}-{i}" for i, (_, c, _) in enumerate(NOT_MODELS)]
)
def test_what_is_no_model_is_named(data: bytes, code: str, message: str) -> None:
    with pytest.raises(ModelFileError) as caught:
        parse_model(data)
    assert caught.value.code == code
    assert caught.value.message.startswith(message)
    assert caught.value.remedy
    assert caught.value.exit_code is ExitCode.USAGE


def test_a_missing_file_and_a_directory_are_named(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="No such file"):
        read_model(tmp_path / "absent.tflite")
    with pytest.raises(ModelFileError, match="is a directory"):
        read_model(tmp_path)


def test_a_pipe_and_a_huge_file_are_not_read(tmp_path: Path) -> None:
    """A read of a pipe that nobody writes to never ends; a sparse file of 3 GB would take all memory."""
    pipe = tmp_path / "pipe"
    if hasattr(os, "mkfifo"):
        os.mkfifo(pipe)
        with pytest.raises(ModelFileError, match="is not a regular file"):
            read_model(pipe)
    huge = tmp_path / "huge.tflite"
    with huge.open("wb") as file:
        file.truncate(3_000_000_000)
    with pytest.raises(ModelFileError, match="has 3,000,000,000 bytes") as caught:
        read_model(huge)
    assert caught.value.code == "model.too_large"


def test_a_vector_that_names_one_table_a_million_times_ends_in_an_error() -> None:
    """A 4 MB file can name one subgraph with a million tensors a thousand times: 10^9 tables."""
    count = 400_000  # a 1.6 MB file
    # root table at 24 with subgraphs (slot 2) at +4; the vector at 32 points at the subgraph table each time
    vtable = struct.pack("<HHHHHxx", 10, 8, 0, 0, 4)
    head = struct.pack("<I4s", 24, b"TFL3") + bytes(4) + vtable + struct.pack("<iI", 24 - 12, 4)
    places = range(36, 36 + 4 * count, 4)
    target = 36 + 4 * count
    vector = struct.pack("<I", count) + b"".join(struct.pack("<I", target - at) for at in places)
    # the subgraph's own vtable: empty, right behind its table
    data = head + vector + struct.pack("<iHH", -4, 4, 4)
    with pytest.raises(ModelFileError) as caught:
        parse_model(data)
    assert caught.value.code == "model.too_complex"


@pytest.mark.cases
def test_the_facts_of_a_real_model(shared_dir: Path) -> None:
    model = read_model(shared_dir / "models" / "person_detect.tflite")
    graph = model.subgraphs[0]
    first = graph.operators[0]
    assert (model.schema_version, len(graph.operators), len(graph.tensors)) == (3, 31, 89)
    assert first.name == "DEPTHWISE_CONV_2D"
    assert first.options["stride_w"] == 2
    assert first.options["dilation_h_factor"] == 1
    image = graph.tensors[graph.inputs[0]]
    assert (image.type, image.shape) == (TensorType.INT8, (1, 96, 96, 1))
    weights = graph.tensors[first.inputs[1]]
    assert len(model.buffer_data(weights.buffer)) == weights.element_count


@pytest.mark.cases
def test_the_operator_code_is_the_larger_of_the_raw_fields(shared_dir: Path) -> None:
    """The tflite package says ADD for a file that holds (deprecated 32, builtin 0): TFLM runs a custom operator."""
    codes = {
        "synth/opcode_deprecated_0": ("FULLY_CONNECTED", 9, 0),
        "synth/opcode_pre24_builtin_0": ("FULLY_CONNECTED", 0, 9),
        "synth/opcode_fields_disagree": ("SOFTMAX", 9, 25),
        "files/litert_double_flex": ("CUSTOM", 32, 32),
        "synth/builtin_code_250_unknown": ("BUILTIN_250", 250, 127),
    }
    for name, expected in codes.items():
        code = read_model(shared_dir / "cases" / f"{name}.tflite").operator_codes[0]
        assert (code.name, code.builtin_code, code.deprecated_builtin_code) == expected, name


@pytest.mark.cases
@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("buffer_index_oob", "index.buffer"),
        ("graph_input_oob", "index.graph_input"),
        ("op_input_tensor_oob", "index.operator_input"),
        ("opcode_index_oob", "index.opcode"),
        ("signature_tensor_oob", "index.signature"),
    ],
)
def test_an_index_out_of_range_is_an_error_unless_read_leniently(shared_dir: Path, name: str, code: str) -> None:
    path = shared_dir / "cases" / "synth" / f"{name}.tflite"
    with pytest.raises(ModelIndexError) as caught:
        read_model(path)
    assert caught.value.code == code
    assert caught.value.exit_code is ExitCode.RESULT_BAD
    assert read_model(path, lenient=True).subgraphs


@pytest.mark.cases
def test_every_truncation_of_a_model_is_an_error(shared_dir: Path) -> None:
    data = (shared_dir / "models" / "arduino_hello_world.tflite").read_bytes()
    for size in range(len(data)):
        with pytest.raises(ModelFileError):
            parse_model(data[:size])


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_the_facts_are_those_that_the_tflite_package_reads(name: str) -> None:
    """Two readers of one file: ours, and the accessors that flatc generated."""
    data = EXAMPLES[name]()
    model, other = parse_model(data), tflite.Model.GetRootAs(data, 0)
    assert (len(model.subgraphs), len(model.buffers)) == (other.SubgraphsLength(), other.BuffersLength())
    for subgraph in model.subgraphs:
        graph = other.Subgraphs(subgraph.index)
        assert (subgraph.name, len(subgraph.tensors)) == (graph.Name().decode(), graph.TensorsLength())
        assert list(subgraph.inputs) == [graph.Inputs(i) for i in range(graph.InputsLength())]
        assert list(subgraph.outputs) == [graph.Outputs(i) for i in range(graph.OutputsLength())]
        for tensor in subgraph.tensors:
            record = graph.Tensors(tensor.index)
            assert (tensor.name, tensor.type, tensor.buffer) == (record.Name().decode(), record.Type(), record.Buffer())
            assert list(tensor.dims) == [record.Shape(i) for i in range(record.ShapeLength())]
            scales = record.Quantization()
            if tensor.quantization is not None and tensor.quantization.scales is not None:
                assert list(tensor.quantization.scales) == [scales.Scale(i) for i in range(scales.ScaleLength())]
        for operator in subgraph.operators:
            entry = graph.Operators(operator.index)
            assert operator.opcode.index == entry.OpcodeIndex()
            assert list(operator.inputs) == [entry.Inputs(i) for i in range(entry.InputsLength())]
            assert operator.options_type == entry.BuiltinOptionsType()
    for buffer in model.buffers:
        data_there = np.asarray(other.Buffers(buffer.index).DataAsNumpy())
        assert bytes(model.buffer_data(buffer.index)) == (data_there.tobytes() if buffer.size_bytes else b"")
