"""Read-out protection and flash controllers, per chip family: what can be told without writing anything.

Sources: RM0385 rev 8, 3.7 (STM32F7); RM0390 rev 6, 3.8 (STM32F4); RM0351 rev 9, 3.7 (STM32L4); nRF52840 PS v1.7, 4.3
and 4.8.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness.board.record import Family, HardwareBoard
from harness.errors import ProbeError


@dataclass(frozen=True, slots=True)
class _Registers:
    """Option register with the RDP byte at ``rdp_shift``; status and control of the flash controller."""

    option: int
    rdp_shift: int
    status: int
    control: int


_F4_F7 = _Registers(0x4002_3C14, 8, 0x4002_3C0C, 0x4002_3C10)
_STM32 = {
    Family.STM32F4: _F4_F7,
    Family.STM32F7: _F4_F7,
    Family.STM32L4: _Registers(0x4002_2020, 0, 0x4002_2010, 0x4002_2014),
}
_RDP_LEVEL_0 = 0xAA
_MAY_BE_LOCKED = frozenset({"probe.no_target", "probe.transfer_fault", "probe.failed"})
_NVMC_READY, _NVMC_CONFIG = 0x4001_E400, 0x4001_E504


class ProtectedChipError(ProbeError):
    """The chip guards its contents; only erasing everything opens it."""

    default_code = "probe.protected"


def check_readable(board: HardwareBoard, session: Any, rig: str) -> None:
    """Raises ProtectedChipError with the remedy that fits the family."""
    registers = _STM32.get(board.family)
    if registers is not None:
        level = (int(session.target.read32(registers.option)) >> registers.rdp_shift) & 0xFF
        if level != _RDP_LEVEL_0:
            raise stm32_protected(rig, f"RDP byte 0x{level:02x}: read-out protection level 1")
    elif is_locked(session):
        raise nrf_protected(rig)


def is_locked(session: Any) -> bool:
    """An nRF whose access port is closed; False where the target has no such notion."""
    target = session.target
    if target is None or getattr(target, "ctrl_ap", None) is None:
        return False
    return bool(target.is_locked())


def erase_everything(session: Any) -> None:
    """An nRF's CTRL-AP: program, UICR and RAM are gone, and the access port is open until the chip locks again."""
    if not session.target.mass_erase():
        raise RuntimeError("the chip did not report the end of the erasure")


def stm32_protected(rig: str, evidence: str) -> ProtectedChipError:
    return ProtectedChipError(
        f"rig {rig}: the chip is read-out protected ({evidence}); nothing was read, erased or written",
        remedy="set RDP to level 0 with STM32CubeProgrammer (this erases the chip); harness never writes option bytes",
    )


def nrf_protected(rig: str) -> ProtectedChipError:
    return ProtectedChipError(
        f"rig {rig}: the chip's access port is closed (APPROTECT); nothing was read, erased or written",
        remedy="harness flash --erase-protected erases the whole chip and opens it, after you confirm",
    )


def with_limits(error: ProbeError, board: HardwareBoard, probe_description: str) -> ProbeError:
    """An nRF that does not answer to an ST-Link may be locked: newer ST-Link firmware does not reach the access port
    that would tell, and open it (pyOCD issue 775)."""
    is_stlink = "stlink" in probe_description.lower().replace("-", "")
    if board.family is not Family.NRF52 or not is_stlink or error.code not in _MAY_BE_LOCKED:
        return error
    limit = "an ST-Link cannot tell or unlock a chip with APPROTECT: for that take a J-Link or a CMSIS-DAP probe"
    return ProbeError(error.message, remedy=f"{error.remedy}; {limit}", code=error.code)


def controller_state(board: HardwareBoard, session: Any) -> str:
    """The flash controller's registers as text, for an error message; "" when they cannot be read."""
    registers = _STM32.get(board.family)
    try:
        if registers is not None:
            status = int(session.target.read32(registers.status))
            control = int(session.target.read32(registers.control))
            state = [name for bit, name in ((16, "busy"), (4, "write-protected")) if status & (1 << bit)]
            state += ["locked"] if control & (1 << 31) else []
            return f"flash controller {', '.join(state) or 'idle'} (SR=0x{status:08x}, CR=0x{control:08x})"
        if board.family is Family.NRF52:
            ready = int(session.target.read32(_NVMC_READY)) & 1
            config = int(session.target.read32(_NVMC_CONFIG))
            mode = {0: "read only", 1: "write enabled", 2: "erase enabled"}.get(config, "?")
            return f"NVMC {'ready' if ready else 'busy'}, {mode} (CONFIG=0x{config:x})"
    except Exception:  # the state is extra: whatever pyOCD raises, the first error counts
        return ""
    return ""
