"""Registered TFLM libraries, as doctor sees them. Reading a real tree is the firmware room's test."""

from __future__ import annotations

import json
from pathlib import Path

from harness.environment.part import Status
from harness.environment.tflm_libraries import tflm_library_parts
from harness.firmware.registry import Registry


def test_none_registered_is_missing_and_names_the_command(tmp_path: Path) -> None:
    (part,) = tflm_library_parts(Registry(tmp_path / "tflm.json", {}))
    assert (part.status, part.required) == (Status.MISSING, False)
    assert part.remedy.startswith("harness tflm add DIR")


def test_a_folder_that_has_gone_is_told_and_none_is_left(tmp_path: Path) -> None:
    listed = tmp_path / "tflm.json"
    listed.write_text(json.dumps([{"folder": str(tmp_path / "gone")}]))
    missing, wrong = tflm_library_parts(Registry(listed, {}))
    assert missing.status is Status.MISSING
    assert (wrong.status, wrong.name) == (Status.WRONG, str(tmp_path / "gone"))
    assert wrong.detail


def test_an_unreadable_list_is_wrong(tmp_path: Path) -> None:
    listed = tmp_path / "tflm.json"
    listed.write_text("{")
    (part,) = tflm_library_parts(Registry(listed, {}))
    assert part.status is Status.WRONG
