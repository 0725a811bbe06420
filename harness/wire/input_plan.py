"""Where a device's inputs come from, as the messages that say so."""

from __future__ import annotations

from dataclasses import dataclass

from harness.wire.messages import ALL_INPUTS, InputKind, SetInput


@dataclass(frozen=True, slots=True)
class InputPlan:
    """``settings`` are sent after each boot, ``staged`` (input index, bytes) are uploaded after each boot."""

    settings: tuple[SetInput, ...]
    staged: tuple[tuple[int, bytes], ...] = ()

    @classmethod
    def seeded(cls, seed: int) -> InputPlan:
        return cls((SetInput(ALL_INPUTS, InputKind.SEED, seed),))
