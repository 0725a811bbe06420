"""Sizes as they are computed and read."""

from __future__ import annotations

import pytest

from harness.errors import UsageError
from harness.units import counted, parse_size, safe_lines, with_headroom


@pytest.mark.parametrize(
    ("size", "factor", "recommended"),
    [
        (16000, 1.1, 17600),  # 17600.000000000004 in floating point
        (1936, 1.1, 2144),
        (1936, 1.0, 1936),
        (1937, 1.0, 1952),
        (1, 1.5, 16),
        (2**30, 1.3, 1395864384),
    ],
)
def test_headroom_is_exact_and_ends_on_16(size: int, factor: float, recommended: int) -> None:
    assert with_headroom(size, factor) == recommended


@pytest.mark.parametrize(("text", "size"), [("64KiB", 65536), ("64 kB", 64000), ("0x100", 256), ("1.5 KiB", 1536)])
def test_a_size_with_its_unit(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "-1", "1 GiB", "1e3", "0x1 KiB B"])
def test_no_size(text: str) -> None:
    with pytest.raises(UsageError):
        parse_size(text)


def test_a_message_keeps_its_own_lines_and_nothing_else() -> None:
    assert safe_lines("does not fit:\n  arena  1\x1b[31m\n  has  2") == [
        "does not fit:",
        "  arena  1\\x1b[31m",
        "  has  2",
    ]


@pytest.mark.parametrize(("count", "text"), [(0, "0 flashes"), (1, "1 flash"), (1234, "1,234 flashes")])
def test_things_are_counted_in_words(count: int, text: str) -> None:
    assert counted(count, "flash", "flashes") == text
    assert counted(1, "row") == "1 row" and counted(2, "row") == "2 rows"
