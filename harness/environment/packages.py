"""Python and its packages, held against what the distribution itself declares."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import metadata

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from harness.environment.part import Kind, Part, Status

DISTRIBUTION = "tflm-harness"
#: The two LiteRT packages are one thing to us: either will do. Name → the module that must load.
BACKENDS = {"tflite-runtime": "tflite_runtime.interpreter", "ai-edge-litert": "ai_edge_litert.interpreter"}
#: numpy 1 or 2 is a question of the backend; with the successor instead of the declared one, another numpy is right.
TIED_TO_BACKEND = frozenset({"numpy", "pandas"})
TFLM = "tflite-micro"
TFLM_MODULE = "tflite_micro.python.tflite_micro.runtime"
EXTRAS = {
    "pyocd": "flashing boards",
    "sim": "twins",
    "plot": "PNG pictures",
    "parquet": "Parquet",
    "postgres": "PostgreSQL",
}
_IMPORT_TIMEOUT_S = 60

#: Version of an installed distribution, or None.
Lookup = Callable[[str], "str | None"]


def installed_version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def declared_requirements() -> list[str]:
    return metadata.requires(DISTRIBUTION) or []


def python_part(wanted: str | None = None) -> Part:
    version = platform.python_version()
    wanted = wanted or str(metadata.metadata(DISTRIBUTION)["Requires-Python"])
    fits = SpecifierSet(wanted).contains(version, prereleases=True)
    detail = f"{platform.system()} {platform.machine()}, {sys.executable}"
    remedy = "" if fits else f"make a virtual environment with Python {wanted}"
    status = Status.OK if fits else Status.WRONG
    return Part(Kind.PYTHON, "python", status, "everything", version, detail, remedy, required=True)


def package_parts(declared: Sequence[str], lookup: Lookup = installed_version) -> list[Part]:
    """A part for each declared dependency that applies here, then those of the extras, then the backend and TFLM."""
    requirements = [Requirement(text) for text in declared]
    backend = next((name for name in BACKENDS if lookup(name)), "")
    own = {*BACKENDS, TFLM}
    parts: dict[str, Part] = {}
    for extra, needed_for in {"": "everything", **EXTRAS}.items():
        for requirement in requirements:
            name = canonicalize_name(requirement.name)
            if name not in parts and name not in own and _applies(requirement, extra):
                tied = name in TIED_TO_BACKEND and backend == "ai-edge-litert"
                specifier = SpecifierSet() if tied else requirement.specifier
                extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
                parts[name] = _package(name, specifier, needed_for, lookup(name), required=not extra, extras=extras)
    return [*parts.values(), _backend(requirements, backend, lookup), _tflm(requirements, lookup)]


def loads(part: Part, module: str) -> Part:
    """The same part, tried out: a child process imports the module, since a wrong numpy can take the process along."""
    if part.status is not Status.OK:
        return part
    argv = [sys.executable, "-c", f"import {module}"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_IMPORT_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return _broken(part, f"import {module} did not end within {_IMPORT_TIMEOUT_S} s")
    if done.returncode == 0:
        return part
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    reason = lines[-1] if lines else f"import {module} ended with {done.returncode}"
    if "_ARRAY_API" in done.stderr:
        reason += " (it was built for another major version of numpy)"
    return _broken(part, reason)


def _applies(requirement: Requirement, extra: str) -> bool:
    """With ``extra`` "": unconditional dependencies; else only what that extra adds."""
    marker = requirement.marker
    if marker is None:
        return not extra
    return ("extra ==" in str(marker)) == bool(extra) and marker.evaluate({"extra": extra})


def _package(
    name: str, specifier: SpecifierSet, needed_for: str, version: str | None, *, required: bool, extras: str = ""
) -> Part:
    remedy = f'python -m pip install "{name}{extras}{specifier}"'
    if version is None:
        return Part(Kind.PACKAGE, name, Status.MISSING, needed_for, remedy=remedy, required=required)
    if not specifier.contains(version, prereleases=True):
        detail = f"{specifier} is declared"
        return Part(Kind.PACKAGE, name, Status.WRONG, needed_for, version, detail, remedy, required)
    return Part(Kind.PACKAGE, name, Status.OK, needed_for, version, required=required)


def _backend(requirements: list[Requirement], installed: str, lookup: Lookup) -> Part:
    if installed:
        version = lookup(installed) or ""
        return Part(Kind.PACKAGE, installed, Status.OK, "the reference backend", version, required=True)
    wanted = [r for r in requirements if canonicalize_name(r.name) in BACKENDS and _applies(r, "")]
    if not wanted:
        detail = f"no wheel of {' or '.join(BACKENDS)} for this platform"
        remedy = "compare with TFLM's own interpreter instead, or work on Linux x86-64"
        return Part(Kind.PACKAGE, "ai-edge-litert", Status.UNAVAILABLE, "the reference backend", "", detail, remedy)
    name = canonicalize_name(wanted[0].name)
    return _package(name, wanted[0].specifier, "the reference backend", None, required=True)


def _tflm(requirements: list[Requirement], lookup: Lookup) -> Part:
    wanted = next((r for r in requirements if canonicalize_name(r.name) == TFLM), None)
    if wanted is None or not (_applies(wanted, "") or lookup(TFLM)):
        detail = "its wheels are for Linux x86-64 only"
        remedy = "run the host board on Linux x86-64; boards and plans work here"
        return Part(Kind.PACKAGE, TFLM, Status.UNAVAILABLE, "the host board", "", detail, remedy)
    return _package(TFLM, wanted.specifier, "the host board", lookup(TFLM), required=True)


def _broken(part: Part, reason: str) -> Part:
    remedy = f'python -m pip install --force-reinstall "{part.name}=={part.version}", with the numpy it was built for'
    return replace(part, status=Status.WRONG, detail=reason, remedy=remedy)
