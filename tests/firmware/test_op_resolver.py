"""The resolver has exactly the model's operators: all subgraphs, each once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.errors import ExitCode
from harness.firmware.config import FirmwareConfig
from harness.firmware.library import TflmLibrary
from harness.firmware.op_resolver import (
    BUILTIN_METHODS,
    CUSTOM_METHODS,
    UnsupportedOperatorError,
    check_methods,
    methods_in_header,
    resolver_methods,
)
from harness.firmware.render import render_models
from harness.model.graph import Model, Operator, OperatorCode, SubGraph


def model_of(*subgraphs: list[tuple[str, int, str | None]]) -> Model:
    """A model with operators (name, version, custom name) per subgraph."""
    graphs = []
    codes: list[OperatorCode] = []
    for index, entries in enumerate(subgraphs):
        operators = []
        for number, (name, version, custom) in enumerate(entries):
            code = OperatorCode(len(codes), 32 if name == "CUSTOM" else 0, name, 0, 0, version, custom)
            codes.append(code)
            operators.append(Operator(number, code, (), ()))
        graphs.append(SubGraph(index, f"g{index}", (), tuple(operators), (), ()))
    return Model("m.tflite", "0" * 64, b"", 3, "", tuple(codes), tuple(graphs), ())


def test_operators_of_all_subgraphs_stand_once_in_order_of_use() -> None:
    model = model_of(
        [("CONV_2D", 1, None), ("RELU", 1, None), ("CONV_2D", 3, None), ("WHILE", 1, None)],
        [("LESS", 1, None)],
        [("ADD", 1, None), ("RELU", 2, None)],
    )
    assert resolver_methods(model) == ("AddConv2D", "AddRelu", "AddWhile", "AddLess", "AddAdd")


def test_custom_operators_are_told_apart_by_name() -> None:
    model = model_of([("CUSTOM", 1, "SignalRfft"), ("CUSTOM", 1, "SignalWindow"), ("CUSTOM", 2, "SignalRfft")])
    assert resolver_methods(model) == ("AddRfft", "AddWindow")


def test_every_missing_operator_is_named_at_once_and_hostile_names_are_escaped() -> None:
    hostile = 'x"); system("rm -rf /\n\x1b[31m'
    model = model_of([("CUSTOM", 1, hostile), ("LSH_PROJECTION", 1, None), ("ADD", 1, None)], [("RFFT2D", 1, None)])
    with pytest.raises(UnsupportedOperatorError) as caught:
        resolver_methods(model)
    message = caught.value.message
    assert "LSH_PROJECTION" in message and "RFFT2D" in message
    assert "\n" not in message and "\x1b" not in message
    assert caught.value.exit_code == ExitCode.RESULT_BAD


def test_no_name_of_a_model_reaches_the_rendered_sources() -> None:
    model = model_of([("CUSTOM", 1, "SignalRfft")])
    texts = render_models([model], FirmwareConfig(4096), resolver_methods(model))
    assert "resolver->AddRfft()" in texts["op_resolver.cc"]
    assert all("SignalRfft" not in text for text in texts.values())


def test_every_status_is_checked() -> None:
    model = model_of([("ADD", 1, None), ("MUL", 1, None)])
    source = render_models([model], FirmwareConfig(4096), resolver_methods(model))["op_resolver.cc"]
    assert len(re.findall(r"if \(resolver->Add\w+\(\) != kTfLiteOk\)", source)) == 2
    assert "MicroMutableOpResolver<2>" in source


def test_a_library_without_a_method_is_told_before_compiling() -> None:
    header = "  TfLiteStatus AddAdd() { }\n  TfLiteStatus AddMul(\n      const X& r = Register_MUL()) {"
    assert methods_in_header(header) == {"AddAdd", "AddMul"}
    with pytest.raises(UnsupportedOperatorError, match="AddBroadcastTo"):
        check_methods(("AddAdd", "AddBroadcastTo"), header)


@pytest.mark.tflm
def test_the_table_names_the_methods_of_real_tflm(real_libraries: list[TflmLibrary]) -> None:
    there = methods_in_header(real_libraries[0].resolver_header) - {"AddCustom", "AddBuiltin", "AddEthosU"}
    assert there == {*BUILTIN_METHODS.values(), *CUSTOM_METHODS.values()}


@pytest.mark.tflm
def test_the_table_pairs_operators_with_methods_as_real_tflm_does(real_libraries: list[TflmLibrary]) -> None:
    header = re.sub(r"\s+", " ", real_libraries[0].resolver_header)
    for match in re.finditer(
        r"TfLiteStatus (Add\w+)\((?:(?!TfLiteStatus Add).)*?AddBuiltin\(BuiltinOperator_(\w+)", header
    ):
        assert BUILTIN_METHODS[match.group(2)] == match.group(1)
    for match in re.finditer(r'TfLiteStatus (Add\w+)\((?:(?!TfLiteStatus Add).)*?AddCustom\( ?"(\w+)"', header):
        assert CUSTOM_METHODS[match.group(2)] == match.group(1)


def test_paths_are_not_part_of_rendered_sources(tmp_path: Path) -> None:
    model = model_of([("ADD", 1, None)])
    texts = render_models([model], FirmwareConfig(4096), resolver_methods(model))
    assert str(tmp_path) not in "".join(texts.values())
    assert '.incbin "model.bin"' in texts["model.S"]
