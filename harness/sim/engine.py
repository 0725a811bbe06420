"""The instruction engine: unicorn's ARM core, run in counted slices that any thread can cut short.

unicorn executes instructions; everything that makes the core a Cortex-M (exceptions, SysTick, debug) is modelled
above it, in `cortex_m`. Facts about unicorn used here were read in its source (2.1.4) and tried:

- ``count`` slices cost nothing measurable; the counter and its limit are two words inside ``uc_struct``. Lowering
  the limit to the current count ends the slice right after the instruction that is being executed, which
  ``emu_stop`` in a device callback does not (it repeats the access).
- ``SVC`` leaves PC after the instruction and reports interrupt 2, ``BKPT`` leaves PC on it (7), a return to an
  EXC_RETURN value in handler mode reports 8 with PC holding that value.
- ``WFE`` ends as an invalid instruction with PC behind it.
- Before a hook for a memory access, unicorn brings PC and the IT state up to date, and keeps the IT state after it: the
  next block of code is then translated as if it stood in the IT block (its issue 2309). Such hooks clear it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from enum import Enum
from typing import Any

from harness.errors import MissingDependencyError
from harness.sim.division import DIVISION_BYTES, after_one_more, condition_holds, quotient, read_division
from harness.sim.unicorn_internals import allow_double_precision, find_counters

#: emu_start's ``until``: an address that nothing executes.
_NOWHERE = 0xFFFF_FFF0
_LARGE_CHANGE_BYTES = 4096
#: EPSR: Thumb state, outside an IT block.
_NO_IT_BLOCK = ctypes.byref(ctypes.c_uint32(1 << 24))
_WFE = b"\x20\xbf"

Hook = Callable[..., Any]


class Stop(Enum):
    """Why a slice ended."""

    COUNT = "count"  # as many instructions as asked for, or cut short
    SVC = "svc"
    BKPT = "bkpt"
    EXCEPTION_RETURN = "exception_return"
    UNDEFINED = "undefined"
    INVALID_STATE = "invalid_state"  # Thumb bit clear
    WFI = "wfi"
    WFE = "wfe"
    DATA_FAULT = "data_fault"  # ``fault_address`` says where
    FETCH_FAULT = "fetch_fault"
    FETCH_DENIED = "fetch_denied"  # by a watch; the instruction was not executed
    COPROCESSOR = "coprocessor"  # FPU used while it is off
    DIVISION_BY_ZERO = "division_by_zero"  # while divisions are watched; the instruction was not executed
    STACK_OVERFLOW = "stack_overflow"  # below MSPLIM or PSPLIM (ARMv8-M)
    BREAKPOINT = "breakpoint"


#: unicorn's interrupt numbers (qemu/target/arm/cpu.h, EXCP_*).
_INTERRUPTS = {
    2: Stop.SVC,
    3: Stop.FETCH_FAULT,
    4: Stop.DATA_FAULT,
    7: Stop.BKPT,
    8: Stop.EXCEPTION_RETURN,
    19: Stop.STACK_OVERFLOW,
}


class Engine:
    """One core's registers, memory map and instruction stream."""

    def __init__(self, model: str, *, double_precision: bool = False) -> None:
        uc = _import_unicorn()
        import unicorn.arm_const as arm

        models = {
            "cortex-m0": arm.UC_CPU_ARM_CORTEX_M0,
            "cortex-m3": arm.UC_CPU_ARM_CORTEX_M3,
            "cortex-m4": arm.UC_CPU_ARM_CORTEX_M4,
            "cortex-m7": arm.UC_CPU_ARM_CORTEX_M7,
            "cortex-m33": arm.UC_CPU_ARM_CORTEX_M33,
        }
        self._unicorn = uc
        self.arm = arm
        self.uc = uc.Uc(uc.UC_ARCH_ARM, uc.UC_MODE_THUMB | uc.UC_MODE_MCLASS)
        self.uc.ctl_set_cpu_model(models[model])
        self.double_precision = double_precision
        # unicorn would free itself at the interpreter's exit, under the feet of a thread that still runs it.
        self._finalizer = self.uc._Uc__finalizer
        self._finalizer.atexit = False
        self._buffers: list[Any] = []
        self._counter, self._limit = find_counters(self.uc)
        if double_precision:
            allow_double_precision(self.uc)
        self._interrupt = 0
        self.fault_address: int | None = None
        self.fault_is_write = False
        self._breakpoint_hooks: dict[int, Any] = {}
        self._hit_breakpoint = False
        self._resume_at: int | None = None
        self._stale_code = False
        self._stale_ranges: list[tuple[int, int]] = []
        self._fpu_guard: Any = None
        self._fpu_clean: set[tuple[int, int]] = set()
        #: Before which instruction of the block the slice ends, as what, and whether it still must when it is reached.
        self._target: tuple[int, Stop, Callable[[], bool]] | None = None
        self._walking = False
        self._watches: dict[str, list[Any]] = {}
        self._divisions: frozenset[int] = frozenset()
        #: Instructions of the slice that unicorn does not count any more.
        self._before = 0
        self.uc.hook_add(uc.UC_HOOK_INTR, self._on_interrupt)
        self.uc.hook_add(uc.UC_HOOK_MEM_UNMAPPED, self._on_unmapped)

    def close(self) -> None:
        """Free unicorn's memory. Nothing of the engine may be used after it."""
        self._finalizer()
        self._buffers.clear()

    # --- memory map -------------------------------------------------------------------------------------------

    def map_memory(self, buffer: Any, addresses: tuple[int, ...], *, writable: bool) -> None:
        """Show one ctypes buffer at each of the addresses. Code runs from all of them."""
        uc = self._unicorn
        protection = uc.UC_PROT_READ | uc.UC_PROT_EXEC | (uc.UC_PROT_WRITE if writable else 0)
        self._buffers.append(buffer)
        for address in addresses:
            self.uc.mem_map_ptr(address, len(buffer), protection, ctypes.addressof(buffer))
            if not writable:
                # A region mapped by pointer is read-only only after unicorn's own first write to it.
                self.uc.mem_write(address, bytes(buffer[:4]))

    def map_devices(self, address: int, size: int, read: Hook, write: Hook) -> None:
        """``read(address, size) -> int`` and ``write(address, size, value)`` for each access in the range."""
        self.uc.mmio_map(
            address,
            size,
            lambda _uc, offset, width, _data: read(address + offset, width),
            None,
            lambda _uc, offset, width, value, _data: write(address + offset, width, value),
            None,
        )

    def on_protected_write(self, write: Hook) -> None:
        """``write(address, size, value)`` for each store to memory mapped read-only; the store itself has no effect."""

        def handle(_uc: Any, _kind: int, address: int, size: int, value: int, _data: Any) -> bool:
            write(address, size, value & ((1 << (8 * size)) - 1))
            self._leave_it_block()
            return True

        self.uc.hook_add(self._unicorn.UC_HOOK_MEM_WRITE_PROT, handle)

    def code_changed(self, address: int | None = None, size: int = 0) -> None:
        """Memory was written behind unicorn's back: code translated from it is thrown away before the next slice."""
        if address is None or size > _LARGE_CHANGE_BYTES or len(self._stale_ranges) > 64:
            self._stale_code = True
        else:
            self._stale_ranges.append((address, address + size))

    # --- registers --------------------------------------------------------------------------------------------

    def read(self, register: int) -> int:
        return int(self.uc.reg_read(register)) & 0xFFFF_FFFF

    def write(self, register: int, value: int) -> None:
        self.uc.reg_write(register, value & 0xFFFF_FFFF)

    def _leave_it_block(self) -> None:
        """At the end of a hook for a memory access. Past `write`, as each watched access needs it: 1 µs in place of 4,
        measured."""
        self.uc._do_reg_write(self.arm.UC_ARM_REG_EPSR, _NO_IT_BLOCK)

    @property
    def pc(self) -> int:
        return self.read(self.arm.UC_ARM_REG_PC)

    # --- running ----------------------------------------------------------------------------------------------

    @property
    def executed(self) -> int:
        """Instructions of the slice so far, the current one included. Meant for device callbacks."""
        return self._before + int(self._counter.value)

    def cut(self) -> None:
        """From a device callback: end the slice after this instruction."""
        self._limit.value = self._counter.value

    def cut_from_outside(self) -> None:
        """From another thread: end the slice at the next instruction. A slice about to start may not notice."""
        self._limit.value = 0

    def run(self, pc: int, count: int) -> tuple[Stop, int]:
        """Execute at most ``count`` instructions from ``pc``: why it ended, and how many were executed."""
        self._before = 0
        self._resume_at = pc
        while True:
            stop, executed = self._divide(pc) if pc in self._divisions else self._run(pc, count - self._before)
            self._before += executed
            if stop is not None:
                return stop, self._before
            if self._before >= count:
                return Stop.COUNT, self._before
            if executed:
                pc, self._resume_at = self.pc, None

    def _run(self, pc: int, count: int) -> tuple[Stop | None, int]:
        """As `run`; None where a watched division is next."""
        self._drop_stale_code()
        self._interrupt = 0
        self.fault_address = None
        self._hit_breakpoint = False
        self._target = None
        error = self._start(pc, count)
        limit = int(self._limit.value)
        executed = int(self._counter.value)
        if self._divisions and self._is_before_division(error):
            if self.pc in self._breakpoint_hooks:
                return Stop.BREAKPOINT, executed
            return None if executed < limit else Stop.COUNT, executed
        stop = self._reason(error, pc, executed, limit)
        if stop is Stop.COUNT:
            executed = min(executed, limit) if limit else max(0, executed - 1)
        return stop, executed

    def _drop_stale_code(self) -> None:
        if self._stale_code:
            self.uc.ctl_flush_tb()
        elif self._stale_ranges:
            for start, end in self._stale_ranges:
                self.uc.ctl_remove_cache(start, end)
        else:
            return
        self._stale_code = False
        self._stale_ranges.clear()
        self._fpu_clean.clear()

    def _start(self, pc: int, count: int) -> int | None:
        try:
            self.uc.emu_start(pc | 1, _NOWHERE, 0, max(1, count))
        except self._unicorn.UcError as exc:
            return int(exc.errno)
        return None

    def _reason(self, error: int | None, start: int, executed: int, limit: int) -> Stop:
        uc = self._unicorn
        if self._hit_breakpoint:
            return Stop.BREAKPOINT
        if self._target is not None:
            return self._walk(*self._target)
        if error is None:
            if not self._interrupt:
                if self.pc == _NOWHERE:
                    return Stop.FETCH_FAULT
                return Stop.WFI if executed <= limit else Stop.COUNT
            return _INTERRUPTS.get(self._interrupt, Stop.UNDEFINED)
        pc = self.pc
        if error in (uc.UC_ERR_FETCH_UNMAPPED, uc.UC_ERR_FETCH_PROT):
            return Stop.FETCH_FAULT
        if error in (uc.UC_ERR_READ_UNMAPPED, uc.UC_ERR_WRITE_UNMAPPED, uc.UC_ERR_READ_PROT, uc.UC_ERR_WRITE_PROT):
            return Stop.DATA_FAULT
        if error == uc.UC_ERR_INSN_INVALID:
            if pc != start and self._bytes_before(pc) == _WFE:
                return Stop.WFE
            return Stop.UNDEFINED
        # UC_ERR_EXCEPTION: fetch from a device region, or the Thumb bit is clear
        return Stop.INVALID_STATE if self._thumb_is_clear() else Stop.FETCH_FAULT

    def _bytes_before(self, pc: int) -> bytes:
        try:
            return bytes(self.uc.mem_read(pc - 2, 2))
        except self._unicorn.UcError:
            return b""

    def _thumb_is_clear(self) -> bool:
        return not self.read(self.arm.UC_ARM_REG_XPSR) & (1 << 24)

    def _on_interrupt(self, uc: Any, number: int, _data: Any) -> None:
        self._interrupt = number
        uc.emu_stop()

    def _on_unmapped(self, _uc: Any, kind: int, address: int, _size: int, _value: int, _data: Any) -> bool:
        self.fault_address = address
        self.fault_is_write = kind == self._unicorn.UC_MEM_WRITE_UNMAPPED
        return False

    # --- breakpoints ------------------------------------------------------------------------------------------

    def set_breakpoints(self, addresses: set[int]) -> None:
        """Stop before the instruction at each of these; the instruction a slice starts on is let through."""
        for address in set(self._breakpoint_hooks) - addresses:
            self.uc.hook_del(self._breakpoint_hooks.pop(address))
            self._stale_code = True
        for address in addresses - set(self._breakpoint_hooks):
            self._breakpoint_hooks[address] = self.uc.hook_add(
                self._unicorn.UC_HOOK_CODE, self._on_breakpoint, begin=address, end=address
            )
            self._stale_code = True

    def _on_breakpoint(self, uc: Any, address: int, _size: int, _data: Any) -> None:
        if address == self._resume_at:
            self._resume_at = None
            return
        self._hit_breakpoint = True
        uc.emu_stop()

    # --- watched accesses -------------------------------------------------------------------------------------

    def watch_accesses(
        self,
        name: str,
        reads: list[tuple[int, int]],
        writes: list[tuple[int, int]],
        handle: Callable[[int, int, bool], None],
    ) -> None:
        """Call ``handle(address, size, is_write)`` before each load or store in these ranges (both ends included);
        empty lists end the watch of this name.

        Any watch sends all accesses through unicorn's slower way: 107 instead of 147 M instructions/s, measured.
        """

        def on_access(_uc: Any, kind: int, address: int, size: int, _value: int, _data: Any) -> None:
            handle(address, size, kind == self._unicorn.UC_MEM_WRITE)
            self._leave_it_block()

        kinds = ((self._unicorn.UC_HOOK_MEM_READ, reads), (self._unicorn.UC_HOOK_MEM_WRITE, writes))
        self._watch(name, [(kind, *ends) for kind, ranges in kinds for ends in ranges], on_access)

    def watch_fetches(self, ranges: list[tuple[int, int]], denied: Callable[[int, int], int | None]) -> None:
        """Before an instruction in these ranges (both ends included) of which ``denied(address, size)`` names a byte,
        the slice ends with `Stop.FETCH_DENIED`.

        Only blocks that may reach into the ranges are looked at, so that all others cost nothing. A hook for single
        instructions would cost 145 → 86 M instructions/s, wherever it is: unicorn then counts in a slower way.
        """

        def on_block(uc: Any, address: int, size: int, _data: Any) -> None:
            byte = None if self._walking else denied(address, size)
            if byte is not None:
                at = address + start_of_instruction(bytes(uc.mem_read(address, size)), byte - address)
                self._halt_before(at, Stop.FETCH_DENIED, lambda: denied(byte, 1) is not None)

        # A block may begin anywhere in the page before the first byte of a range.
        blocks = [(max(0, (first & ~0xFFF) - 2), last) for first, last in ranges]
        self._watch("fetch", [(self._unicorn.UC_HOOK_BLOCK, *ends) for ends in blocks], on_block)

    def _watch(self, name: str, wanted: list[tuple[int, int, int]], callback: Hook) -> None:
        """Hooks of (kind, first, last) instead of those that this watch had."""
        former = self._watches.pop(name, [])
        for hook in former:
            self.uc.hook_del(hook)
        self._watches[name] = [self.uc.hook_add(kind, callback, begin=begin, end=end) for kind, begin, end in wanted]
        self._stale_code = self._stale_code or bool(former or wanted)

    # --- watched divisions ------------------------------------------------------------------------------------

    def watch_divisions(self, addresses: frozenset[int]) -> None:
        """Slices end before the instructions at these addresses, and those of them that are divisions are carried out
        here: one by zero is a `Stop.DIVISION_BY_ZERO`. All others cost nothing."""
        self._divisions = addresses
        self.uc.ctl_exits_enabled(bool(addresses))
        if addresses:
            self.uc.ctl_set_exits(list(addresses))
        self._stale_code = True

    def _is_before_division(self, error: int | None) -> bool:
        if error is not None or self._interrupt or self._hit_breakpoint or self._target is not None:
            return False
        return self.pc in self._divisions

    def _divide(self, pc: int) -> tuple[Stop | None, int]:
        """The division at ``pc``, in place of unicorn, which knows no trap."""
        division = read_division(bytes(self.uc.mem_read(pc, DIVISION_BYTES)))
        if division is None:  # other code has been written there
            self.watch_divisions(self._divisions - {pc})
            return None, 0
        first, xpsr = self.arm.UC_ARM_REG_R0, self.read(self.arm.UC_ARM_REG_XPSR)
        if condition_holds(xpsr):
            divisor = self.read(first + division.divisor)
            if not divisor:
                return Stop.DIVISION_BY_ZERO, 0
            dividend = self.read(first + division.dividend)
            self.write(first + division.quotient, quotient(dividend, divisor, is_signed=division.is_signed))
        self.write(self.arm.UC_ARM_REG_PC, pc + DIVISION_BYTES | 1)
        self.write(self.arm.UC_ARM_REG_EPSR, after_one_more(xpsr))
        return None, 1

    # --- the FPU's switch -------------------------------------------------------------------------------------

    def guard_fpu(self, on: bool) -> None:
        """While on, the first floating-point instruction ends the slice with `Stop.COPROCESSOR`, unexecuted.

        unicorn's FPU cannot be switched off. Blocks are looked through before they run; the guard is on only
        between a reset and the write to CPACR, so that running firmware pays nothing for it.
        """
        if on == (self._fpu_guard is not None):
            return
        if on:
            self._fpu_guard = self.uc.hook_add(self._unicorn.UC_HOOK_BLOCK, self._on_block)
        else:
            self.uc.hook_del(self._fpu_guard)
            self._fpu_guard = None
        self._stale_code = True

    def _on_block(self, uc: Any, address: int, size: int, _data: Any) -> None:
        if self._walking or self._fpu_guard is None or (address, size) in self._fpu_clean:
            return
        found = first_fpu_instruction(bytes(uc.mem_read(address, size)))
        if found is None:
            self._fpu_clean.add((address, size))
            return
        self._halt_before(address + found, Stop.COPROCESSOR, lambda: self._fpu_guard is not None)

    # --- ends within a block ----------------------------------------------------------------------------------

    def _halt_before(self, address: int, stop: Stop, still: Callable[[], bool]) -> None:
        """From a block's hook: end the slice before the instruction at ``address``."""
        if self._target is None or address < self._target[0]:
            self._target = (address, stop, still)
        self.uc.emu_stop()

    def _walk(self, target: int, stop: Stop, still: Callable[[], bool]) -> Stop:
        """Execute what stands before the instruction in its block."""
        self._walking = True
        try:
            if self.pc != target:
                # Translated anew, or the block would run through: unicorn ends a block at ``until`` only then.
                self.uc.ctl_remove_cache(self.pc, target + 4)
                if self._divisions:  # they are where unicorn ends, in place of ``until``
                    self.uc.ctl_set_exits([*self._divisions, target])
                self.uc.emu_start(self.pc | 1, target, 0, 512)
        except self._unicorn.UcError:
            return Stop.DATA_FAULT if self.fault_address is not None else Stop.UNDEFINED
        finally:
            self._walking = False
            if self._divisions:
                self.uc.ctl_set_exits(list(self._divisions))
        # The code before it may have switched the FPU on, or the MPU off.
        return stop if self.pc == target and still() else Stop.COUNT


def start_of_instruction(code: bytes, offset: int) -> int:
    """Where the instruction begins that the byte at ``offset`` belongs to, in a straight run of Thumb code."""
    start = end = 0
    while end <= offset:
        start = end
        end += 4 if code[start + 1] >> 3 in (0b11101, 0b11110, 0b11111) else 2
    return start


def first_fpu_instruction(code: bytes) -> int | None:
    """Offset of the first instruction for coprocessors 10 and 11 in a straight run of Thumb code.

    ARMv7-M ARM A5.3.18: hw1 = 111x 11xx …, coprocessor number in hw2[11:8].
    """
    offset = 0
    while offset + 2 <= len(code):
        first = int.from_bytes(code[offset : offset + 2], "little")
        if first >> 11 not in (0b11101, 0b11110, 0b11111):
            offset += 2
            continue
        second = int.from_bytes(code[offset + 2 : offset + 4], "little")
        if first & 0xEC00 == 0xEC00 and (second >> 8) & 0xF in (10, 11):
            return offset
        offset += 4
    return None


def _import_unicorn() -> Any:
    try:
        import unicorn
    except ImportError as exc:
        raise MissingDependencyError(
            "the digital twin needs the unicorn emulator, which is not installed",
            remedy='install the extra: pip install "tflm-harness[sim]"',
            code="environment.unicorn",
        ) from exc
    return unicorn
