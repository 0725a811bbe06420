"""RTT: bytes through the debug probe and two ring buffers in the chip's RAM, for boards without a wired UART.

The control block is SEGGER's: 16 bytes of id, the numbers of up and down buffers, then 24 bytes for each buffer (name,
data, size, write offset, read offset, flags). Its address comes from the ELF (symbol ``_SEGGER_RTT``).
"""

from __future__ import annotations

import struct
import time
from dataclasses import dataclass
from typing import Protocol

from harness.deadline import Deadline
from harness.errors import HarnessError, LinkError

_ID = b"SEGGER RTT".ljust(16, b"\x00")
_HEADER, _BUFFER = 24, 24
_WRITE, _READ = 12, 16
_LARGEST_RING = 1 << 16
#: Between two looks at the ring: a probe needs about a millisecond for one.
_POLL_S = 0.002


class MemoryPort(Protocol):
    """What of a probe is needed. Memory is read and written while the core runs."""

    def read_memory(self, address: int, size: int, deadline: Deadline) -> bytes: ...

    def write_memory(self, address: int, data: bytes, deadline: Deadline) -> None: ...


@dataclass(frozen=True, slots=True)
class _Ring:
    """``block`` is the address of the buffer's descriptor."""

    block: int
    data: int
    size: int
    write: int
    read: int


class RttLink:
    """Implements ``Link``. After a reset the block is there only when the firmware has made it."""

    def __init__(self, probe: MemoryPort, address: int) -> None:
        self._probe = probe
        self._address = address

    def write(self, data: bytes, deadline: Deadline) -> None:
        while data:
            ring = self._ring(0, 1, deadline)
            if ring is not None:
                data = self._put(ring, data, deadline)
            if data and deadline.passed:
                raise LinkError(
                    f"the device takes no data over RTT at 0x{self._address:08x}",
                    remedy="check that the firmware was built with --transport rtt and runs",
                    code="link.write_blocked",
                )
            if data:
                time.sleep(_POLL_S)

    def read(self, deadline: Deadline) -> bytes:
        while True:
            ring = self._ring(0, 0, deadline)
            if ring is not None and ring.read != ring.write:
                return self._take(ring, deadline)
            if deadline.passed:
                return b""
            time.sleep(min(_POLL_S, deadline.remaining_s))

    def discard_input(self) -> None:
        deadline = Deadline.after(1.0)
        ring = self._ring(0, 0, deadline)
        if ring is not None and ring.read != ring.write:
            self._store(ring.block + _READ, ring.write, deadline)

    def close(self) -> None:
        """The probe is closed by its owner."""

    def _ring(self, index: int, downward: int, deadline: Deadline) -> _Ring | None:
        """None while there is no valid block: the device boots, or is in reset."""
        soon = deadline if not deadline.passed else Deadline.after(1.0)
        try:
            header = self._probe.read_memory(self._address, _HEADER + 2 * _BUFFER, soon)
        except HarnessError as exc:
            raise LinkError(f"RTT: {exc.message}", remedy=exc.remedy, code="link.gone") from exc
        if header[:16] != _ID:
            return None
        offset = _HEADER + _BUFFER * (downward + index)
        _, data, size, write, read, _ = struct.unpack_from("<6I", header, offset)
        if not 0 < size <= _LARGEST_RING or write >= size or read >= size:
            return None
        return _Ring(self._address + offset, data, size, write, read)

    def _take(self, ring: _Ring, deadline: Deadline) -> bytes:
        end = ring.write if ring.write > ring.read else ring.size
        data = self._probe.read_memory(ring.data + ring.read, end - ring.read, deadline)
        self._store(ring.block + _READ, end % ring.size, deadline)
        return data

    def _put(self, ring: _Ring, data: bytes, deadline: Deadline) -> bytes:
        """Write what fits up to the ring's end; the rest is returned. One byte stays free: full is not empty."""
        free = (ring.read - ring.write - 1) % ring.size
        room = min(free, ring.size - ring.write, len(data))
        if room:
            self._probe.write_memory(ring.data + ring.write, data[:room], deadline)
            self._store(ring.block + _WRITE, (ring.write + room) % ring.size, deadline)
        return data[room:]

    def _store(self, address: int, value: int, deadline: Deadline) -> None:
        soon = deadline if not deadline.passed else Deadline.after(1.0)
        self._probe.write_memory(address, value.to_bytes(4, "little"), soon)
