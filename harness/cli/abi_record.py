"""The struct sizes that a board reported, read from the record of a run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.abi import Abi, abi_reported
from harness.errors import UsageError
from harness.units import quoted

#: The key of a record under which a board's sizeof values stand.
SIZES_KEY = "struct_sizes"


def read_reported_abi(path: Path) -> Abi:
    """The ABI of the build that made the record at ``path``. Raises UsageError where it holds no sizes."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as exc:
        raise UsageError(f"cannot read {path}: {exc.strerror or exc}", remedy="give the path of a record") from exc
    except ValueError as exc:
        raise UsageError(f"{path} is not JSON: {exc}", remedy="give a record that harness sweep wrote") from exc
    sizes = next((_sizes(values[SIZES_KEY]) for values in _objects(document) if values.get(SIZES_KEY)), None)
    if not sizes:
        raise UsageError(
            f"{path} holds no struct sizes: the device that made it did not report any",
            remedy="make a record with a firmware that reports them: harness sweep --board NAME MODEL",
        )
    commits = [values["tflm_commit"] for values in _objects(document) if isinstance(values.get("tflm_commit"), str)]
    if not commits:
        raise UsageError(f"{path} does not say which TFLM the device runs", remedy="sweep the board again")
    return abi_reported(sizes, _device_commit(document) or commits[0])


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    """Every JSON object in a document, outermost first."""
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from _objects(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _objects(inner)


def _device_commit(document: Any) -> str | None:
    """The commit that stands beside the sizes: the device's, not the plan's."""
    for values in _objects(document):
        if values.get(SIZES_KEY) and isinstance(values.get("tflm_commit"), str):
            return str(values["tflm_commit"])
    return None


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
