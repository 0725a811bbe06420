"""``--vary KEY=VALUE,VALUE``: the same models under every combination of choices."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from harness.errors import UsageError
from harness.units import quoted

if TYPE_CHECKING:
    from harness.sweep.request import SweepRequest

#: What can be varied → the values, None where the board decides.
KEYS: dict[str, tuple[str, ...] | None] = {
    "kernels": ("reference", "cmsis_nn"),
    "interpreter": ("plain", "recording", "preserve_all"),
    "arena-region": None,
    "optimise": ("Os", "O2", "O3"),
    "cache": ("on", "off"),
}

#: One combination: (key, value) in the order of the options.
Variant = tuple[tuple[str, str], ...]


def parse_variants(texts: tuple[str, ...]) -> list[Variant]:
    """All combinations; one empty one when nothing is varied. Raises UsageError for what cannot be varied."""
    axes: dict[str, list[str]] = {}
    for text in texts:
        key, _, values = text.partition("=")
        if key not in KEYS or not values:
            raise UsageError(
                f"--vary {quoted(text)} is not KEY=VALUE,VALUE",
                remedy=f"the keys are {', '.join(KEYS)}: --vary kernels=reference,cmsis_nn",
            )
        if key in axes:
            raise UsageError(f"--vary {key} is given twice", remedy=f"give its values at once: --vary {key}=A,B")
        axes[key] = list(dict.fromkeys(values.split(",")))
        allowed = KEYS[key]
        unknown = [value for value in axes[key] if not value or (allowed is not None and value not in allowed)]
        if unknown:
            raise UsageError(
                f"--vary {key}: {quoted(','.join(unknown))} is no value of it",
                remedy=f"the values are {', '.join(allowed)}" if allowed else "name memories of the board: dtcm,sram1",
            )
    return [tuple(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def require_said_once(variants: Iterable[Variant], given: Collection[str]) -> None:
    """Raises UsageError where a key that is varied stands in an option of its own too; ``given`` are the options' names
    as parameters."""
    twice = {key for variant in variants for key, _ in variant if key.replace("-", "_") in given}
    if twice:
        key = min(twice)
        raise UsageError(f"--{key} is given, and --vary {key} too", remedy=f"leave one of them away: --vary {key}=A,B")


def varied(request: SweepRequest, variant: Variant) -> SweepRequest:
    """The request with the choices of a variant."""
    choices = dict(variant)
    build = request.build
    return replace(
        request,
        kernels=choices.get("kernels", request.kernels),
        interpreter=choices.get("interpreter", request.interpreter),
        build=replace(
            build,
            arena_region=choices.get("arena-region", build.arena_region),
            optimise=choices.get("optimise", build.optimise),
            caches=choices["cache"] == "on" if "cache" in choices else build.caches,
        ),
        variant=variant,
    )
