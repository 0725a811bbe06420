"""The twin's debug port: DP, AHB-AP and, on an nRF, CTRL-AP, as a probe sees them on the wire.

Source: Arm Debug Interface v5.2 (IHI 0031); nRF52840 PS v1.7, 4.8.2 (CTRL-AP). The IDs are those of real chips, which
pyOCD's tables know.
"""

from __future__ import annotations

import struct

from harness.sim.cortex_m import State
from harness.sim.device import WORD, BusError, NoAnswerError, TransferFaultError
from harness.sim.twin import Twin

_DHCSR = 0xE000_EDF0
_ROM_BASE = 0xE00F_F003
_CTRL_AP_IDR = 0x1288_0000
_STICKY_ERROR = 1 << 5
_HALT_WAIT_S = 0.01
#: TAR increments within 4 KiB on the AHB-APs of the Cortex-M4 and M7.
_WRAP = 0xFFF


class DebugPort:
    """Debug and access port registers. Keeps SELECT, TAR and CSW as the hardware does."""

    def __init__(self, twin: Twin) -> None:
        self.twin = twin
        self.idr = 0x5BA0_2477 if twin.board.core == "cortex-m7" else 0x2BA0_1477
        self._select = 0
        self._control = 0
        self._csw = 0x0300_0002
        self._tar = 0
        self._ctrl_reset = 0

    # --- DP ---------------------------------------------------------------------------------------------------

    def read_dp(self, address: int) -> int:
        self._check_wire()
        match address & 0xC:
            case 0x0:
                return self.idr
            case 0x4 if not self._select & 0xF:
                return self._control | (self._control & 0x5000_0000) << 1
        return 0

    def write_dp(self, address: int, value: int) -> None:
        self._check_wire()
        match address & 0xC:
            case 0x0:
                if value & 0x1E:
                    self._control &= ~_STICKY_ERROR
            case 0x4 if not self._select & 0xF:
                self._control = (value & 0x5000_0F00) | (self._control & _STICKY_ERROR)
            case 0x8:
                self._select = value & WORD

    def _check_wire(self) -> None:
        if not self.twin.powered:
            raise NoAnswerError("no ACK: the target has no power")
        level = getattr(self.twin.chip.controller, "protection_level", 0)
        if level == 2:
            raise NoAnswerError("no ACK: the debug port is switched off (RDP level 2)")

    # --- APs --------------------------------------------------------------------------------------------------

    def read_ap(self, address: int) -> int:
        return self.read_ap_multiple(address, 1)[0]

    def write_ap(self, address: int, value: int) -> None:
        self.write_ap_multiple(address, [value])

    def read_ap_multiple(self, address: int, count: int) -> list[int]:
        self._check_wire()
        number, register = self._selected(address)
        if number == 1 and self.twin.chip.mass_erase is not None:
            return [self._read_ctrl_ap(register)] * count
        if number != 0:
            return [0] * count
        if register == 0x0C:
            return self._transfer_in(count)
        return [self._read_ahb_ap(register) for _ in range(count)]

    def write_ap_multiple(self, address: int, values: list[int]) -> None:
        self._check_wire()
        number, register = self._selected(address)
        if number == 1 and self.twin.chip.mass_erase is not None:
            for value in values:
                self._write_ctrl_ap(register, value & WORD)
        elif number == 0:
            if register == 0x0C:
                self._transfer_out([value & WORD for value in values])
            else:
                for value in values:
                    self._write_ahb_ap(register, value & WORD)

    def _selected(self, address: int) -> tuple[int, int]:
        return self._select >> 24, (self._select & 0xF0) | (address & 0xC)

    # --- AHB-AP -----------------------------------------------------------------------------------------------

    @property
    def _port_closed(self) -> bool:
        """APPROTECT closes the whole port; read-out protection of an STM32 only the flash."""
        return self.twin.chip.mass_erase is not None and self.twin.chip.is_protected()

    def _read_ahb_ap(self, register: int) -> int:
        match register:
            case 0x00:
                return self._csw | (0 if self._port_closed else 0x40)
            case 0x04:
                return self._tar
            case 0x10 | 0x14 | 0x18 | 0x1C:
                return self._read_word((self._tar & ~0xF) + register - 0x10)
            case 0xF8:
                return _ROM_BASE
            case 0xFC:
                return self.twin.chip.ahb_ap_idr
        return 0

    def _write_ahb_ap(self, register: int, value: int) -> None:
        match register:
            case 0x00:
                self._csw = value & ~0x40
            case 0x04:
                self._tar = value
            case 0x10 | 0x14 | 0x18 | 0x1C:
                self._access((self._tar & ~0xF) + register - 0x10, struct.pack("<I", value))

    @property
    def _width(self) -> int:
        return 1 << (self._csw & 3)

    def _advance(self, by: int) -> None:
        if self._csw & 0x30:
            self._tar = (self._tar & ~_WRAP) | ((self._tar + by) & _WRAP)

    def _transfer_in(self, count: int) -> list[int]:
        if self._tar == _DHCSR and count == 1:
            self.twin.run_until_stopped(_HALT_WAIT_S)
        if self._width == 4 and self._csw & 0x30 and count > 1 and (self._tar & _WRAP) + 4 * count <= _WRAP + 1:
            data = self._fetch(self._tar, 4 * count)
            self._advance(4 * count)
            return list(struct.unpack(f"<{count}I", data))
        values: list[int] = []
        for _ in range(count):
            values.append(self._read_lane(self._tar, self._width))
            self._advance(self._width)
        return values

    def _read_lane(self, address: int, width: int) -> int:
        return int.from_bytes(self._fetch(address, width), "little") << (8 * (address & 3))

    def _read_word(self, address: int) -> int:
        return int.from_bytes(self._fetch(address, 4), "little")

    def _transfer_out(self, values: list[int]) -> None:
        count = len(values)
        if self._width == 4 and self._csw & 0x30 and count > 1 and (self._tar & _WRAP) + 4 * count <= _WRAP + 1:
            self._access(self._tar, struct.pack(f"<{count}I", *values))
            self._advance(4 * count)
            return
        for value in values:
            lane = (value >> (8 * (self._tar & 3))) & ((1 << (8 * self._width)) - 1)
            self._access(self._tar, lane.to_bytes(self._width, "little"))
            self._advance(self._width)

    # --- the chip's bus ---------------------------------------------------------------------------------------

    def _fetch(self, address: int, size: int) -> bytes:
        self._check_access(address, size)
        try:
            with self.twin.turn() as chip:
                return chip.bus.read(address, size)
        except BusError as exc:
            raise self._fault(str(exc)) from exc

    def _access(self, address: int, data: bytes) -> None:
        self._check_access(address, len(data))
        try:
            with self.twin.turn() as chip:
                chip.bus.write(address, data)
                if chip.core.reset_requested and chip.core.state is not State.RUNNING:
                    chip.core.on_system_reset()
        except BusError as exc:
            raise self._fault(str(exc)) from exc

    def _check_access(self, address: int, size: int) -> None:
        if self._control & _STICKY_ERROR:
            raise TransferFaultError("an earlier fault has not been cleared")
        chip = self.twin.chip
        if self._port_closed:
            raise self._fault("the access port is closed (APPROTECT)")
        if chip.is_protected() and chip.flash.offset(address, size) is not None:
            raise self._fault("flash is read-out protected")

    def _fault(self, text: str) -> TransferFaultError:
        self._control |= _STICKY_ERROR
        return TransferFaultError(text)

    # --- CTRL-AP ----------------------------------------------------------------------------------------------

    def _read_ctrl_ap(self, register: int) -> int:
        match register:
            case 0x00:
                return self._ctrl_reset
            case 0x08:
                return 0  # ready
            case 0x0C:
                return 0 if self.twin.chip.is_protected() else 1
            case 0xFC:
                return _CTRL_AP_IDR
        return 0

    def _write_ctrl_ap(self, register: int, value: int) -> None:
        if register == 0x00:
            if self._ctrl_reset and not value:
                self.twin.assert_reset(False)
            elif value:
                self.twin.assert_reset(True)
            self._ctrl_reset = value & 1
        elif register == 0x04 and value & 1:
            with self.twin.turn() as chip:
                assert chip.mass_erase is not None
                chip.mass_erase()
