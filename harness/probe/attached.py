"""Which debug probes are attached, as pyOCD lists them. Opens none; never prompts."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from harness.probe.session import import_pyocd
from harness.probe.trouble import Place, translate

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AttachedProbe:
    """``board_name`` and ``target`` are what pyOCD's board table says of an on-board probe; "" for nothing."""

    uid: str
    description: str
    board_name: str
    target: str

    @property
    def title(self) -> str:
        return f"{self.uid} ({self.board_name or self.description})"


def attached_probes() -> tuple[AttachedProbe, ...]:
    """Every probe that pyOCD sees. Raises ProbeError when looking itself fails (permission, a driver)."""
    helper = import_pyocd()
    try:
        found = helper.get_all_connected_probes(blocking=False, print_wait_message=False)
        return tuple(sorted((_describe(probe) for probe in found), key=lambda probe: probe.uid))
    except Exception as exc:  # pyOCD's USB back ends raise many types
        raise translate(exc, Place("(none yet)", "listing the probes")) from exc


def _describe(probe: object) -> AttachedProbe:
    info = getattr(probe, "associated_board_info", None)
    return AttachedProbe(
        uid=str(probe.unique_id),  # type: ignore[attr-defined]
        description=str(probe.description),  # type: ignore[attr-defined]
        board_name=str(info.name) if info and info.name else "",
        target=str(info.target) if info and info.target else "",
    )
