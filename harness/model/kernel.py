"""What a kernel takes, written in a line, and held against the tensors of an operator.

The types of a kernel are rows ``inputs > outputs`` separated by ``|``; a word is a type or several (``i8/i4``), with
``?`` where the tensor may be left out or absent (-1), ``~`` where it may only be left out, and ``*`` for any number
more of the same; ``.`` is any type; ``T`` is one type for the whole row, out of the row's ``T=…`` where it says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from harness.model.graph import TensorType

_TYPES = {
    "f": TensorType.FLOAT32,
    "i4": TensorType.INT4,
    "i8": TensorType.INT8,
    "i16": TensorType.INT16,
    "i32": TensorType.INT32,
    "i64": TensorType.INT64,
    "u8": TensorType.UINT8,
    "u32": TensorType.UINT32,
    "u64": TensorType.UINT64,
    "b": TensorType.BOOL,
    "res": TensorType.RESOURCE,
}
#: RuntimeShape::kMaxSmallSize, tensorflow/lite/kernels/internal/runtime_shape.h.
MAX_RANK = 6


class Match(Enum):
    YES = "yes"
    COUNT = "count"  # too few, too many, or an absent one that the kernel needs
    TYPES = "types"


@dataclass(frozen=True, slots=True)
class Word:
    """One place of a row. ``types`` empty: any type. ``optional``: may be left out, ``absent``: may be -1.
    ``bound``: the row's one type."""

    types: frozenset[int]
    optional: bool = False
    absent: bool = False
    repeated: bool = False
    bound: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    inputs: tuple[Word, ...]
    outputs: tuple[Word, ...]
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """``input_ranks`` and ``output_ranks``: (place, least, most). ``quantized``: the places, inputs then outputs, whose
    scale an integer kernel divides by or multiplies with. ``constants``: inputs whose value Prepare needs.
    ``broadcast_rank``: the largest rank at which inputs of different shapes work, 0 where that is not looked at."""

    rows: tuple[Row, ...]
    input_ranks: tuple[tuple[int, int, int], ...] = ()
    output_ranks: tuple[tuple[int, int, int], ...] = ()
    quantized: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    constants: tuple[int, ...] = ()
    max_inputs: int = 0
    broadcast_rank: int = 0

    @property
    def text(self) -> str:
        return "; ".join(row.text for row in self.rows)


def _word(text: str) -> Word:
    optional, absent, repeated = text.endswith(("?", "~")), text.endswith("?"), text.endswith("*")
    text = text.rstrip("?~*")
    types = frozenset() if text in {".", "T"} else frozenset(int(_TYPES[name]) for name in text.split("/"))
    return Word(types, optional, absent, repeated, text == "T")


def _rows(spec: str) -> tuple[Row, ...]:
    rows: list[Row] = []
    for line in spec.split("|"):
        head, _, body = line.rpartition(":")
        for choice in head.strip().removeprefix("T=").split("/") if head else [""]:
            text = " ".join(choice + word[1:] if choice and word.startswith("T") else word for word in body.split())
            inputs, outputs = (side.split() for side in (text + " ").split(">"))
            rows.append(Row(tuple(map(_word, inputs)), tuple(map(_word, outputs)), _readable(text)))
    return tuple(rows)


def _readable(text: str) -> str:
    """``f f? > f`` → ``FLOAT32, FLOAT32? → FLOAT32``."""

    def name(word: str) -> str:
        core = word.rstrip("?~*")
        tail = word[len(core) :].replace("~", "?")
        names = {".": "any", "T": "the same"}
        return "/".join(names.get(part) or _TYPES[part].name for part in core.split("/")) + tail

    inputs, outputs = (", ".join(map(name, side.split())) or "nothing" for side in (text + " ").split(">"))
    return f"{inputs} → {outputs}"


def _ranks(spec: str) -> tuple[tuple[int, int, int], ...]:
    """``"0:4 1:2-5"`` → ((0, 4, 4), (1, 2, 5))."""
    ranks = []
    for word in spec.split():
        place, _, limits = word.partition(":")
        least, _, most = limits.partition("-")
        ranks.append((int(place), int(least), int(most or least)))
    return tuple(ranks)


def kernel(
    spec: str,
    ranks: str = "",
    output_ranks: str = "",
    quantized: str = "",
    constants: tuple[int, ...] = (),
    max_inputs: int = 0,
    broadcast_rank: int = 0,
) -> Kernel:
    places = [tuple(map(int, side.split())) for side in quantized.split(">")] if quantized else [(), ()]
    return Kernel(
        _rows(spec),
        _ranks(ranks),
        _ranks(output_ranks),
        (places[0], places[1]),
        constants,
        max_inputs,
        broadcast_rank,
    )


def unary(types: str) -> Kernel:
    return kernel(f"T={types}: T > T", quantized="0 > 0")


def binary(types: str, broadcast_rank: int) -> Kernel:
    return kernel(f"T={types}: T T > T", quantized="0 1 > 0", broadcast_rank=broadcast_rank)


def compare(types: str) -> Kernel:
    return kernel(f"T={types}: T T > b", quantized="0 1 > ", broadcast_rank=4)


def reduce(types: str) -> Kernel:
    return kernel(f"T={types}: T i32 > T", quantized="0 > 0")


@lru_cache(maxsize=4096)
def match_types(kernel: Kernel, inputs: tuple[int | None, ...], outputs: tuple[int | None, ...]) -> Match:
    """Whether a kernel takes these types; None stands for an absent tensor (index -1)."""
    best = Match.COUNT
    for row in kernel.rows:
        bound: list[int] = []
        found = _match_side(row.inputs, inputs, bound)
        if found is Match.YES:
            found = _match_side(row.outputs, outputs, bound)
        if found is Match.YES:
            return found
        if found is Match.TYPES:
            best = found
    return best


def _match_side(words: Sequence[Word], types: Sequence[int | None], bound: list[int]) -> Match:
    last = words[-1] if words else None
    if len(types) > len(words) and not (last is not None and last.repeated):
        return Match.COUNT
    result = Match.YES
    for place, word in enumerate(words):
        given: Sequence[int | None] = types[place:] if word.repeated else types[place : place + 1]
        if not given and not (word.optional or word.repeated):
            return Match.COUNT
        for kind in given:
            if kind is None:
                if not word.absent:
                    return Match.COUNT
            elif not _takes(word, kind, bound):
                result = Match.TYPES
    return result


def _takes(word: Word, kind: int, bound: list[int]) -> bool:
    if word.bound:
        if not bound:
            bound.append(kind)
        return kind == bound[0]
    return not word.types or kind in word.types
