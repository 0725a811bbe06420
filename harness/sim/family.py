"""Which families of chips have a twin."""

from __future__ import annotations

from harness.board.record import Family, HardwareBoard
from harness.errors import UsageError
from harness.sim.chip import CORES, Chip
from harness.sim.nrf52_chip import build_nrf52
from harness.sim.stm32_chip import build_stm32
from harness.sim.wire import Wire


def build_chip(board: HardwareBoard, wire: Wire) -> Chip:
    """Raises UsageError for a family that the twin does not model."""
    builders = {
        Family.STM32F4: build_stm32,
        Family.STM32F7: build_stm32,
        Family.STM32L4: build_stm32,
        Family.NRF52: build_nrf52,
    }
    if board.family not in builders or board.core not in CORES:
        raise UsageError(
            f"there is no twin for {board.chip} ({board.family.value}, {board.core})",
            remedy=f"modelled families: {', '.join(sorted(f.value for f in builders))}",
        )
    return builders[board.family](board, wire)
