"""docs/protocol.md says what the description says."""

from __future__ import annotations

import importlib.util
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "docs" / "regenerate_protocol.py"


def test_the_page_is_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("regenerate_protocol", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PAGE.read_text(encoding="utf-8") == module.render(), "run python docs/regenerate_protocol.py"
