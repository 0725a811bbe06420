"""Whether a probe is a twin's or on a board: records of the one must not pass for those of the other."""

from __future__ import annotations

import logging
from typing import Any

from harness.board.record import HardwareBoard
from harness.errors import UsageError

log = logging.getLogger(__name__)

#: What a twin's probe says of its maker.
TWIN_VENDOR = "Digital twin"


def refuse_other_kind(probe: Any, board: HardwareBoard, rig: str) -> None:
    """For an open probe. Raises UsageError where a twin was entered as a board, or a board as a twin."""
    try:
        is_twin = str(probe.vendor_name) == TWIN_VENDOR
    except Exception as exc:  # a server that does not tell; what it is then is not known
        log.info("%s: asking for the probe's maker: %s", rig, exc)
        return
    if is_twin and not board.is_simulated:
        raise UsageError(
            f"rig {rig}: its probe is that of a twin, not of a board",
            remedy=f"write board: sim:{board.base_name}, so that records tell instructions from cycles",
            code="rig.is_twin",
        )
    if board.is_simulated and not is_twin:
        raise UsageError(
            f"rig {rig}: its probe is on a board, not of a twin",
            remedy=f"write board: {board.base_name}",
            code="rig.is_board",
        )
