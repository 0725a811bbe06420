"""Does an arena fit into one contiguous region of memory?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.units import format_size


@dataclass(frozen=True, slots=True)
class Place:
    """A contiguous region. ``reserved_bytes`` of it are taken already, by what ``reserved_for`` says."""

    name: str
    size_bytes: int
    reserved_bytes: int = 0
    reserved_for: str = ""

    @property
    def free_bytes(self) -> int:
        return max(0, self.size_bytes - self.reserved_bytes)


@dataclass(frozen=True, slots=True)
class Fit:
    """``place`` is the first one, in order of preference, that holds ``needed_bytes``; None when there is none."""

    needed_bytes: int
    places: tuple[Place, ...]
    place: Place | None

    @property
    def fits(self) -> bool:
        return self.place is not None

    @property
    def text(self) -> str:
        need = format_size(self.needed_bytes)
        if self.place is not None:
            left = self.place.free_bytes - self.needed_bytes
            return (
                f"fits: {need} into {self.place.name} ({format_size(self.place.free_bytes)} free), {left:,} B are left"
            )
        largest = max(self.places, key=lambda place: place.free_bytes, default=None)
        if largest is None:
            return f"does not fit: {need}, and the board has no place for an arena"
        short = self.needed_bytes - largest.free_bytes
        return (
            f"does not fit: {need} in one contiguous region; the largest, {largest.name}, has "
            f"{format_size(largest.free_bytes)} free: {short:,} B short"
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "fits": self.fits,
            "needed_bytes": self.needed_bytes,
            "place": self.place.name if self.place else None,
            "places": [
                {
                    "name": place.name,
                    "size_bytes": place.size_bytes,
                    "reserved_bytes": place.reserved_bytes,
                    "reserved_for": place.reserved_for,
                    "free_bytes": place.free_bytes,
                }
                for place in self.places
            ],
        }


def fit(needed_bytes: int, places: Sequence[Place]) -> Fit:
    """Look for the first place that holds ``needed_bytes``."""
    return Fit(needed_bytes, tuple(places), next((p for p in places if p.free_bytes >= needed_bytes), None))
