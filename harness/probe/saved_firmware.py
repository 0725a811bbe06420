"""What was on the board before: read out once, kept with where it is from, and put back on request."""

from __future__ import annotations

import hashlib
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.units import quoted

SCHEMA = "harness.saved_firmware"


@dataclass(frozen=True, slots=True)
class SavedFirmware:
    """A whole flash. ``data`` starts at ``address``; ``chip_id`` is the id code that was read from the chip."""

    board: str
    probe_uid: str
    chip_id: int
    address: int
    data: bytes

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


def save(firmware: SavedFirmware, folder: Path) -> Path:
    """Write ``<board>-<time>-<hash>.bin`` and its description beside it. The same contents are kept once."""
    folder.mkdir(parents=True, exist_ok=True)
    digest = firmware.sha256
    for known in folder.glob(f"*-{digest[:12]}.bin"):
        return known
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    name = firmware.board.removeprefix("sim:")
    path = folder / f"{name}-{stamp}-{digest[:12]}.bin"
    description = {
        "schema": SCHEMA,
        "schema_version": 1,
        "board": firmware.board,
        "probe_uid": firmware.probe_uid,
        "chip_id": f"0x{firmware.chip_id:08x}",
        "address": firmware.address,
        "size_bytes": len(firmware.data),
        "sha256": digest,
        "saved_at": stamp,
    }
    _write_whole(path.with_suffix(".json"), (json.dumps(description, indent=2) + "\n").encode())
    _write_whole(path, firmware.data)
    return path


def load(path: Path) -> SavedFirmware:
    """Raises UsageError when the file, its description or its hash is not right."""
    remedy = "name a .bin file in results/saved-firmware; its .json must lie beside it"
    if path.suffix not in {".bin", ".json"}:
        raise UsageError(f"{quoted(str(path))} is no saved firmware", remedy=remedy, code="flash.not_saved")
    try:
        described: Any = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        data = path.with_suffix(".bin").read_bytes()
        firmware = SavedFirmware(
            board=str(described["board"]),
            probe_uid=str(described["probe_uid"]),
            chip_id=int(described["chip_id"], 16),
            address=int(described["address"]),
            data=data,
        )
        expected = described["sha256"]
    except (OSError, ValueError, KeyError, TypeError) as exc:
        why = f"{exc.filename}: {exc.strerror}" if isinstance(exc, OSError) else f"{type(exc).__name__}: {exc}"
        raise UsageError(f"{path} is no saved firmware: {why}", remedy=remedy, code="flash.not_saved") from exc
    if firmware.sha256 != expected:
        raise UsageError(f"{path} is damaged: its hash is not the one it was saved with", remedy=remedy)
    return firmware


def _write_whole(path: Path, data: bytes) -> None:
    temporary = path.with_name(path.name + ".new")
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
