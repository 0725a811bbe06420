"""What is shipped: entry points, the data in wheel and sdist, and dependencies that fit every platform."""

from __future__ import annotations

import ast
import subprocess
import sys
import tarfile
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parent.parent

#: (sys_platform, platform_machine, Python) → the LiteRT package, and the major version of numpy that it was built for.
BACKENDS = {
    ("linux", "x86_64", "3.10"): ("tflite-runtime", 1),
    ("linux", "x86_64", "3.11"): ("tflite-runtime", 1),
    ("linux", "x86_64", "3.12"): ("ai-edge-litert", 2),
    ("linux", "x86_64", "3.13"): ("ai-edge-litert", 2),
    ("linux", "aarch64", "3.11"): ("tflite-runtime", 1),
    ("linux", "aarch64", "3.12"): ("ai-edge-litert", 2),
    ("darwin", "arm64", "3.10"): ("ai-edge-litert", 2),
    ("darwin", "arm64", "3.13"): ("ai-edge-litert", 2),
    ("darwin", "x86_64", "3.12"): ("", 2),
    ("win32", "AMD64", "3.11"): ("ai-edge-litert", 2),
    ("win32", "AMD64", "3.13"): ("ai-edge-litert", 2),
}


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wheel and sdist, built from this checkout with the backend that pyproject.toml names."""
    pytest.importorskip("hatchling", reason="building needs hatchling: the extra [test] has it")
    folder = tmp_path_factory.mktemp("dist")
    argv = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(argv, cwd=ROOT, check=True, capture_output=True, timeout=PATIENCE_S)
    return folder


@pytest.fixture(scope="module")
def wheel_names(dist: Path) -> set[str]:
    (path,) = dist.glob("*.whl")
    return set(zipfile.ZipFile(path).namelist())


def tracked(folder: str) -> set[str]:
    """The files of a folder of this checkout, without what Python leaves behind."""
    return {
        path.relative_to(ROOT / folder).as_posix()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.mark.parametrize("folder", ["boards", "firmware_templates"])
def test_the_wheel_carries_the_data_that_lies_at_the_top(wheel_names: set[str], folder: str) -> None:
    prefix = f"harness/data/{folder}/"
    assert {name.removeprefix(prefix) for name in wheel_names if name.startswith(prefix)} == tracked(folder)
    assert tracked(folder)


def test_the_wheel_carries_every_file_of_the_package_and_nothing_else(wheel_names: set[str]) -> None:
    package = {f"harness/{name}" for name in tracked("harness")}
    assert package <= wheel_names
    assert "harness/py.typed" in wheel_names
    others = {name for name in wheel_names - package if not name.startswith("harness/data/")}
    assert {name.split("/")[0].split("-")[0] for name in others} == {"tflm_harness"}  # only the .dist-info
    assert any(name.endswith("licenses/LICENSE") for name in others)


def test_a_wheel_can_be_built_from_the_sdist_and_is_the_same(dist: Path, wheel_names: set[str], tmp_path: Path) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    assert {"Makefile", "LICENSE", "README.md", "CHANGELOG.md", "tests", "examples", ".ci"} <= {
        path.name for path in source.iterdir()
    }
    argv = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "again")]
    subprocess.run(argv, cwd=source, check=True, capture_output=True, timeout=PATIENCE_S)
    (again,) = (tmp_path / "again").glob("*.whl")
    assert set(zipfile.ZipFile(again).namelist()) == wheel_names


def entry_points() -> list[metadata.EntryPoint]:
    return list(metadata.distribution("tflm-harness").entry_points)


def test_the_command_is_harness() -> None:
    scripts = {point.name: point.value for point in entry_points() if point.group == "console_scripts"}
    assert scripts == {"harness": "harness.__main__:main"}


@pytest.mark.parametrize("point", entry_points(), ids=lambda point: f"{point.group}:{point.name}")
def test_every_entry_point_can_be_loaded(point: metadata.EntryPoint) -> None:
    if point.group.startswith("pyocd."):
        pytest.importorskip("pyocd", reason="the plugin needs the extra [sim]")  # pyOCD is there before its plugins
    loaded = point.load()
    assert callable(loaded) == bool(point.attr)  # pytest's plugins are modules


def requirements_for(platform: tuple[str, str, str]) -> dict[str, Requirement]:
    system, machine, python = platform
    environment = {"sys_platform": system, "platform_machine": machine, "python_version": python, "extra": ""}
    declared = [Requirement(text) for text in metadata.requires("tflm-harness") or []]
    chosen = [r for r in declared if r.marker is None or r.marker.evaluate(environment)]
    names = [requirement.name for requirement in chosen]
    assert len(names) == len(set(names)), f"{platform}: a package is asked for twice"
    return {requirement.name: requirement for requirement in chosen}


@pytest.mark.parametrize("platform", BACKENDS, ids="-".join)
def test_each_platform_gets_one_backend_and_the_numpy_it_was_built_for(platform: tuple[str, str, str]) -> None:
    """tflite-runtime 2.14 fails with numpy 2 ("_ARRAY_API not found"), and pandas 3 refuses numpy 1."""
    found = requirements_for(platform)
    backend, numpy_major = BACKENDS[platform]
    assert {"tflite-runtime", "ai-edge-litert"} & set(found) == ({backend} if backend else set())
    assert found["numpy"].specifier.contains("1.26.4") == (numpy_major == 1)
    assert found["numpy"].specifier.contains("2.2.0") == (numpy_major == 2)
    assert found["pandas"].specifier.contains("3.0.0") == (numpy_major == 2)


@pytest.mark.parametrize("platform", BACKENDS, ids="-".join)
def test_tflm_for_the_host_board_is_asked_for_where_it_has_wheels(platform: tuple[str, str, str]) -> None:
    assert ("tflite-micro" in requirements_for(platform)) == (platform[:2] == ("linux", "x86_64"))


def test_tflm_and_the_schema_are_pinned() -> None:
    found = requirements_for(("linux", "x86_64", "3.11"))
    assert str(found["tflite-micro"].specifier).startswith("==")
    assert str(found["tflite"].specifier).startswith("==")


def foreign_imports() -> set[str]:
    """Top-level names of what the package imports, without the standard library and itself."""
    names: set[str] = set()
    for path in (ROOT / "harness").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                names.add(node.module.split(".")[0])
    return names - sys.stdlib_module_names - {"harness"}


def test_everything_that_is_imported_is_declared() -> None:
    """What comes along with another package today may not tomorrow."""
    declared = {canonicalize_name(Requirement(text).name) for text in metadata.requires("tflm-harness") or []}
    providers = metadata.packages_distributions()
    undeclared = {
        name: providers[name]
        for name in sorted(foreign_imports() & providers.keys())
        if not {canonicalize_name(provider) for provider in providers[name]} & declared
    }
    assert undeclared == {}
    assert len(foreign_imports() & providers.keys()) > 10
