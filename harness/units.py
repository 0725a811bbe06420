"""Sizes, times and foreign names as text, and back."""

from __future__ import annotations

import math
import re
import unicodedata
from fractions import Fraction

from harness.errors import UsageError

_SIZE = re.compile(r"^\s*(\d+(?:\.\d+)?|0[xX][0-9a-fA-F]+)\s*(B|KiB|MiB|KB|kB|MB)?\s*$")
_FACTOR = {None: 1, "B": 1, "KiB": 1024, "MiB": 1024 * 1024, "KB": 1000, "kB": 1000, "MB": 1000 * 1000}


def parse_size(text: str) -> int:
    """``"98304"``, ``"96KiB"``, ``"0x18000"`` → bytes. A bare ``96k`` is refused: it does not say which k."""
    match = _SIZE.match(text)
    if match is None:
        raise UsageError(f"{quoted(text)} is not a size", remedy="write bytes, or a number with KiB or MiB: 96KiB")
    number, unit = match.groups()
    value = int(number, 16) if number[:2].lower() == "0x" else float(number) * _FACTOR[unit]
    if value != int(value):
        raise UsageError(f"{quoted(text)} is not a whole number of bytes", remedy="write whole bytes")
    return int(value)


def format_bytes(count: int) -> str:
    """``12936`` → ``"12,936"``: exact, for tables whose header says bytes."""
    return f"{count:,}"


def counted(count: int, noun: str, plural: str = "") -> str:
    """``1 flash``, ``1,234 rows``."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def format_size(count: int) -> str:
    """``12936`` → ``"12,936 B (12.6 KiB)"``: exact, with a human second form."""
    if abs(count) < 1024:
        return f"{count:,} B"
    if abs(count) < 1024 * 1024:
        return f"{count:,} B ({count / 1024:.1f} KiB)"
    return f"{count:,} B ({count / 1024 / 1024:.2f} MiB)"


def short_commit(commit: str) -> str:
    """Twelve digits of a commit, as a sentence names it."""
    return safe_text(commit[:12]) or "not known"


def safe_text(text: str, limit: int = 200) -> str:
    """A foreign name made fit to print on one line.

    Names from a model are hostile input: control characters, bidirectional overrides, newlines and lone
    surrogates are written as escapes, and the text is cut at ``limit`` characters. Markup is not touched here:
    tables take plain text, never markup.
    """
    pieces: list[str] = []
    length = 0
    for char in text:
        category = unicodedata.category(char)
        piece = char
        if char == "\\":
            piece = "\\\\"
        elif category in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}:
            code = ord(char)
            piece = f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
        length += len(piece)
        if length > limit:
            return "".join(pieces) + "…"
        pieces.append(piece)
    return "".join(pieces)


def safe_lines(text: str, limit: int = 2000) -> list[str]:
    """A message of ours that may have several lines, each fit to print: foreign names in it are escaped already."""
    lines = text.split("\n")
    return [safe_text(line, max(80, limit // len(lines))) for line in lines]


def quoted(text: str, limit: int = 200) -> str:
    """``safe_text`` in double quotes."""
    return '"' + safe_text(text, limit).replace('"', '\\"') + '"'


def align_up(value: int, alignment: int) -> int:
    return -(-value // alignment) * alignment


def with_headroom(size_bytes: int, factor: float) -> int:
    """``size_bytes`` × ``factor``, rounded up to a multiple of 16: an arena's size to write into a program."""
    exact = Fraction(str(factor)) * size_bytes  # 16000 × 1.1 is 17600, not a little more
    return align_up(math.ceil(exact), 16)


def align_down(value: int, alignment: int) -> int:
    return value // alignment * alignment
