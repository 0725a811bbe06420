"""The firmware prints no floating-point numbers: newlib-nano's printf has none, and TFLM's own rounds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TEMPLATES = Path(__file__).resolve().parents[2] / "firmware_templates"
SOURCES = sorted(path for path in TEMPLATES.rglob("*") if path.suffix in {".cc", ".h", ".j2", ".c"})
_FLOAT_FORMAT = re.compile(r"\"[^\"\n]*%[-+ #0]*\d*(?:\.\d+)?l?[aefgAEFG]\b")


def test_the_pattern_finds_what_it_is_for() -> None:
    assert _FLOAT_FORMAT.search('MicroPrintf("took %.3f ms", t);')
    assert not _FLOAT_FORMAT.search('MicroPrintf("took %u cycles", t);')


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_a_template_formats_no_floating_point_number(path: Path) -> None:
    assert not _FLOAT_FORMAT.search(path.read_text(encoding="utf-8"))


def test_there_are_templates_to_look_through() -> None:
    assert len(SOURCES) > 10
