"""Target descriptions for chips that pyOCD does not have built in: its flash algorithms, the board file's sectors.

pyOCD 0.46.0 names STM32F746ZGTx and others in its board table, but knows their flash only with a CMSIS-Pack. The chips
of one family share a flash controller, so that the algorithm of a built-in relative programs them; the sectors and the
RAM come from the board file.
"""

from __future__ import annotations

from typing import Any

from harness.board.catalogue import list_boards
from harness.board.record import Family, HardwareBoard

#: Families → the module and class of a built-in relative with the same flash controller.
_RELATIVES = {
    Family.STM32F7: ("target_STM32F767xx", "STM32F767xx"),
    Family.STM32F4: ("target_STM32F412xx", "STM32F412xE"),
    Family.STM32L4: ("target_STM32L475xx", "STM32L475xG"),
    Family.STM32H7: ("target_STM32H743xx", "STM32H743xx"),
}
_DBGMCU_CR = 0xE004_2004


def register_target(board: HardwareBoard) -> bool:
    """Make pyOCD know ``board.pyocd.target``. False when it does not, and no relative is built in."""
    from pyocd.target import TARGET

    name = board.pyocd.target.lower()
    if name in TARGET:
        return True
    if board.family not in _RELATIVES or board.family is Family.STM32H7:
        return False
    TARGET[name] = _target_class(board)
    return True


def register_all() -> None:
    """Every board of the catalogue; for tools that know nothing of harness (``pyocd flash``)."""
    for board in list_boards():
        if isinstance(board, HardwareBoard) and board.kind == "hardware":
            register_target(board)


def _target_class(board: HardwareBoard) -> type[Any]:
    import importlib

    from pyocd.core.memory_map import FlashRegion, MemoryMap, RamRegion

    module_name, class_name = _RELATIVES[board.family]
    module = importlib.import_module(f"pyocd.target.builtin.{module_name}")
    relative = getattr(module, class_name)
    regions: list[Any] = []
    start = board.flash.address
    for run in board.flash_sectors.runs:
        length = run.count * run.size_bytes
        regions.append(
            FlashRegion(
                start=start,
                length=length,
                sector_size=run.size_bytes,
                page_size=_page_size(relative),
                is_boot_memory=start == board.flash.address,
                algo=module.FLASH_ALGO,
            )
        )
        start += length
    regions += [RamRegion(start=memory.address, length=memory.size_bytes) for memory in board.rams]

    def __init__(self: Any, session: Any) -> None:
        # Past the relative's own __init__, which would bring its memory map.
        super(relative, self).__init__(session, MemoryMap(*regions))

    def post_connect_hook(self: Any) -> None:
        # Debug in low-power modes; the relative's hook also reads option bits that this chip does not have.
        self.write32(_DBGMCU_CR, 7)

    members = {"__init__": __init__, "post_connect_hook": post_connect_hook}
    return type(board.pyocd.target.upper(), (relative,), members)


def _page_size(relative: type[Any]) -> int:
    return int(next(iter(relative.MEMORY_MAP)).page_size)
