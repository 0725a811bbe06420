"""The evidence record of a qualification: shared as a file, read by ``harness boards --show``."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Literal

import msgspec

from harness.board.record import Board, Evidence
from harness.record.schema import DeviceRecord, EnvironmentRecord
from harness.record.store import results_error

SCHEMA = "harness.qualification"
SCHEMA_VERSION = 1

Status = Literal["passed", "failed", "not_applicable"]


class CheckRecord(msgspec.Struct, frozen=True):
    """``values`` are the numbers behind ``detail``."""

    name: str
    status: Status
    detail: str
    values: dict[str, Any] = {}


class QualificationRecord(msgspec.Struct, frozen=True, kw_only=True):
    """``qualified``: no check failed, and the known models were among those that passed. ``evidence`` is the label that
    this raises the board's to: twin for an emulated board, silicon for a real one, none without qualification."""

    schema: str = SCHEMA
    schema_version: int = SCHEMA_VERSION
    created: str
    harness_version: str
    board: str
    rig: str
    kernels: str
    qualified: bool
    evidence: str
    checks: tuple[CheckRecord, ...]
    device: DeviceRecord | None = None
    environment: EnvironmentRecord | None = None
    seconds: float = 0.0


def write_qualification(record: QualificationRecord, results: Path) -> Path:
    """``results/evidence/qualification-BOARD-KERNELS-TIME.json``, whole or not at all."""
    folder = results / "evidence"
    stamp = re.sub(r"[-:]", "", record.created)
    path = folder / f"qualification-{record.board.replace(':', '_')}-{record.kernels or 'unknown'}-{stamp}.json"
    temporary = path.with_suffix(".tmp")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as exc:
        raise results_error(path, exc) from exc
    return path


def read_qualifications(results: Path) -> list[tuple[Path, QualificationRecord]]:
    """The readable records, oldest first; files that are none are passed over."""
    found = []
    for path in sorted((results / "evidence").glob("qualification-*.json")):
        try:
            record = msgspec.json.decode(path.read_bytes(), type=QualificationRecord)
        except (OSError, msgspec.DecodeError):
            continue
        if record.schema == SCHEMA and record.schema_version == SCHEMA_VERSION:
            found.append((path, record))
    return sorted(found, key=lambda entry: entry[1].created)


def evidence_for(board: Board, results: Path) -> tuple[Evidence, Path | None]:
    """The board's label, raised by qualifications of it or of its twin; the record that raised it, or None."""
    order = list(Evidence)
    best, source = board.evidence, None
    names = {board.name, f"sim:{board.name}"}
    for path, record in read_qualifications(results):
        if not record.qualified or record.board not in names:
            continue
        label = Evidence.TWIN if record.board.startswith("sim:") else Evidence.SILICON
        if order.index(label) > order.index(best):
            best, source = label, path
    return best, source
