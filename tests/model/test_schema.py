"""The schema table against the ``tflite`` package, which was generated from the same schema."""

from __future__ import annotations

import re
from typing import Any

import flatbuffers
import pytest
import tflite

from harness.model.flatbuffer import FlatBuffer, table_plan
from harness.model.schema import BUILTIN_OPERATORS, TABLES, UNIONS

#: In the schema of the pinned TFLM and not yet in the tflite 2.18 package.
NEWER_OPERATORS = {"STABLEHLO_CASE"}
VALUES: dict[str, Any] = {"b": 3, "B": 3, "i": 7, "I": 7, "q": 9, "Q": 9, "f": 1.5, "?": True}


def members(enum: type) -> dict[str, int]:
    return {name: value for name, value in vars(enum).items() if not name.startswith("_")}


def test_operator_names_are_those_of_the_package() -> None:
    known = members(tflite.BuiltinOperator)
    assert {name: BUILTIN_OPERATORS.index(name) for name in BUILTIN_OPERATORS if name in known} == known
    assert set(BUILTIN_OPERATORS) - set(known) <= NEWER_OPERATORS


@pytest.mark.parametrize("union", ["BuiltinOptions", "BuiltinOptions2"])
def test_options_have_the_types_of_the_package(union: str) -> None:
    known = members(getattr(tflite, union))
    for name, value in known.items():
        if value:
            assert UNIONS[union][value - 1] == name


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


#: Tables with fields that the tflite package can build.
BUILDABLE = sorted(name for name in TABLES if hasattr(tflite, name) and hasattr(tflite, f"{name}Start"))


@pytest.mark.parametrize("name", BUILDABLE)
def test_scalar_fields_are_read_from_where_the_package_writes_them(name: str) -> None:
    """Writes every scalar of a table with the package, and reads it back by our field list."""
    builder = flatbuffers.Builder(256)
    getattr(tflite, f"{name}Start")(builder)
    expected: dict[str, Any] = {}
    for entry in table_plan(name).fields:
        add = getattr(tflite, f"{name}Add{''.join(part.title() for part in entry.name.split('_'))}", None)
        if entry.kind == "scalar" and add is not None:
            add(builder, VALUES[entry.code])
            expected[entry.name] = VALUES[entry.code]
    builder.Finish(getattr(tflite, f"{name}End")(builder))
    values = FlatBuffer(bytes(builder.Output())).root(name)
    assert dict(zip(table_plan(name).field_names, values, strict=True)) | expected == dict(
        zip(table_plan(name).field_names, values, strict=True)
    )


@pytest.mark.parametrize("name", BUILDABLE)
def test_the_package_knows_no_field_that_the_table_lacks(name: str) -> None:
    adders = {
        match.group(1) for attr in dir(tflite) if (match := re.fullmatch(rf"{name}Add([A-Z]\w*)", attr)) is not None
    }
    ours = {word.split(":")[0].lstrip("-") for word in TABLES[name].split()}
    ours |= {f"{field.name}_type" for field in table_plan(name).fields if field.kind == "union"}
    theirs = {snake(adder) for adder in adders}
    squeezed = {field.replace("_", "") for field in ours}
    assert {field for field in theirs if field.replace("_", "") not in squeezed} <= {"deprecated_tag"}
