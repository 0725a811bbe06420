"""What survives a crash of the firmware process: a page shared by supervisor and firmware, as RAM survives a reset."""

from __future__ import annotations

import mmap
import struct

from harness.wire.fields import decode_record, encode_record
from harness.wire.messages import FaultRecord, Stage

_LAYOUT = struct.Struct("<BIIH")  # stage, arena under test, boots, length of the fault record behind it


class RetainedMemory:
    """Shared between processes by fork. Written by one process at a time: the firmware, or the supervisor after it."""

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, mmap.PAGESIZE)
        self._write(Stage.BOOT, 0, 0, b"")

    def _read(self) -> tuple[int, int, int, bytes]:
        stage, arena, boots, length = _LAYOUT.unpack_from(self._page, 0)
        return stage, arena, boots, self._page[_LAYOUT.size : _LAYOUT.size + length]

    def _write(self, stage: int, arena: int, boots: int, fault: bytes) -> None:
        self._page[: _LAYOUT.size + len(fault)] = _LAYOUT.pack(stage, arena, boots, len(fault)) + fault

    @property
    def stage(self) -> Stage:
        return Stage(self._read()[0])

    @property
    def arena_bytes(self) -> int:
        return self._read()[1]

    @property
    def boots(self) -> int:
        return self._read()[2]

    @property
    def fault(self) -> FaultRecord | None:
        data = self._read()[3]
        return decode_record(FaultRecord, data) if data else None

    def enter(self, stage: Stage, arena_bytes: int | None = None) -> None:
        """Note where the firmware is; ``arena_bytes`` stays as it was where not given."""
        _, arena, boots, fault = self._read()
        self._write(stage, arena if arena_bytes is None else arena_bytes, boots, fault)

    def note_boot(self) -> None:
        _, _, boots, fault = self._read()
        self._write(Stage.BOOT, 0, boots + 1, fault)

    def note_fault(self, record: FaultRecord | None) -> None:
        """Keep a record, or forget the one that is kept (None)."""
        stage, arena, boots, _ = self._read()
        self._write(stage, arena, boots, encode_record(record) if record else b"")
