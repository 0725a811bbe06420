"""The list of codes, in the code and in the documentation."""

from __future__ import annotations

import re
from pathlib import Path

from harness.model.codes import CODES, FILE_CODES, codes_markdown

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "harness" / "model"


def test_docs_checks_holds_the_table_as_the_code_writes_it() -> None:
    assert (ROOT / "docs" / "checks.md").read_text(encoding="utf-8").endswith(codes_markdown())


def test_every_code_that_the_code_gives_is_in_the_list_and_the_other_way_round() -> None:
    sources = [path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py") if path.name != "codes.py"]
    rooms = "|".join({code.split(".")[0] for code in {**CODES, **FILE_CODES}})
    given = {match for text in sources for match in re.findall(rf'"((?:{rooms})\.[a-z0-9_]*[a-z0-9])"', text)}
    given |= {f"index.graph_{end}" for end in ("input", "output")}
    given |= {f"index.operator_{end}" for end in ("input", "output", "intermediate")}
    # ModelIndexError's default, never given as such
    assert given - {"index.out_of_range"} == set(CODES) | set(FILE_CODES)


def test_each_refusal_says_what_to_do() -> None:
    assert [code for code, entry in CODES.items() if entry.severity.value != "info" and not entry.remedy] == []
