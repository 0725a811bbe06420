"""What was on the board before: read out once, kept with where it is from, and put back on request."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from harness.board.record import Address, Size
from harness.bounded_file import read_bounded
from harness.errors import DiskFullError, ExitCode, HarnessError, UsageError, is_disk_full
from harness.units import quoted, safe_text

_DESCRIPTION_LIMIT_BYTES = 64 * 1024


class _Description(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The ``.json`` beside a saved firmware. ``chip_id`` is hexadecimal, ``saved_at`` UTC."""

    schema: Literal["harness.saved_firmware"]
    schema_version: Literal[1]
    board: Annotated[str, msgspec.Meta(min_length=1)]
    probe_uid: str
    chip_id: Annotated[str, msgspec.Meta(pattern=r"^0x[0-9a-f]{1,8}\Z")]
    address: Address
    size_bytes: Size
    sha256: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
    saved_at: str


class NotKeptError(HarnessError):
    """The folder for it may not be written to."""

    exit_code = ExitCode.ENVIRONMENT
    default_code = "results.unwritable"


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


def save(firmware: SavedFirmware, folder: Path, rig: str) -> Path:
    """Write ``<board>-<time>-<hash>.bin`` and its description beside it. The same contents are kept once.

    Raises DiskFullError or NotKeptError, for ``rig``, and leaves nothing behind then.
    """
    digest = firmware.sha256
    for known in folder.glob(f"*-{digest[:12]}.bin"):
        return known
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    name = firmware.board.removeprefix("sim:")
    path = folder / f"{name}-{stamp}-{digest[:12]}.bin"
    description = _Description(
        schema="harness.saved_firmware",
        schema_version=1,
        board=firmware.board,
        probe_uid=firmware.probe_uid,
        chip_id=f"0x{firmware.chip_id:08x}",
        address=firmware.address,
        size_bytes=len(firmware.data),
        sha256=digest,
        saved_at=stamp,
    )
    text = msgspec.json.format(msgspec.json.encode(description), indent=2)
    contents = {path.with_suffix(".json"): text + b"\n", path: firmware.data}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for place, data in contents.items():
            _write_whole(place, data)
    except BaseException as exc:
        for place in contents:
            with contextlib.suppress(OSError):
                place.unlink(missing_ok=True)
        if isinstance(exc, OSError):
            raise _not_kept(rig, path, len(firmware.data), exc) from exc
        raise
    return path


def load(path: Path) -> SavedFirmware:
    """Raises UsageError when the file, its description or its hash is not right."""
    if path.suffix not in {".bin", ".json"}:
        raise _no_saved(path, "it is neither a .bin nor a .json file")
    described_in, data_in = path.with_suffix(".json"), path.with_suffix(".bin")
    try:
        described = msgspec.json.decode(read_bounded(described_in, _DESCRIPTION_LIMIT_BYTES), type=_Description)
        data = read_bounded(data_in)
    except OSError as exc:
        raise _no_saved(path, f"{exc.filename}: {exc.strerror}") from exc
    except (msgspec.MsgspecError, ValueError, RecursionError) as exc:
        raise _no_saved(path, f"{described_in.name}: {exc}") from exc
    firmware = SavedFirmware(described.board, described.probe_uid, int(described.chip_id, 16), described.address, data)
    if len(data) != described.size_bytes or firmware.sha256 != described.sha256:
        raise UsageError(
            f"{quoted(str(data_in))} is damaged: it has {len(data):,} bytes of SHA-256 {firmware.sha256[:16]}…, "
            f"saved were {described.size_bytes:,} of {described.sha256[:16]}…",
            remedy="it is not put back: take another copy of it",
            code="flash.damaged_save",
        )
    return firmware


def _no_saved(path: Path, why: str) -> UsageError:
    return UsageError(
        f"{quoted(str(path))} is no saved firmware: {safe_text(why)}",
        remedy="name a .bin file in results/saved-firmware; its .json must lie beside it",
        code="flash.not_saved",
    )


def _not_kept(rig: str, path: Path, size: int, exc: OSError) -> HarnessError:
    text = (
        f"rig {rig}: the firmware that is on the board ({size:,} bytes) cannot be kept in {quoted(str(path))}: "
        f"{exc.strerror}; nothing was written to the board"
    )
    elsewhere = "name another folder (--results), or do not keep it (--no-save)"
    if is_disk_full(exc):
        return DiskFullError(text, remedy=f"free some space on that disk, {elsewhere}")
    return NotKeptError(text, remedy=elsewhere)


def _write_whole(path: Path, data: bytes) -> None:
    temporary = path.with_name(path.name + ".new")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
