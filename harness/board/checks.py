"""What a board file's numbers must agree on among themselves."""

from __future__ import annotations

from itertools import pairwise

from harness.board.record import Board, Fpu, HardwareBoard, UartDriver

#: Which FPUs a core can have. Arm: Cortex-M4/M33 TRM (single only), Cortex-M7 TRM (FPv5 single or double).
FPUS: dict[str, frozenset[Fpu]] = {
    "cortex-m0": frozenset({Fpu.NONE}),
    "cortex-m0plus": frozenset({Fpu.NONE}),
    "cortex-m3": frozenset({Fpu.NONE}),
    "cortex-m4": frozenset({Fpu.NONE, Fpu.SINGLE}),
    "cortex-m7": frozenset(Fpu),
    "cortex-m33": frozenset({Fpu.NONE, Fpu.SINGLE}),
}


def check_board(board: Board) -> None:
    """Raises ValueError that names the key."""
    if not isinstance(board, HardwareBoard):
        if board.core != "host":
            raise ValueError("core: the host board's core is host")
        return
    if board.core not in FPUS:
        raise ValueError(f"core: {board.core} is not one of {', '.join(sorted(FPUS))}")
    if board.fpu not in FPUS[board.core]:
        raise ValueError(f"fpu: {board.core} has no {board.fpu.value}-precision FPU")
    _check_memories(board)
    _check_layout(board)
    _check_clock(board)
    _check_uart(board)


def _check_memories(board: HardwareBoard) -> None:
    names = [memory.name for memory in board.memories]
    if len(set(names)) != len(names):
        raise ValueError("memories: two have the same name")
    if "flash" not in names:
        raise ValueError("memories: one must be called flash")
    ordered = sorted(board.memories, key=lambda memory: memory.address)
    for low, high in pairwise(ordered):
        if low.end > high.address:
            raise ValueError(f"memories: {low.name} and {high.name} overlap")
    if board.flash_sectors.total_bytes != board.flash.size_bytes:
        raise ValueError(
            f"flash_sectors: they add up to {board.flash_sectors.total_bytes} bytes, "
            f"the flash has {board.flash.size_bytes}"
        )


def _check_layout(board: HardwareBoard) -> None:
    for key, value in [("data", board.layout.data), ("stack", board.layout.stack)]:
        if value not in {memory.name for memory in board.rams}:
            raise ValueError(f"layout.{key}: {value} is no RAM of this board")
    if not board.layout.arena:
        raise ValueError("layout.arena: name at least one memory")
    for place in board.layout.arena:
        try:
            region = board.region(place)
        except KeyError as exc:
            raise ValueError(f"layout.arena: no memory is called {exc.args[0]}") from exc
        except ValueError as exc:
            raise ValueError(f"layout.arena: {place}: {exc}") from exc
        if region.kind != "ram":
            raise ValueError(f"layout.arena: {place} is not RAM")


def _check_clock(board: HardwareBoard) -> None:
    clock = board.clock
    if clock.pll is None:
        if clock.input != "internal" and clock.input_hz != clock.core_hz:
            raise ValueError("clock.core_hz: without a pll it is input_hz")
        return
    made = clock.input_hz * clock.pll.n
    if made != clock.core_hz * clock.pll.m * clock.pll.p:
        raise ValueError(
            f"clock.pll: {clock.input_hz} / {clock.pll.m} × {clock.pll.n} / {clock.pll.p} is "
            f"{made / clock.pll.m / clock.pll.p:.0f} Hz, not {clock.core_hz}"
        )


def _check_uart(board: HardwareBoard) -> None:
    uart = board.uart
    if uart.driver is UartDriver.NRF_UARTE:
        return
    if uart.enable_register is None or uart.enable_bit is None:
        raise ValueError("uart.enable_register, uart.enable_bit: needed on an STM32")
    if uart.tx.alternate_function is None or uart.rx.alternate_function is None:
        raise ValueError("uart.tx.alternate_function, uart.rx.alternate_function: needed on an STM32")
    clock = board.clock
    if uart.clock_hz not in {clock.bus_hz // clock.apb1_divider, clock.bus_hz // clock.apb2_divider}:
        raise ValueError(f"uart.clock_hz: {uart.clock_hz} is neither the APB1 nor the APB2 clock")
