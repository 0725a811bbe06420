"""What TFLM's own error lines mean: several of them mislead."""

from __future__ import annotations

import re
from collections.abc import Callable

_BUFFERS = "the planner's own table does not fit in what is left of the arena: no limit of the model"
_HEAD = "the tensors that live in the head do not fit beside what is allocated already"
_TAIL = "a persistent allocation does not fit beside what is allocated already"


def _unsigned(match: re.Match[str]) -> str:
    return f"{match.group(1)} is {int(match.group(1)) - (1 << 32):,}, printed without its sign: head and tail have met"


#: Pattern → meaning; the first that fits is told. Texts of TFLM 90b983c: micro_allocator.cc,
#: single_arena_buffer_allocator.cc, greedy_memory_planner.cc.
_MEANINGS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"Too many buffers \(max is (\d+)\)"), lambda _match: _BUFFERS),
    (re.compile(r"\b(429496\d{4})\b"), _unsigned),
    (re.compile(r"Failed to resize buffer"), lambda _match: _HEAD),
    (re.compile(r"Failed to allocate (tail|temp) memory"), lambda _match: _TAIL),
)


def meaning_of(text: str) -> str:
    """What a line of TFLM's says to somebody who does not know its source; empty where there is nothing to add."""
    for pattern, meaning in _MEANINGS:
        match = pattern.search(text)
        if match:
            return meaning(match)
    return ""
