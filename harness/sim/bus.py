"""What stands at which address: memories, devices, and the alias regions of the core."""

from __future__ import annotations

import ctypes
import logging
import random
from collections.abc import Callable
from typing import Any

from harness.sim.device import BusError, Device
from harness.sim.engine import Engine

log = logging.getLogger(__name__)

#: Device regions handed to the engine; everything else unmapped is a bus error.
_REGIONS = ((0x1000_0000, 0x0000_2000), (0x4000_0000, 0x2000_0000), (0xE000_0000, 0x0010_0000))
_BIT_BAND = ((0x2200_0000, 0x2400_0000, 0x2000_0000), (0x4200_0000, 0x4400_0000, 0x4000_0000))


class Memory:
    """RAM or flash: one buffer, seen at one or several addresses."""

    def __init__(self, name: str, size: int, addresses: tuple[int, ...], *, writable: bool, fill: int = 0) -> None:
        self.name = name
        self.size = size
        self.addresses = addresses
        self.writable = writable
        self.buffer: Any = (ctypes.c_ubyte * size)()
        self.fill = fill
        self.view = memoryview(self.buffer).cast("B")
        self.erase()

    def erase(self) -> None:
        ctypes.memset(self.buffer, self.fill, self.size)

    def scramble(self) -> None:
        """What RAM holds when power comes: anything, here the same each time, so that two boots can be compared."""
        self.view[:] = random.Random(self.addresses[0]).randbytes(self.size)

    def offset(self, address: int, size: int) -> int | None:
        for base in self.addresses:
            if base <= address and address + size <= base + self.size:
                return address - base
        return None


class Bus:
    """The address space, for the core (through the engine) and for a debugger (directly)."""

    def __init__(self, engine: Engine, *, bit_band: bool) -> None:
        self.engine = engine
        self.memories: list[Memory] = []
        self._devices: dict[int, tuple[int, Device]] = {}
        self._bit_band = bit_band
        #: Set by the core: a device access of the running instruction failed.
        self.on_error: Callable[[int, bool], None] = lambda _address, _is_write: None
        #: Set by the flash controller: a store to flash memory.
        self.on_flash_store: Callable[[int, int, int], None] = lambda _address, _size, _value: None
        #: Set by the core: where the running instruction stands; None between instructions.
        self.running_at: Callable[[], int | None] = lambda: None
        #: What programs did that they should not have, the first of each kind at each place.
        self.complaints: list[str] = []
        #: Set by the core: the running instruction must not reach a device.
        self.is_deaf = False
        self._device_regions: list[tuple[int, int]] = []

    def add_memory(self, memory: Memory) -> None:
        self.memories.append(memory)
        self.engine.map_memory(memory.buffer, memory.addresses, writable=memory.writable)

    def add_device(self, device: Device, address: int, size: int = 0x400) -> None:
        """``address`` and ``size`` in whole kilobytes."""
        device.on_complaint = self.complain
        for page in range(address >> 10, (address + size + 0x3FF) >> 10):
            self._devices[page] = (address, device)

    def complain(self, text: str) -> None:
        at = self.running_at()
        told = f"{text}, by the debugger" if at is None else f"{text}, by the instruction at 0x{at:08x}"
        log.warning("%s", told)
        self.complaints.append(told)

    def has_device(self, address: int) -> bool:
        return address >> 10 in self._devices

    def finish(self) -> None:
        """Hand the device regions to the engine, once all memories are in place."""
        for address, size in _REGIONS:
            taken = any(
                base < address + size and address < base + memory.size
                for memory in self.memories
                for base in memory.addresses
            )
            if not taken:
                self.engine.map_devices(address, size, self._core_read, self._core_write)
                self._device_regions.append((address, size))
        if self._bit_band:
            self.engine.map_devices(0x2200_0000, 0x0200_0000, self._core_read, self._core_write)
        self.engine.on_protected_write(self._core_flash_store)

    def devices(self) -> list[Device]:
        seen: dict[int, Device] = {id(device): device for _, device in self._devices.values()}
        return list(seen.values())

    # --- from the core ----------------------------------------------------------------------------------------

    def _core_read(self, address: int, size: int) -> int:
        if self.is_deaf:
            return 0
        try:
            return self.read_device(address, size)
        except BusError:
            self.on_error(address, False)
            return 0

    def _core_write(self, address: int, size: int, value: int) -> None:
        if self.is_deaf:
            return
        try:
            self.write_device(address, size, value)
        except BusError:
            self.on_error(address, True)

    def _core_flash_store(self, address: int, size: int, value: int) -> None:
        if self.is_deaf:
            return
        self.on_flash_store(address, size, value)

    # --- from anyone ------------------------------------------------------------------------------------------

    def read_device(self, address: int, size: int) -> int:
        if self._bit_band:
            for low, high, base in _BIT_BAND:
                if low <= address < high:
                    bit = (address - low) >> 2
                    return (self.read(base + (bit >> 3), 1)[0] >> (bit & 7)) & 1
        found = self._devices.get(address >> 10)
        if found is None:
            raise BusError(address)
        base, device = found
        return device.read(address - base, size)

    def write_device(self, address: int, size: int, value: int) -> None:
        if self._bit_band:
            for low, high, base in _BIT_BAND:
                if low <= address < high:
                    self._write_bit(base, (address - low) >> 2, value & 1)
                    return
        found = self._devices.get(address >> 10)
        if found is None:
            raise BusError(address)
        base, device = found
        device.write(address - base, size, value)

    def _write_bit(self, base: int, bit: int, value: int) -> None:
        address = base + ((bit >> 3) & ~3)
        shift = bit & 31
        word = int.from_bytes(self.read(address, 4), "little")
        word = (word & ~(1 << shift)) | (value << shift)
        self.write(address, word.to_bytes(4, "little"))

    def find(self, address: int, size: int) -> tuple[Memory, int] | None:
        for memory in self.memories:
            offset = memory.offset(address, size)
            if offset is not None:
                return memory, offset
        return None

    def read(self, address: int, size: int) -> bytes:
        """Raises BusError."""
        found = self.find(address, size)
        if found is not None:
            memory, offset = found
            return bytes(memory.view[offset : offset + size])
        if size in (1, 2, 4) and address % size == 0:
            return self.read_device(address, size).to_bytes(size, "little")
        return b"".join(self.read(address + i, 1) for i in range(size))

    def write(self, address: int, data: bytes) -> None:
        """Raises BusError. Stores to flash go to its controller, as the core's do."""
        size = len(data)
        found = self.find(address, size)
        if found is None:
            if size in (1, 2, 4) and address % size == 0:
                self.write_device(address, size, int.from_bytes(data, "little"))
                return
            for i, byte in enumerate(data):
                self.write(address + i, bytes([byte]))
            return
        memory, offset = found
        if memory.writable:
            memory.view[offset : offset + size] = data
            self.engine.code_changed(address, size)
            return
        for i in range(0, size, 4):
            piece = data[i : i + 4]
            self.on_flash_store(address + i, len(piece), int.from_bytes(piece, "little"))
