"""The build that a board reported, read from the record of a run: struct sizes, commit, kernels, core."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.abi import Abi, abi_reported
from harness.bounded_file import read_bounded
from harness.errors import UsageError
from harness.units import quoted

#: The key of a record under which a board's sizeof values stand.
SIZES_KEY = "struct_sizes"


@dataclass(frozen=True, slots=True)
class ReportedBuild:
    """``core``, ``kernels`` and ``interpreter`` are None where the record does not say."""

    abi: Abi
    core: str | None
    kernels: str | None
    interpreter: str | None


def read_reported_build(path: Path) -> ReportedBuild:
    """The build that made the record at ``path``. Raises UsageError where it holds no sizes."""
    try:
        document = json.loads(read_bounded(path))
    except OSError as exc:
        raise UsageError(f"cannot read {path}: {exc.strerror or exc}", remedy="give the path of a record") from exc
    except ValueError as exc:
        raise UsageError(f"{path} is not JSON: {exc}", remedy="give a record that harness sweep wrote") from exc
    device = next((values for values in _objects(document) if values.get(SIZES_KEY)), None)
    if device is None:
        raise UsageError(
            f"{path} holds no struct sizes: the device that made it did not report any",
            remedy="make a record with a firmware that reports them: harness sweep --board NAME MODEL",
        )
    commit = _text(device, "tflm_commit")
    if commit is None:
        raise UsageError(f"{path} does not say which TFLM the device runs", remedy="sweep the board again")
    target = next((values for values in _objects(document) if _text(values, "core") and _text(values, "abi")), {})
    return ReportedBuild(
        abi=abi_reported(_sizes(device[SIZES_KEY]), commit),
        core=_text(target, "core"),
        kernels=_text(device, "kernels"),
        interpreter=_text(device, "interpreter"),
    )


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    """Every JSON object in a document, outermost first."""
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from _objects(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _objects(inner)


def _text(values: Mapping[str, Any], key: str) -> str | None:
    value = values.get(key)
    return value if isinstance(value, str) and value else None


def _sizes(value: Any) -> dict[str, int]:
    if not isinstance(value, dict):
        raise UsageError(
            f"{SIZES_KEY} is no object of names and sizes", remedy="give a record that harness sweep wrote"
        )
    sizes: dict[str, int] = {}
    for name, size in value.items():
        number = size.get("size_bytes") if isinstance(size, dict) else size
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            raise UsageError(f"{SIZES_KEY}: {quoted(name)} has no size in bytes", remedy="sweep the board again")
        sizes[name] = number
    return sizes
