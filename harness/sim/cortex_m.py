"""A Cortex-M core above the instruction engine: exceptions, faults, sleep, lock-up and halting debug.

Source for the behaviour: ARMv7-M Architecture Reference Manual (DDI 0403E), chapters B1.5 (exception model),
C1.6 (halting debug). One instruction counts as one cycle.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from harness.sim.alignment import is_unaligned, needs_alignment
from harness.sim.bus import Bus
from harness.sim.device import WORD, BusError, Events
from harness.sim.division import find_divisions
from harness.sim.engine import Engine, Stop
from harness.sim.mpu import Access, Mpu

RESET, NMI, HARD_FAULT, MEM_MANAGE, BUS_FAULT, USAGE_FAULT = 1, 2, 3, 4, 5, 6
SVCALL, DEBUG_MONITOR, PENDSV, SYSTICK = 11, 12, 14, 15
FIRST_IRQ = 16

#: DHCSR
C_DEBUGEN, C_HALT, C_STEP, C_MASKINTS = 1, 2, 4, 8
#: DFSR
DFSR_HALTED, DFSR_BKPT, DFSR_VCATCH = 1, 2, 8
#: DEMCR
VC_MMERR = 1 << 4
VC_CORERESET, VC_NOCPERR, VC_CHKERR, VC_STATERR, VC_BUSERR, VC_HARDERR = 1, 1 << 5, 1 << 6, 1 << 7, 1 << 8, 1 << 10
TRCENA = 1 << 24
#: CFSR
IACCVIOL, DACCVIOL, MUNSTKERR, MSTKERR, MMARVALID = 1 << 0, 1 << 1, 1 << 3, 1 << 4, 1 << 7
IBUSERR, PRECISERR, UNSTKERR, STKERR, BFARVALID = 1 << 8, 1 << 9, 1 << 11, 1 << 12, 1 << 15
UNDEFINSTR, INVSTATE, INVPC, NOCP, STKOF, UNALIGNED, DIVBYZERO = (1 << n for n in (16, 17, 18, 19, 20, 24, 25))
#: HFSR
HFSR_VECTTBL, HFSR_FORCED, HFSR_DEBUGEVT = 1 << 1, 1 << 30, 1 << 31
#: CCR
CCR_UNALIGN_TRP, CCR_DIV_0_TRP, CCR_STKALIGN = 1 << 3, 1 << 4, 1 << 9
#: SCR
SLEEPONEXIT, SEVONPEND = 1 << 1, 1 << 4

_LOWEST = 256
_XPSR_T = 1 << 24
_XPSR_IT = 0x0600_FC00
_NO_VECTOR_CATCH = 0


class State(Enum):
    RUNNING = "running"
    HALTED = "halted"
    SLEEPING = "sleeping"
    LOCKUP = "lockup"
    IN_RESET = "in_reset"


@dataclass(slots=True)
class Faults:
    """The fault status registers."""

    cfsr: int = 0
    hfsr: int = 0
    mmfar: int = 0
    bfar: int = 0


@dataclass(frozen=True, slots=True)
class Violation:
    """A data access that the instruction at ``pc`` must not make. ``address`` is None for an unaligned one; ``xpsr``
    holds the IT state that the instruction has."""

    pc: int
    xpsr: int
    address: int | None


@dataclass(slots=True)
class Exceptions:
    """Pending, enabled and active exceptions, and their priorities."""

    pending: set[int] = field(default_factory=set)
    enabled: set[int] = field(default_factory=set)
    active: list[int] = field(default_factory=list)
    priority: dict[int, int] = field(default_factory=dict)
    prigroup: int = 0
    shcsr: int = 0  # enable bits 16..18 only


class CortexM:
    """``cycles`` is the instruction clock: it never goes back, not at a reset either."""

    def __init__(
        self, engine: Engine, bus: Bus, *, priority_bits: int, has_fpu: bool, reset_vtor: int, mpu: Mpu
    ) -> None:
        self.engine = engine
        self.bus = bus
        self.arm = engine.arm
        self.has_fpu = has_fpu
        self.reset_vtor = reset_vtor
        self.priority_mask = (0xFF << (8 - priority_bits)) & 0xFF
        self.events = Events()
        self.state = State.IN_RESET
        self.base_cycles = 0
        self._in_slice = False
        self.exceptions = Exceptions()
        self.faults = Faults()
        self.vtor = reset_vtor
        self.cpacr = 0
        self.ccr = CCR_STKALIGN
        self.scr = 0
        self.dhcsr = 0
        self.demcr = 0
        self.dfsr = 0
        self.sticky_reset = True
        self.sticky_lockup = False
        self.breakpoints: set[int] = set()
        self._bus_error: tuple[int, bool, int] | None = None
        self._violation: Violation | None = None
        #: What stores overwrote that must not have happened: (address, bytes).
        self._undo: list[tuple[int, bytes]] = []
        #: LDRD, LDM, VLDR and their like fault when unaligned, as on hardware; this slows the core down some sixty
        #: times, as every access is looked at. CCR.UNALIGN_TRP does so too.
        self.strict_alignment = False
        self.mpu = mpu
        self.mpu.on_violation = lambda address, size, is_write: self._violate(address, size, is_write, address)
        self.mpu.rests = self._above_mpu
        self._event_register = False
        #: Called for a reset asked for by the core itself (AIRCR.SYSRESETREQ).
        self.on_system_reset: Callable[[], None] = lambda: None
        self.reset_requested = False
        bus.on_error = self._on_bus_error
        bus.running_at = lambda: self.engine.pc & ~1 if self._in_slice else None

    # --- time -------------------------------------------------------------------------------------------------

    @property
    def cycles(self) -> int:
        return self.base_cycles + (self.engine.executed if self._in_slice else 0)

    def end_slice(self) -> None:
        """From a device: look at interrupts and events again after this instruction."""
        if self._in_slice:
            self.engine.cut()

    # --- reset ------------------------------------------------------------------------------------------------

    def hold_in_reset(self) -> None:
        self.state = State.IN_RESET

    def reset(self) -> None:
        """Leave reset: fetch SP and PC from the vector table, and run or halt there."""
        self.exceptions = Exceptions()
        self.faults = Faults()
        self.vtor = self.reset_vtor
        self.cpacr = 0
        self.set_ccr(CCR_STKALIGN)
        self.scr = 0
        self.mpu.reset()
        self.sticky_reset = True
        self.reset_requested = False
        self._bus_error = None
        self._violation = None
        self.bus.is_deaf = False
        self._undo.clear()
        self._event_register = False
        arm = self.arm
        for register in (arm.UC_ARM_REG_IPSR, arm.UC_ARM_REG_CONTROL, arm.UC_ARM_REG_PRIMASK):
            self.engine.write(register, 0)
        for register in (arm.UC_ARM_REG_BASEPRI, arm.UC_ARM_REG_FAULTMASK):
            self.engine.write(register, 0)
        self.engine.write(arm.UC_ARM_REG_XPSR, _XPSR_T)
        self.engine.write(arm.UC_ARM_REG_LR, WORD)
        self.engine.write(arm.UC_ARM_REG_FPSCR, 0)
        self.engine.guard_fpu(True)
        self.state = State.RUNNING
        try:
            stack, entry = struct.unpack("<II", self.bus.read(self.vtor, 8))
        except BusError:
            stack, entry = WORD, WORD
        self.engine.write(arm.UC_ARM_REG_MSP, stack & ~3)
        self._set_pc(entry & ~1)
        if not entry & 1:
            self._thumb_lost = True
        else:
            self._thumb_lost = False
        if self.demcr & VC_CORERESET and self.dhcsr & C_DEBUGEN:
            self.halt(DFSR_VCATCH)
        elif self.dhcsr & C_DEBUGEN and self.dhcsr & C_HALT:
            self.halt(DFSR_HALTED)

    def _set_pc(self, address: int) -> None:
        # Writing the register with bit 0 keeps Thumb state.
        self.engine.write(self.arm.UC_ARM_REG_PC, address | 1)

    # --- halting debug ----------------------------------------------------------------------------------------

    def halt(self, reason: int) -> None:
        self.dfsr |= reason
        self.state = State.HALTED
        self.dhcsr |= C_HALT

    def resume(self) -> None:
        if self.state is State.HALTED:
            self.state = State.RUNNING

    def step(self) -> None:
        """One instruction from a halt, then halted again."""
        self.state = State.RUNNING
        if not self.dhcsr & C_MASKINTS:
            self._take_pending()
        self._slice(1)
        if self.state in (State.RUNNING, State.SLEEPING):
            self.halt(DFSR_HALTED)

    # --- running ----------------------------------------------------------------------------------------------

    def run(self, limit: int) -> None:
        """At most ``limit`` instructions; less when something has to be looked at."""
        if self.state is State.SLEEPING:
            if not self._wakes():
                return
            self.state = State.RUNNING
        if self.state is not State.RUNNING:
            return
        self.events.run_due(self.base_cycles)
        if self.reset_requested:
            self.on_system_reset()
            return
        self._take_pending()
        if self.state is State.RUNNING:
            self._slice(self._budget(limit))

    def _budget(self, limit: int) -> int:
        due = self.events.next_at()
        if due is not None:
            limit = min(limit, max(1, due - self.base_cycles))
        if self.exceptions.pending:
            # Something waits behind a mask: look again soon, PRIMASK may be cleared any time.
            limit = min(limit, 64)
        return limit

    def skip_to(self, cycles: int) -> None:
        """Let time pass without instructions (asleep)."""
        self.base_cycles = max(self.base_cycles, cycles)

    def _slice(self, count: int) -> None:
        if self._thumb_lost:
            self._thumb_lost = False
            self._usage_fault(INVSTATE)
            return
        self.engine.set_breakpoints(self.breakpoints if self.dhcsr & C_DEBUGEN else set())
        self._in_slice = True
        try:
            stop, executed = self.engine.run(self.engine.pc, count)
        finally:
            self._in_slice = False
        self.base_cycles += executed
        self._handle(stop)
        self.events.run_due(self.base_cycles)
        if self.reset_requested:
            self.on_system_reset()

    def _handle(self, stop: Stop) -> None:
        if self._violation is not None:
            self._refuse_access(self._violation)
            return
        if self._bus_error is not None:
            address, is_write, pc = self._bus_error
            self._bus_error = None
            self._set_pc(pc)
            self._bus_fault(PRECISERR, address)
            del is_write
            return
        match stop:
            case Stop.COUNT:
                pass
            case Stop.SVC:
                self._call(SVCALL)
            case Stop.BKPT:
                self._breakpoint_instruction()
            case Stop.BREAKPOINT:
                self.halt(DFSR_BKPT)
            case Stop.EXCEPTION_RETURN:
                self._exception_return(self.engine.pc | 1)
            case Stop.WFI:
                self.state = State.SLEEPING
            case Stop.WFE:
                if not self._event_register:
                    self.state = State.SLEEPING
                self._event_register = False
            case Stop.UNDEFINED:
                self._usage_fault(UNDEFINSTR)
            case Stop.INVALID_STATE:
                self._usage_fault(INVSTATE)
            case Stop.COPROCESSOR:
                self._usage_fault(NOCP)
            case Stop.DIVISION_BY_ZERO:
                self._usage_fault(DIVBYZERO)
            case Stop.STACK_OVERFLOW:
                self._usage_fault(STKOF)
            case Stop.FETCH_FAULT if self.mpu.denies_fetch(self.engine.pc & ~1):
                self._mem_fault(IACCVIOL)
            case Stop.FETCH_FAULT:
                self._bus_fault(IBUSERR, None)
            case Stop.FETCH_DENIED:
                self._mem_fault(IACCVIOL)
            case Stop.DATA_FAULT:
                self._bus_fault(PRECISERR, self.engine.fault_address)

    def _on_bus_error(self, address: int, is_write: bool) -> None:
        if self._bus_error is None:
            self._bus_error = (address, is_write, self.engine.pc)
        self.engine.cut()

    # --- accesses that must not be made -----------------------------------------------------------------------

    def set_ccr(self, value: int) -> None:
        self.ccr = value
        self.watch_alignment()
        self._watch_divisions()

    def watch_alignment(self) -> None:
        """After a change of `strict_alignment` or CCR.UNALIGN_TRP."""
        watching = self.strict_alignment or bool(self.ccr & CCR_UNALIGN_TRP)
        if watching != self._watches_alignment:
            self._watches_alignment = watching
            everything = [(0, WORD)] if watching else []
            self.engine.watch_accesses("alignment", everything, everything, self._check_alignment)
            self.end_slice()

    def _watch_divisions(self) -> None:
        """At each write to CCR: with DIV_0_TRP, the divisions are those that memory holds now."""
        trapped = bool(self.ccr & CCR_DIV_0_TRP)
        if not trapped and not self._watches_divisions:
            return
        self._watches_divisions = trapped
        memories = self.bus.memories if trapped else ()
        self.engine.watch_divisions(
            frozenset(
                base + offset
                for memory in memories
                for offset in find_divisions(bytes(memory.view))
                for base in memory.addresses
            )
        )
        self.end_slice()

    def _check_alignment(self, address: int, size: int, is_write: bool) -> None:
        if is_unaligned(address, size) and (self.ccr & CCR_UNALIGN_TRP or self._must_be_aligned()):
            self._violate(address, size, is_write, None)

    def _must_be_aligned(self) -> bool:
        code = self.bus.read(self.engine.pc & ~1, 4)
        return needs_alignment(int.from_bytes(code[:2], "little"), int.from_bytes(code[2:], "little"))

    def _above_mpu(self) -> bool:
        return self.execution_priority() < 0

    def _violate(self, address: int, size: int, is_write: bool, denied: int | None) -> None:
        """The engine makes the access all the same; what a store overwrites is put back after the instruction."""
        self.bus.is_deaf = True
        if is_write and self.bus.find(address, size) is not None:
            self._undo.append((address, self.bus.read(address, size)))
        if self._violation is None:
            self._violation = Violation(self.engine.pc & ~1, self.engine.read(self.arm.UC_ARM_REG_XPSR), denied)
        self.engine.cut()

    def _refuse_access(self, violation: Violation) -> None:
        self._violation = self._bus_error = None
        self.bus.is_deaf = False
        for address, former in reversed(self._undo):
            self.bus.write(address, former)
        self._undo.clear()
        self._set_pc(violation.pc)
        self.engine.write(self.arm.UC_ARM_REG_EPSR, violation.xpsr & _XPSR_IT | _XPSR_T)
        if violation.address is None:
            self._usage_fault(UNALIGNED)
        else:
            self.faults.mmfar = violation.address
            self._mem_fault(DACCVIOL | MMARVALID)

    def _breakpoint_instruction(self) -> None:
        if self.dhcsr & C_DEBUGEN:
            self.halt(DFSR_BKPT)
        else:
            self.faults.hfsr |= HFSR_DEBUGEVT
            self._escalate()

    def set_event(self) -> None:
        """SEV, or an interrupt with SEVONPEND."""
        self._event_register = True

    def _wakes(self) -> bool:
        if self._event_register:
            self._event_register = False
            return True
        self.events.run_due(self.base_cycles)
        return self._best_pending(ignore_primask=True) is not None or self.reset_requested

    # --- exceptions: choosing ---------------------------------------------------------------------------------

    def pend(self, exception: int) -> None:
        self.exceptions.pending.add(exception)
        self.end_slice()

    def pend_irq(self, irq: int) -> None:
        self.pend(FIRST_IRQ + irq)

    def _priority(self, exception: int) -> int:
        if exception == NMI:
            return -2
        if exception == HARD_FAULT:
            return -1
        return self.exceptions.priority.get(exception, 0) & self.priority_mask

    def _group(self, priority: int) -> int:
        if priority < 0:
            return priority
        return priority & (WORD << (self.exceptions.prigroup + 1)) & 0xFF

    def execution_priority(self, *, ignore_primask: bool = False) -> int:
        arm = self.arm
        level = min((self._group(self._priority(e)) for e in self.exceptions.active), default=_LOWEST)
        basepri = self.engine.read(arm.UC_ARM_REG_BASEPRI) & self.priority_mask
        if basepri:
            level = min(level, self._group(basepri))
        if not ignore_primask and self.engine.read(arm.UC_ARM_REG_PRIMASK) & 1:
            level = min(level, 0)
        if self.engine.read(arm.UC_ARM_REG_FAULTMASK) & 1:
            level = min(level, -1)
        return level

    def is_enabled(self, exception: int) -> bool:
        if exception >= FIRST_IRQ:
            return exception in self.exceptions.enabled
        if exception in (MEM_MANAGE, BUS_FAULT, USAGE_FAULT):
            return bool(self.exceptions.shcsr & (1 << (16 + exception - MEM_MANAGE)))
        return True

    def _best_pending(self, *, ignore_primask: bool = False) -> int | None:
        ready = [e for e in self.exceptions.pending if self.is_enabled(e)]
        if not ready:
            return None
        best = min(ready, key=lambda e: (self._priority(e), e))
        level = self.execution_priority(ignore_primask=ignore_primask)
        return best if self._group(self._priority(best)) < level else None

    def _take_pending(self) -> None:
        if not self.exceptions.pending or (self.dhcsr & C_DEBUGEN and self.dhcsr & C_MASKINTS):
            return
        best = self._best_pending()
        if best is not None:
            self.exceptions.pending.discard(best)
            self._enter(best)

    def _call(self, exception: int) -> None:
        """A synchronous exception: taken now, or a HardFault."""
        if self._group(self._priority(exception)) < self.execution_priority():
            self._enter(exception)
        else:
            self.faults.hfsr |= HFSR_FORCED
            self._escalate()

    # --- faults -----------------------------------------------------------------------------------------------

    def _bus_fault(self, bit: int, address: int | None) -> None:
        self.faults.cfsr |= bit
        if address is not None:
            self.faults.bfar = address & WORD
            self.faults.cfsr |= BFARVALID
        self._fault(BUS_FAULT, VC_BUSERR)

    def _mem_fault(self, bits: int) -> None:
        self.faults.cfsr |= bits
        self._fault(MEM_MANAGE, VC_MMERR)

    def _usage_fault(self, bit: int) -> None:
        self.faults.cfsr |= bit
        catch = {NOCP: VC_NOCPERR, INVSTATE: VC_STATERR, INVPC: VC_STATERR, UNDEFINSTR: VC_STATERR}
        self._fault(USAGE_FAULT, catch.get(bit, VC_CHKERR))

    def _fault(self, exception: int, catch: int) -> None:
        if self.is_enabled(exception) and self._group(self._priority(exception)) < self.execution_priority():
            self._enter(exception, catch=catch)
        else:
            self.faults.hfsr |= HFSR_FORCED
            self._escalate()

    def _escalate(self) -> None:
        if self.execution_priority() <= -1:
            self.lock_up()
        else:
            self._enter(HARD_FAULT, catch=VC_HARDERR)

    def lock_up(self) -> None:
        """Nothing runs until a reset or a debugger's halt."""
        self.state = State.LOCKUP
        self.sticky_lockup = True
        self.end_slice()

    # --- exceptions: entry and return -------------------------------------------------------------------------

    def _enter(self, exception: int, *, catch: int = _NO_VECTOR_CATCH) -> None:
        arm, engine = self.arm, self.engine
        names = [arm.UC_ARM_REG_R0, arm.UC_ARM_REG_R1, arm.UC_ARM_REG_R2, arm.UC_ARM_REG_R3, arm.UC_ARM_REG_R12]
        frame = [engine.read(name) for name in names]
        xpsr = engine.read(arm.UC_ARM_REG_XPSR) | _XPSR_T
        control = engine.read(arm.UC_ARM_REG_CONTROL)
        stack = engine.read(arm.UC_ARM_REG_SP)
        with_fpu = self.has_fpu and bool(control & 4) and bool(self.cpacr & (3 << 20))
        size = 0x68 if with_fpu else 0x20
        top = stack - size
        padded = bool(top & 4) and bool(self.ccr & CCR_STKALIGN or with_fpu)
        if padded:
            top -= 4
        words = [*frame, engine.read(arm.UC_ARM_REG_LR), engine.pc, xpsr | (int(padded) << 9)]
        data = struct.pack("<8I", *words)
        if with_fpu:
            singles = [engine.read(arm.UC_ARM_REG_S0 + n) for n in range(16)]
            data += struct.pack("<18I", *singles, engine.read(arm.UC_ARM_REG_FPSCR), 0)
        thread = not self.exceptions.active
        using_psp = thread and bool(control & 2)
        engine.write(arm.UC_ARM_REG_SP, top)
        denied = self.mpu.denies(top & WORD, size, Access.WRITE) is not None
        stacked = not denied and self._store_frame(top, data)
        exc_return = 0xFFFF_FFE1 | (0 if with_fpu else 0x10) | (0x8 if thread else 0) | (0x4 if using_psp else 0)
        self.exceptions.active.append(exception)
        engine.write(arm.UC_ARM_REG_XPSR, (xpsr & ~_XPSR_IT & ~0x1FF) | _XPSR_T | exception)
        engine.write(arm.UC_ARM_REG_CONTROL, control & ~4 & 7)
        engine.write(arm.UC_ARM_REG_LR, exc_return)
        if not stacked:
            self._stacking_failed(exception, MSTKERR if denied else STKERR)
            return
        self._jump_to_vector(exception)
        if catch and self.demcr & catch and self.dhcsr & C_DEBUGEN:
            self.halt(DFSR_VCATCH)

    def _store_frame(self, address: int, data: bytes) -> bool:
        found = self.bus.find(address & WORD, len(data))
        if found is None or not found[0].writable:
            return False
        memory, offset = found
        memory.view[offset : offset + len(data)] = data
        return True

    def _stacking_failed(self, exception: int, bit: int) -> None:
        """The stack pointer points nowhere, or where the MPU denies it; a handler runs, with ``bit`` set."""
        self.faults.cfsr |= bit
        if exception == HARD_FAULT:
            self._jump_to_vector(exception)
            return
        self.faults.hfsr |= HFSR_FORCED
        self.exceptions.active[-1] = HARD_FAULT
        self.engine.write(self.arm.UC_ARM_REG_IPSR, HARD_FAULT)
        self._jump_to_vector(HARD_FAULT)

    def _jump_to_vector(self, exception: int) -> None:
        try:
            vector = int.from_bytes(self.bus.read(self.vtor + 4 * exception, 4), "little")
        except BusError:
            vector = 0
            self.faults.hfsr |= HFSR_VECTTBL
            if exception == HARD_FAULT:
                self.lock_up()
                return
        self._set_pc(vector & ~1)
        if not vector & 1:
            self._thumb_lost = True

    def _exception_return(self, value: int) -> None:
        arm, engine = self.arm, self.engine
        if not self.exceptions.active:
            self._usage_fault(INVPC)
            return
        finished = self.exceptions.active.pop()
        if finished != HARD_FAULT or not self.exceptions.active:
            engine.write(arm.UC_ARM_REG_FAULTMASK, 0)
        to_thread = bool(value & 8)
        if to_thread:
            self.exceptions.active.clear()
        control = engine.read(arm.UC_ARM_REG_CONTROL) & 7
        new_control = (control & 1) | (2 if value & 4 else 0) if to_thread else control
        if to_thread:
            engine.write(arm.UC_ARM_REG_CONTROL, control & ~1)
            engine.write(arm.UC_ARM_REG_IPSR, 0)
            engine.write(arm.UC_ARM_REG_CONTROL, new_control & ~1)
        else:
            engine.write(arm.UC_ARM_REG_IPSR, self.exceptions.active[-1] if self.exceptions.active else 0)
        stack = engine.read(arm.UC_ARM_REG_SP)
        with_fpu = not value & 0x10
        size = 0x68 if with_fpu else 0x20
        if self.mpu.denies(stack, size, Access.READ) is not None:
            self._mem_fault(MUNSTKERR)
            return
        try:
            data = self.bus.read(stack, size)
        except BusError:
            self._bus_fault(UNSTKERR, None)
            return
        self._unstack(data, with_fpu)
        xpsr = struct.unpack_from("<I", data, 28)[0]
        engine.write(arm.UC_ARM_REG_SP, stack + size + (4 if xpsr & 0x200 else 0))
        current = 0 if to_thread else (self.exceptions.active[-1] if self.exceptions.active else 0)
        engine.write(arm.UC_ARM_REG_XPSR, (xpsr & ~0x3FF) | current)
        engine.write(arm.UC_ARM_REG_CONTROL, (new_control & ~4) | (4 if with_fpu else 0))
        self._thumb_lost = not xpsr & _XPSR_T
        self._set_pc(struct.unpack_from("<I", data, 24)[0] & ~1)
        if to_thread and self.scr & SLEEPONEXIT:
            self.state = State.SLEEPING

    def _unstack(self, data: bytes, with_fpu: bool) -> None:
        arm, engine = self.arm, self.engine
        words = struct.unpack_from("<6I", data)
        names = [arm.UC_ARM_REG_R0, arm.UC_ARM_REG_R1, arm.UC_ARM_REG_R2, arm.UC_ARM_REG_R3, arm.UC_ARM_REG_R12]
        for name, word in zip([*names, arm.UC_ARM_REG_LR], words, strict=True):
            engine.write(name, word)
        if with_fpu:
            singles = struct.unpack_from("<17I", data, 32)
            for n in range(16):
                engine.write(arm.UC_ARM_REG_S0 + n, singles[n])
            engine.write(arm.UC_ARM_REG_FPSCR, singles[16])

    # --- the FPU's switch -------------------------------------------------------------------------------------

    def set_cpacr(self, value: int) -> None:
        self.cpacr = value & 0x00F0_0000
        on = self.has_fpu and self.cpacr & 0x00F0_0000 == 0x00F0_0000
        self.engine.guard_fpu(not on)
        self.end_slice()

    _thumb_lost = False
    _watches_alignment = False
    _watches_divisions = False
