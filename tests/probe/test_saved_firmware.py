"""A saved firmware and its description: written, read, and refused with what is wrong of it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from harness.board.catalogue import load_hardware_board
from harness.cli.main import main
from harness.deadline import Deadline
from harness.errors import DiskFullError, ExitCode, UsageError
from harness.probe.pyocd_probe import PyOcdProbe
from harness.probe.saved_firmware import NotKeptError, SavedFirmware, load, save

KEPT = SavedFirmware("nucleo-f446re", "066BFF", 0x10006421, 0x0800_0000, b"somebody's bootloader")


def test_what_was_saved_is_loaded_again_by_either_name(tmp_path: Path) -> None:
    path = save(KEPT, tmp_path, "desk")
    assert load(path) == KEPT
    assert load(path.with_suffix(".json")) == KEPT
    described = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    assert described["schema"] == "harness.saved_firmware"
    assert (described["chip_id"], described["address"], described["size_bytes"]) == ("0x10006421", 0x0800_0000, 21)


def test_the_same_contents_are_kept_once(tmp_path: Path) -> None:
    assert save(KEPT, tmp_path, "desk") == save(KEPT, tmp_path, "desk")
    assert len(list(tmp_path.iterdir())) == 2


def test_a_full_disk_names_the_place_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """A results folder on a full disk ended in an error without a path, a half file and a description of nothing."""
    resource = pytest.importorskip("resource", reason="this system has no limit on the size of a file")
    large = dataclasses.replace(KEPT, data=bytes(100_000))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, before[1]))
    try:
        with pytest.raises(DiskFullError) as caught:
            save(large, tmp_path / "saved-firmware", "desk")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    told = caught.value
    assert told.message.startswith("rig desk: the firmware that is on the board (100,000 bytes) cannot be kept in ")
    assert str(tmp_path / "saved-firmware" / "nucleo-f446re-") in told.message
    assert told.message.endswith("nothing was written to the board")
    assert "--results" in told.remedy
    assert "--no-save" in told.remedy
    assert list((tmp_path / "saved-firmware").iterdir()) == []
    assert save(large, tmp_path / "saved-firmware", "desk").is_file()


def test_a_folder_that_cannot_be_made_is_told_as_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("a file")
    with pytest.raises(NotKeptError, match="nothing was written to the board") as caught:
        save(KEPT, tmp_path / "results" / "saved-firmware", "desk")
    assert (caught.value.code, caught.value.exit_code) == ("results.unwritable", ExitCode.ENVIRONMENT)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ([], "Expected `object`, got `array`"),
        (7, "Expected `object`, got `int`"),
        ({"address": -5}, "Expected `int` >= 0 - at `$.address`"),
        ({"address": 1 << 40}, "Expected `int` <= 4294967295 - at `$.address`"),
        ({"address": "134217728"}, "Expected `int`, got `str` - at `$.address`"),
        ({"address": True}, "Expected `int`, got `bool` - at `$.address`"),
        ({"board": None}, "Expected `str`, got `null` - at `$.board`"),
        ({"chip_id": "stm32"}, "matching regex '^0x[0-9a-f]{1,8}"),
        ({"sha256": "abc"}, "- at `$.sha256`"),
        ({"schema": "harness.sweep"}, "Invalid enum value 'harness.sweep' - at `$.schema`"),
        ({"schema_version": 2}, "Invalid enum value 2 - at `$.schema_version`"),
        ({"extra": 1}, "unknown field `extra`"),
    ],
)
def test_a_wrong_description_is_bad_usage_and_says_what_is_wrong(
    tmp_path: Path, change: Any, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = save(KEPT, tmp_path, "desk").with_suffix(".json")
    good = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(good | change if isinstance(change, dict) else change), encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        load(path)
    assert said in caught.value.message
    assert caught.value.code == "flash.not_saved"
    assert main(["flash", "--board", "nucleo-f446re", "--restore", str(path)]) == ExitCode.USAGE
    assert "Error:" not in capsys.readouterr().err.removeprefix("error:"), "no name of a Python exception"


@pytest.mark.parametrize("text", [b"", b"{", b"\xff\xfe", b"[" * 5000, b'{"board": "\xc3"}'])
def test_what_is_no_json_is_bad_usage(tmp_path: Path, text: bytes) -> None:
    path = save(KEPT, tmp_path, "desk").with_suffix(".json")
    path.write_bytes(text)
    with pytest.raises(UsageError, match="is no saved firmware"):
        load(path)


@pytest.mark.parametrize("data", [b"", b"somebody's bootloade", b"Somebody's bootloader"])
def test_other_bytes_than_were_saved_are_damaged(tmp_path: Path, data: bytes) -> None:
    path = save(KEPT, tmp_path, "desk")
    path.write_bytes(data)
    with pytest.raises(UsageError, match="is damaged") as caught:
        load(path)
    assert f"it has {len(data)} bytes" in caught.value.message


def test_one_of_another_address_is_refused_before_a_probe_is_opened() -> None:
    board = load_hardware_board("nucleo-f446re")
    moved = SavedFirmware(board.name, "066BFF", 0x10006421, 0x0801_0000, bytes(board.flash.size_bytes))
    with pytest.raises(UsageError, match="is of 0x08010000, the flash of STM32F446RE begins at 0x08000000"):
        PyOcdProbe(board, "not plugged in", rig="desk").restore(moved, Deadline.after(10))
