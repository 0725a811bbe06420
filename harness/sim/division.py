"""SDIV and UDIV, for CCR.DIV_0_TRP: where they stand in memory, and what they do.

Source: DDI 0403E, A7.7.127 (SDIV) and A7.7.195 (UDIV), encoding T1; A7.3 and B1.4.2 (IT blocks, EPSR's IT bits).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

#: Any place, as another match may begin within one.
_DIVISION = re.compile(rb"(?=[\x90-\x9f\xb0-\xbf]\xfb[\xf0-\xff]{2})", re.DOTALL)
DIVISION_BYTES = 4
_IT_MASK = 0x0600_FC00


@dataclass(frozen=True, slots=True)
class Division:
    """Numbers of registers, and which of the two it is."""

    is_signed: bool
    quotient: int
    dividend: int
    divisor: int


def find_divisions(code: bytes) -> Iterator[int]:
    """Offset of each in the code, and of what looks like one in its constants."""
    return (match.start() for match in _DIVISION.finditer(code) if match.start() % 2 == 0)


def read_division(code: bytes) -> Division | None:
    """None for another instruction."""
    if not _DIVISION.match(code[:DIVISION_BYTES]):
        return None
    return Division(code[0] >> 4 == 9, code[3] & 0xF, code[0] & 0xF, code[2] & 0xF)


def quotient(dividend: int, divisor: int, *, is_signed: bool) -> int:
    """Of two register values, rounded towards zero; the divisor is not 0."""
    if is_signed:
        dividend, divisor = _signed(dividend), _signed(divisor)
    size = abs(dividend) // abs(divisor)
    return (size if (dividend < 0) == (divisor < 0) else -size) & 0xFFFF_FFFF


def _signed(word: int) -> int:
    return word - (word >> 31 << 32)


def condition_holds(xpsr: int) -> bool:
    """Whether the next instruction is executed: always outside an IT block, in it where its condition is true."""
    state = _it_state(xpsr)
    if not state & 0xF or state >> 5 == 0b111:
        return True
    negative, zero, carry, overflow = (bool(xpsr >> bit & 1) for bit in (31, 30, 29, 28))
    same = negative == overflow
    truth = (zero, carry, negative, overflow, carry and not zero, same, same and not zero)[state >> 5]
    return truth != bool(state >> 4 & 1)


def after_one_more(xpsr: int) -> int:
    """The status register with the IT block gone on by one instruction."""
    state = _it_state(xpsr)
    state = state & 0xE0 | state << 1 & 0x1F if state & 7 else 0
    return xpsr & ~_IT_MASK | state >> 2 << 10 | (state & 3) << 25


def _it_state(xpsr: int) -> int:
    return (xpsr >> 10 & 0x3F) << 2 | xpsr >> 25 & 3
