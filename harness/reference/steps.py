"""What a reference is asked to run: one inference after another."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """One inference: the bytes of each input, and whether the model's state is as new before it."""

    inputs: tuple[bytes, ...]
    reset: bool = True
