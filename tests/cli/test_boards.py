"""``harness boards``: the list, one board, the schema."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]


def boards(*args: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "harness", "boards", *args]
    env = {name: value for name, value in os.environ.items() if name != "COLUMNS"}  # tables follow it
    return subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE_S, env=env, check=False)


def test_json_lists_host_hardware_and_twins() -> None:
    done = boards("--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["schema"], found["schema_version"]) == (0, "harness.boards", 1)
    by_name = {board["name"]: (board["core"], board["kind"]) for board in found["boards"]}
    assert by_name["host"] == ("host", "host")
    assert by_name["nucleo-f746zg"] == ("cortex-m7", "hardware")
    assert by_name["sim:nucleo-f746zg"] == ("cortex-m7", "sim")
    assert {board["kind"] for board in found["boards"]} == {"host", "hardware", "sim"}


def test_every_board_file_of_the_catalogue_is_listed() -> None:
    listed = {board["name"] for board in json.loads(boards("--json").stdout)["boards"]}
    assert {path.stem for path in (ROOT / "boards").glob("*.yaml")} <= listed


def test_the_table_has_a_line_per_board() -> None:
    lines = boards().stdout.splitlines()
    assert lines[0].split() == ["board", "core", "kind", "evidence", "title"]
    assert any(line.startswith("nucleo-f746zg ") for line in lines)
    assert len(lines) == 1 + len(json.loads(boards("--json").stdout)["boards"])


def test_show_names_memories_and_sources() -> None:
    text = boards("--show", "nucleo-f746zg").stdout
    assert "ram at 0x20000000, 65,536 B (64.0 KiB)" in text
    assert "216 MHz from hse_bypass 8 MHz" in text
    assert "RM0385" in text


def test_show_as_json_is_the_whole_record() -> None:
    board = json.loads(boards("--show", "nucleo-f746zg", "--json").stdout)["board"]
    assert (board["clock"]["core_hz"], board["id_code"]["value"]) == (216_000_000, 0x449)


def test_the_host_can_be_shown() -> None:
    assert "core       host" in boards("--show", "host").stdout


@pytest.mark.parametrize("extra", [[], ["--json"]])
def test_an_unknown_board_ends_in_exit_code_5_and_names_the_nearest(extra: list[str]) -> None:
    done = boards("--show", "nucleo-f746", *extra)
    assert done.returncode == 5
    assert "nucleo-f746zg" in done.stderr
    if extra:
        assert json.loads(done.stdout)["error"]["code"] == "board.unknown"


def test_a_folder_of_ones_own_boards_is_listed_too(tmp_path: Path) -> None:
    text = (ROOT / "boards" / "nucleo-f746zg.yaml").read_text().replace("name: nucleo-f746zg", "name: mine", 1)
    (tmp_path / "mine.yaml").write_text(text)
    names = {board["name"] for board in json.loads(boards("--boards-dir", str(tmp_path), "--json").stdout)["boards"]}
    assert {"mine", "sim:mine", "nucleo-f746zg"} <= names


def test_a_folder_that_is_not_there_is_bad_usage(tmp_path: Path) -> None:
    assert boards("--boards-dir", str(tmp_path / "absent")).returncode == 2


def test_the_schema_knows_the_keys_of_a_board_file() -> None:
    schema = json.loads(boards("--schema").stdout)
    keys = schema["$defs"]["HardwareBoard"]["properties"]
    assert {"name", "core", "memories", "clock", "uart", "pyocd"} <= set(keys)


def test_schema_and_show_exclude_each_other() -> None:
    assert boards("--schema", "--show", "host").returncode == 2
