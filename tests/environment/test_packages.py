"""Packages held against what is declared: literal declarations, literal installations."""

from __future__ import annotations

import dataclasses
import sys

import pytest

from harness.environment.packages import declared_requirements, loads, package_parts, python_part
from harness.environment.part import Kind, Part, Status, capability_gaps

DECLARED = [
    "click<9,>=8.1",
    "numpy<2,>=1.24",
    "tflite-runtime==2.14.0",
    "tflite-micro==0.dev1",
    'pyocd==0.46.0; extra == "pyocd"',
    'pyocd==0.46.0; extra == "sim"',
    'unicorn==2.1.4; extra == "sim"',
    'pytest>=8; extra == "test"',
]
INSTALLED = {
    "click": "8.2.0",
    "numpy": "1.26.4",
    "tflite-runtime": "2.14.0",
    "tflite-micro": "0.dev1",
    "pyocd": "0.46.0",
    "unicorn": "2.1.4",
}


def statuses(installed: dict[str, str], declared: list[str] = DECLARED) -> dict[str, Status]:
    return {part.name: part.status for part in package_parts(declared, installed.get)}


def test_all_is_there() -> None:
    parts = package_parts(DECLARED, INSTALLED.get)
    assert {part.name: part.status for part in parts} == dict.fromkeys(INSTALLED, Status.OK)
    assert [gaps for gaps in capability_gaps(parts).values() if gaps] == []


def test_the_test_extra_is_no_part_of_a_users_installation() -> None:
    assert "pytest" not in statuses(INSTALLED)


def test_a_wrong_numpy_is_told_with_both_versions_and_the_command() -> None:
    parts = package_parts(DECLARED, (INSTALLED | {"numpy": "2.1.0"}).get)
    numpy = next(part for part in parts if part.name == "numpy")
    assert (numpy.status, numpy.version, numpy.detail) == (Status.WRONG, "2.1.0", "<2,>=1.24 is declared")
    assert numpy.remedy == 'python -m pip install "numpy<2,>=1.24"'
    assert numpy.is_fatal


def test_the_successor_of_the_backend_brings_its_own_numpy() -> None:
    """ai-edge-litert in place of tflite-runtime is a right installation, and it needs numpy 2."""
    installed = {name: version for name, version in INSTALLED.items() if name != "tflite-runtime"}
    found = statuses(installed | {"ai-edge-litert": "2.0.1", "numpy": "2.1.0"})
    assert (found["ai-edge-litert"], found["numpy"]) == (Status.OK, Status.OK)
    assert "tflite-runtime" not in found


def test_without_any_backend_the_declared_one_is_missing() -> None:
    installed = {name: version for name, version in INSTALLED.items() if name != "tflite-runtime"}
    assert statuses(installed)["tflite-runtime"] is Status.MISSING


def test_a_missing_extra_is_not_fatal_and_names_what_falls_away() -> None:
    installed = {name: version for name, version in INSTALLED.items() if name not in {"pyocd", "unicorn"}}
    parts = package_parts(DECLARED, installed.get)
    assert not any(part.is_fatal for part in parts)
    gaps = capability_gaps(parts)
    assert gaps["flash and measure boards"] == ["pyocd"]
    assert gaps["sweep on twins (sim:…)"] == ["pyocd", "unicorn"]
    assert gaps["sweep on the host board"] == []


def test_the_remedy_keeps_the_extras_of_a_requirement() -> None:
    declared = ["tflite-runtime==2.14.0", 'psycopg[binary]>=3.1; extra == "postgres"']
    psycopg = next(part for part in package_parts(declared, INSTALLED.get) if part.name == "psycopg")
    assert (psycopg.needed_for, psycopg.remedy) == ("PostgreSQL", 'python -m pip install "psycopg[binary]>=3.1"')


def test_tflm_without_a_wheel_for_the_platform_is_unavailable_not_missing() -> None:
    declared = ["click", 'tflite-micro==0.dev1; sys_platform == "plan9"', "tflite-runtime==2.14.0"]
    parts = package_parts(declared, {"click": "8.2.0", "tflite-runtime": "2.14.0"}.get)
    assert not any(part.is_fatal for part in parts)
    assert capability_gaps(parts)["sweep on the host board"] == ["tflite-micro"]
    assert capability_gaps(parts)["compare with LiteRT"] == []


def test_no_backend_wheel_for_the_platform_is_unavailable() -> None:
    declared = ["click", 'tflite-runtime==2.14.0; sys_platform == "plan9"', 'ai-edge-litert>=2; os_name == "plan9"']
    found = statuses({"click": "8.2.0"}, declared)
    assert found["ai-edge-litert"] is Status.UNAVAILABLE


def test_an_old_python_is_told() -> None:
    part = python_part(">=4.0")
    assert (part.status, part.remedy) == (Status.WRONG, "make a virtual environment with Python >=4.0")
    assert python_part().status is Status.OK


PART = Part(Kind.PACKAGE, "some-package", Status.OK, "everything", "1.0", required=True)


def test_a_package_that_loads_stays_as_it_is() -> None:
    assert loads(PART, "json") == PART


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        ("no_such_module_at_all", "ModuleNotFoundError: No module named 'no_such_module_at_all'"),
        ("os; os.abort()", "import os; os.abort() ended with -6"),
        (
            "sys; sys.stderr.write('AttributeError: _ARRAY_API not found'); sys.exit(1)",
            "another major version of numpy",
        ),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="exit codes of signals are POSIX")
def test_a_package_that_does_not_load_is_wrong_with_the_reason(module: str, reason: str) -> None:
    broken = loads(PART, module)
    assert broken.status is Status.WRONG
    assert reason in broken.detail


def test_what_is_missing_is_not_tried() -> None:
    missing = dataclasses.replace(PART, status=Status.MISSING)
    assert loads(missing, "no_such_module_at_all") == missing


def test_this_installation_declares_what_it_needs() -> None:
    names = {
        requirement.split(">")[0].split("<")[0].split("=")[0].split(";")[0] for requirement in declared_requirements()
    }
    assert {"click", "cobs", "tflite", "pyocd", "tflite-micro"} <= names
