"""The private peripheral bus: System Control Space, SysTick, NVIC, DWT, FPB, ITM and the ROM table.

Offsets and bits: ARMv7-M Architecture Reference Manual (DDI 0403E), B3.2 to B3.4, C1.6 to C1.11.
"""

from __future__ import annotations

from typing import Any

from harness.sim import mpu
from harness.sim.cortex_m import (
    C_DEBUGEN,
    C_HALT,
    C_STEP,
    FIRST_IRQ,
    NMI,
    PENDSV,
    SYSTICK,
    TRCENA,
    CortexM,
    State,
)
from harness.sim.device import WORD, Device

_DBGKEY = 0xA05F
_VECTKEY = 0x05FA
_MAX_IRQS = 240
#: CoreSight's lock access register.
_LAR, _LAR_KEY = 0xFB0, 0xC5AC_CE55


class SysTick:
    """Counts instructions: one per processor clock, or one in eight of them with the external reference."""

    def __init__(self, core: CortexM) -> None:
        self.core = core
        self.reset()

    def reset(self) -> None:
        self.control = 0
        self.load = 0
        self._started_at = 0
        self._start_value = 0
        self._flag = False
        self.core.events.cancel("systick")

    @property
    def _divider(self) -> int:
        return 1 if self.control & 4 else 8

    def value(self) -> int:
        if not self.control & 1:
            return self._start_value
        ticks = (self.core.cycles - self._started_at) // self._divider
        if ticks <= self._start_value:
            return self._start_value - ticks
        period = self.load + 1
        return self.load - (ticks - self._start_value - 1) % period

    def write_control(self, value: int) -> None:
        running = self.control & 1
        current = self.value()
        self.control = value & 7
        if self.control & 1:
            self._started_at = self.core.cycles
            self._start_value = current if running or current else self.load
            self._schedule(self._start_value)
        else:
            self._start_value = current
            self.core.events.cancel("systick")
        self.core.end_slice()

    def read_control(self) -> int:
        value = self.control | (int(self._flag) << 16)
        self._flag = False
        return value

    def write_value(self) -> None:
        self._flag = False
        self._start_value = 0
        self._started_at = self.core.cycles
        if self.control & 1:
            self._start_value = self.load
            self._schedule(self.load)
        self.core.end_slice()

    def _schedule(self, ticks: int) -> None:
        if self.load or ticks:
            self.core.events.at("systick", self.core.cycles + max(1, ticks) * self._divider, self._wrap)

    def _wrap(self) -> None:
        self._flag = True
        if self.control & 2:
            self.core.pend(SYSTICK)
        self._started_at = self.core.cycles
        self._start_value = self.load
        self._schedule(self.load + 1)


class SystemControlSpace(Device):
    """0xE000E000: ICTR, SysTick, NVIC, SCB, FPU and debug registers."""

    name = "SCS"

    def __init__(self, core: CortexM, *, cpuid: int, irqs: int, table_bytes: int = 128) -> None:
        self.core = core
        #: The size of the vector table, a power of two that it is aligned to. DDI 0403E B3.2.5.
        self.table_bytes = table_bytes
        self.cpuid = cpuid
        self.irqs = min(irqs, _MAX_IRQS)
        self.systick = SysTick(core)
        self._selected = 0
        super().__init__()

    def reset(self) -> None:
        super().reset()
        self.systick.reset()

    def load(self, offset: int) -> int:
        if 0x100 <= offset < 0x500:
            return self._load_nvic(offset)
        if mpu.TYPE <= offset <= self.core.mpu.last:
            return self.core.mpu.load(offset)
        core, faults = self.core, self.core.faults
        match offset:
            case 0x004:
                return (self.irqs + 31) // 32 - 1
            case 0x010:
                return self.systick.read_control()
            case 0x014:
                return self.systick.load
            case 0x018:
                return self.systick.value()
            case 0x01C:
                return 0x8000_0000 | 0x0100_0000  # NOREF, SKEW, no TENMS
            case 0xD00:
                return self.cpuid
            case 0xD04:
                return self._icsr()
            case 0xD08:
                return core.vtor
            case 0xD0C:
                return 0xFA05_0000 | (core.exceptions.prigroup << 8)
            case 0xD10:
                return core.scr
            case 0xD14:
                return core.ccr
            case 0xD18 | 0xD1C | 0xD20:
                return self._load_priorities(4 + offset - 0xD18)
            case 0xD24:
                return self._shcsr()
            case 0xD28:
                return faults.cfsr
            case 0xD2C:
                return faults.hfsr
            case 0xD30:
                return core.dfsr
            case 0xD34:
                return faults.mmfar
            case 0xD38:
                return faults.bfar
            case 0xD40:
                return 0x30
            case 0xD44:
                return 0x200
            case 0xD48:
                return 0x0010_0000
            case 0xD88:
                return core.cpacr
            case 0xDF0:
                return self._dhcsr()
            case 0xDF8:
                return self.words.get(0xDF8, 0)
            case 0xDFC:
                return core.demcr
            case 0xF34:
                return self.words.get(0xF34, 0xC000_0000 if core.has_fpu else 0)
            case 0xF40 if core.has_fpu:
                return 0x1011_0221 if core.engine.double_precision else 0x1011_0021
            case 0xF44 if core.has_fpu:
                return 0x1100_0011
        if offset >= 0xFD0:
            return _component_id(offset, part=0x00C)
        return self.words.get(offset, 0)

    def store(self, offset: int, value: int, mask: int) -> None:
        if 0x100 <= offset < 0x500:
            self._store_nvic(offset, value, mask)
            return
        if mpu.TYPE <= offset <= self.core.mpu.last:
            self.core.mpu.store(offset, value)
            self.core.end_slice()
            return
        core, faults = self.core, self.core.faults
        match offset:
            case 0x010:
                self.systick.write_control(value)
            case 0x014:
                self.systick.load = value & 0xFF_FFFF
            case 0x018:
                self.systick.write_value()
            case 0xD04:
                self._write_icsr(value)
            case 0xD08:
                core.vtor = value & 0xFFFF_FF80
                if value % self.table_bytes:
                    text = f"0x{value:x} written to VTOR, which must be a multiple of {self.table_bytes}"
                    self.complain(offset, "alignment", text)
            case 0xD0C:
                self._write_aircr(value)
            case 0xD10:
                core.scr = value & 0x16
            case 0xD14:
                core.set_ccr(value & 0x0007_031B)
            case 0xD18 | 0xD1C | 0xD20:
                self._store_priorities(4 + offset - 0xD18, value, mask)
            case 0xD24:
                core.exceptions.shcsr = value & 0x0007_0000
            case 0xD28:
                faults.cfsr &= ~value
            case 0xD2C:
                faults.hfsr &= ~value
            case 0xD30:
                core.dfsr &= ~value
            case 0xD88:
                core.set_cpacr(value)
            case 0xDF0:
                self._write_dhcsr(value)
            case 0xDF4:
                self._transfer_register(value)
            case 0xDFC:
                core.demcr = value
            case 0xF00:
                core.pend_irq(value & 0x1FF)
            case _:
                super().store(offset, value, mask)

    # --- NVIC -------------------------------------------------------------------------------------------------

    def _load_nvic(self, offset: int) -> int:
        exceptions = self.core.exceptions
        if offset >= 0x400:
            return self._load_priorities(FIRST_IRQ + offset - 0x400)
        first = FIRST_IRQ + 8 * (offset & 0x7F)
        block = offset & 0x380
        chosen: set[int] | list[int] = exceptions.enabled
        if block in (0x200, 0x280):
            chosen = exceptions.pending
        elif block == 0x300:
            chosen = exceptions.active
        return sum(1 << n for n in range(32) if first + n in chosen)

    def _store_nvic(self, offset: int, value: int, mask: int) -> None:
        exceptions = self.core.exceptions
        if offset >= 0x400:
            self._store_priorities(FIRST_IRQ + offset - 0x400, value, mask)
            return
        first = FIRST_IRQ + 8 * (offset & 0x7F)
        numbers = {first + n for n in range(32) if value & (1 << n) and first + n < FIRST_IRQ + self.irqs}
        match offset & 0x380:
            case 0x100:
                exceptions.enabled |= numbers
            case 0x180:
                exceptions.enabled -= numbers
            case 0x200:
                exceptions.pending |= numbers
            case 0x280:
                exceptions.pending -= numbers
        self.core.end_slice()

    def _load_priorities(self, first: int) -> int:
        priority = self.core.exceptions.priority
        return sum(priority.get(first + n, 0) << (8 * n) for n in range(4))

    def _store_priorities(self, first: int, value: int, mask: int) -> None:
        for n in range(4):
            if mask & (0xFF << (8 * n)):
                self.core.exceptions.priority[first + n] = (value >> (8 * n)) & self.core.priority_mask

    # --- SCB --------------------------------------------------------------------------------------------------

    def _icsr(self) -> int:
        exceptions = self.core.exceptions
        active = self.core.engine.read(self.core.arm.UC_ARM_REG_IPSR) & 0x1FF
        pending = min((e for e in exceptions.pending if self.core.is_enabled(e)), default=0)
        value = active | (pending << 12)
        value |= (PENDSV in exceptions.pending) << 28 | (SYSTICK in exceptions.pending) << 26
        value |= (NMI in exceptions.pending) << 31
        value |= any(e >= FIRST_IRQ for e in exceptions.pending) << 22
        return value | ((len(exceptions.active) <= 1) << 11)

    def _write_icsr(self, value: int) -> None:
        pending = self.core.exceptions.pending
        for bit, exception, is_set in ((31, NMI, True), (28, PENDSV, True), (26, SYSTICK, True)):
            if value & (1 << bit) and is_set:
                self.core.pend(exception)
        if value & (1 << 27):
            pending.discard(PENDSV)
        if value & (1 << 25):
            pending.discard(SYSTICK)

    def _write_aircr(self, value: int) -> None:
        if value >> 16 != _VECTKEY:
            self.complain(0xD0C, "key", f"0x{value:x} written to AIRCR without its key, which has no effect")
            return
        self.core.exceptions.prigroup = (value >> 8) & 7
        if value & 0x5:  # SYSRESETREQ, or VECTRESET for a debugger
            self.core.reset_requested = True
            self.core.end_slice()

    def _shcsr(self) -> int:
        active = self.core.exceptions.active
        bits = {4: 0, 5: 1, 6: 3, 11: 7, 12: 8, 14: 10, 15: 11}
        return self.core.exceptions.shcsr | sum(1 << bit for e, bit in bits.items() if e in active)

    # --- debug ------------------------------------------------------------------------------------------------

    def _dhcsr(self) -> int:
        core = self.core
        value = core.dhcsr | (1 << 16)
        value |= (core.state is State.HALTED) << 17
        value |= (core.state is State.SLEEPING) << 18
        value |= (core.state is State.LOCKUP) << 19
        value |= (core.state is State.RUNNING) << 24
        value |= core.sticky_reset << 25
        core.sticky_reset = False
        return value

    def _write_dhcsr(self, value: int) -> None:
        if value >> 16 != _DBGKEY:
            return
        core = self.core
        core.dhcsr = value & 0x2F
        if not core.dhcsr & C_DEBUGEN:
            core.dhcsr = 0
            core.resume()
            return
        if core.dhcsr & C_HALT:
            if core.state in (State.RUNNING, State.SLEEPING, State.LOCKUP):
                core.halt(1)
        elif core.state is State.HALTED:
            if core.dhcsr & C_STEP:
                core.step()
            else:
                core.resume()

    def _transfer_register(self, value: int) -> None:
        core = self.core
        selected = value & 0x7F
        registers = self._debug_registers()
        if value & (1 << 16):
            data = self.words.get(0xDF8, 0)
            if selected == 15:
                core._set_pc(data & ~1)
            elif selected == 16:
                core.engine.write(core.arm.UC_ARM_REG_XPSR, data)
            elif selected == 20:
                self._write_special(data)
            elif selected in registers:
                core.engine.write(registers[selected], data)
        elif selected == 20:
            self.words[0xDF8] = self._read_special()
        else:
            register = registers.get(selected)
            self.words[0xDF8] = core.engine.read(register) if register is not None else 0

    def _debug_registers(self) -> dict[int, int]:
        arm: Any = self.core.arm
        registers = {n: arm.UC_ARM_REG_R0 + n for n in range(13)}
        registers |= {13: arm.UC_ARM_REG_SP, 14: arm.UC_ARM_REG_LR, 15: arm.UC_ARM_REG_PC, 16: arm.UC_ARM_REG_XPSR}
        registers |= {17: arm.UC_ARM_REG_MSP, 18: arm.UC_ARM_REG_PSP}
        if self.core.has_fpu:
            registers |= {0x21: arm.UC_ARM_REG_FPSCR}
            registers |= {0x40 + n: arm.UC_ARM_REG_S0 + n for n in range(32)}
        return registers

    def _read_special(self) -> int:
        arm, read = self.core.arm, self.core.engine.read
        return (
            (read(arm.UC_ARM_REG_CONTROL) & 7) << 24
            | (read(arm.UC_ARM_REG_FAULTMASK) & 1) << 16
            | (read(arm.UC_ARM_REG_BASEPRI) & 0xFF) << 8
            | (read(arm.UC_ARM_REG_PRIMASK) & 1)
        )

    def _write_special(self, value: int) -> None:
        arm, write = self.core.arm, self.core.engine.write
        write(arm.UC_ARM_REG_CONTROL, (value >> 24) & 7)
        write(arm.UC_ARM_REG_FAULTMASK, (value >> 16) & 1)
        write(arm.UC_ARM_REG_BASEPRI, (value >> 8) & 0xFF)
        write(arm.UC_ARM_REG_PRIMASK, value & 1)


class WatchpointTrace(Device):
    """DWT: the cycle counter, which here counts instructions. No comparators are implemented.

    It must be switched on (DEMCR.TRCENA, DDI 0403E C1.6.5), and where it has a lock (Cortex-M7, DDI 0489F) programs
    must open it; a debugger need not.
    """

    name = "DWT"

    def __init__(self, core: CortexM, *, has_lock: bool = False) -> None:
        self.core = core
        self.has_lock = has_lock
        super().__init__()

    def reset(self) -> None:
        super().reset()
        self._locked = self.has_lock
        self._enabled = False
        self._value = 0
        self._since = 0

    def _count(self) -> int:
        running = self._enabled and self.core.demcr & TRCENA
        return (self._value + (self.core.cycles - self._since if running else 0)) & WORD

    def load(self, offset: int) -> int:
        match offset:
            case 0x000:
                return int(self._enabled)
            case 0x004:
                return self._count()
            case 0xFB4:
                return 1 | self._locked << 1 if self.has_lock and self._by_program() else 0
        if offset >= 0xFD0:
            return _component_id(offset, part=0x002)
        return self.words.get(offset, 0)

    def _by_program(self) -> bool:
        return self.core.bus.running_at() is not None

    def _may_store(self, offset: int) -> bool:
        if self._locked and self._by_program():
            self.complain(offset, "locked", f"+0x{offset:03x} written while LAR locks it, which has no effect")
            return False
        if not self.core.demcr & TRCENA:
            self.complain(offset, "off", f"+0x{offset:03x} written without DEMCR.TRCENA, which has no effect")
            return False
        return True

    def store(self, offset: int, value: int, mask: int) -> None:
        if offset == _LAR:
            self._locked = self.has_lock and value != _LAR_KEY
            return
        if not self._may_store(offset):
            return
        match offset:
            case 0x000:
                self._value = self._count()
                self._since = self.core.cycles
                self._enabled = bool(value & 1)
            case 0x004:
                self._value = value
                self._since = self.core.cycles
            case _:
                super().store(offset, value, mask)


class FlashPatch(Device):
    """FPB: six code comparators (revision 1 on M3/M4, revision 2 on M7 and M33). It survives a system reset."""

    name = "FPB"
    _COMPARATORS = 6

    def __init__(self, core: CortexM, *, revision: int) -> None:
        self.core = core
        self.revision = revision
        self._control = 0
        self._comparators = [0] * self._COMPARATORS
        super().__init__()

    def load(self, offset: int) -> int:
        if offset == 0:
            return (self.revision - 1) << 28 | self._COMPARATORS << 4 | self._control
        if 8 <= offset < 8 + 4 * self._COMPARATORS:
            return self._comparators[(offset - 8) // 4]
        return _component_id(offset, part=0x003) if offset >= 0xFD0 else 0

    def store(self, offset: int, value: int, mask: int) -> None:  # noqa: ARG002
        if offset == 0:
            if value & 2:
                self._control = value & 1
        elif 8 <= offset < 8 + 4 * self._COMPARATORS:
            self._comparators[(offset - 8) // 4] = value
        self.core.breakpoints = self._addresses()
        self.core.end_slice()

    def _addresses(self) -> set[int]:
        if not self._control:
            return set()
        found: set[int] = set()
        for value in self._comparators:
            if not value & 1:
                continue
            if self.revision == 2:
                found.add(value & ~1)
                continue
            base = value & 0x1FFF_FFFC
            if value >> 30 in (1, 3):
                found.add(base)
            if value >> 30 in (2, 3):
                found.add(base + 2)
        return found


class TraceMacrocell(Device):
    """ITM: stimulus ports are always ready and lead nowhere."""

    name = "ITM"

    def load(self, offset: int) -> int:
        if offset >= 0xFD0:
            return _component_id(offset, part=0x001)
        return 1 if offset < 0x80 else self.words.get(offset, 0)


class RomTable(Device):
    """Where a debugger finds the core's components."""

    name = "ROM"
    _ENTRIES = (0xFFF0_F003, 0xFFF0_2003, 0xFFF0_3003, 0xFFF0_1003, 0)

    def __init__(self, designer: int, part: int) -> None:
        self._designer = designer
        self._part = part
        super().__init__()

    def load(self, offset: int) -> int:
        if offset < 4 * len(self._ENTRIES):
            return self._ENTRIES[offset // 4]
        if offset >= 0xFD0:
            return _component_id(offset, part=self._part, designer=self._designer, component_class=1)
        return 1 if offset == 0xFCC else 0


#: JEP106 codes, continuation in bits 8 and up: Arm, STMicroelectronics, Nordic.
ARM, ST, NORDIC = 0x43B, 0x020, 0x244


def _component_id(offset: int, *, part: int, designer: int = ARM, component_class: int = 0xE) -> int:
    """CoreSight PIDR and CIDR registers, 0xFD0 to 0xFFC."""
    bank, identity = designer >> 8, designer & 0x7F
    values = {
        0xFD0: bank,
        0xFE0: part & 0xFF,
        0xFE4: (part >> 8) & 0xF | (identity & 0xF) << 4,
        0xFE8: 0x8 | identity >> 4,
        0xFF0: 0x0D,
        0xFF4: component_class << 4,
        0xFF8: 0x05,
        0xFFC: 0xB1,
    }
    return values.get(offset, 0)
