"""Record files: whole or not at all, never overwritten, readable for ever."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import msgspec
import pytest

from harness.errors import UsageError
from harness.record.schema import ModelIdentity, SweepRecord
from harness.record.store import ResultsError, read_record, record_name, write_record

FIXTURES = Path(__file__).parent / "v1"


def record(path: str = "models/a b.tflite", **changes: object) -> SweepRecord:
    plain = SweepRecord(
        created="2026-01-02T03:04:05Z",
        harness_version="0.1.0",
        model=ModelIdentity(path, "ab" * 32, 100),
        board="sim:nucleo-f746zg",
        kernels="reference",
        status="ok",
    )
    return msgspec.structs.replace(plain, **changes)


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = write_record(record(), tmp_path)
    assert path.name == "20260102T030405Z-a_b-sim_nucleo-f746zg-reference.json"
    assert read_record(path) == record(record_path=path.as_posix())


def test_a_record_is_never_overwritten(tmp_path: Path) -> None:
    first = write_record(record(), tmp_path)
    second = write_record(record(status="failed"), tmp_path)
    assert first != second
    assert read_record(first).status == "ok"
    assert read_record(second).status == "failed"


def test_nothing_but_the_record_is_left(tmp_path: Path) -> None:
    write_record(record(), tmp_path)
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("path", ["../../evil\x00\n.tflite", "Модель.tflite", ".tflite", "x" * 300 + ".tflite"])
def test_any_model_name_gives_a_plain_file_name(tmp_path: Path, path: str) -> None:
    written = write_record(record(path), tmp_path)
    assert written.parent == tmp_path
    assert len(written.name) < 130
    assert read_record(written).model.path == path


def test_a_folder_that_cannot_be_written_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultsError, match="cannot write") as error:
        write_record(record(), tmp_path / "file" / "results")
    assert error.value.exit_code == 3


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.json")), ids=lambda path: path.name)
def test_version_1_records_stay_readable(path: Path) -> None:
    """These files were written by version 1 and are never changed."""
    read = read_record(path)
    assert read.schema_version == 1
    raw = json.loads(path.read_text())
    assert read.model.sha256 == raw["model"]["sha256"]
    if raw["search"]:
        assert read.search is not None
        assert read.search.min_bytes == raw["search"]["min_bytes"]
        assert [trial.arena_bytes for trial in read.search.trials] == [
            t["arena_bytes"] for t in raw["search"]["trials"]
        ]


def test_there_are_version_1_fixtures() -> None:
    assert len(list(FIXTURES.glob("*.json"))) >= 3


def test_a_later_version_is_refused_with_both_numbers(tmp_path: Path) -> None:
    path = write_record(record(), tmp_path)
    later = json.loads(path.read_text()) | {"schema_version": 2}
    path.write_text(json.dumps(later))
    with pytest.raises(UsageError, match="record of version 2; this harness reads version 1"):
        read_record(path)


def test_a_field_of_a_later_minor_change_is_ignored(tmp_path: Path) -> None:
    path = write_record(record(), tmp_path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"added_later": {"x": 1}}))
    assert read_record(path).status == "ok"


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"schema": "harness.plan"}', '{"schema":"harness.record","schema_version":1}']
)
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(UsageError):
        read_record(path)


@pytest.mark.parametrize("board", ["../../up", "no\x1b[31m/\nx", "sim:nucleo-f746zg", "\udcff", ""])
def test_any_board_name_gives_a_plain_file_name_in_the_folder(board: str) -> None:
    name = record_name(record(board=board))
    assert re.fullmatch(r"[A-Za-z0-9._-]+", name)
    assert ".." not in name


def test_a_folder_whose_name_is_no_text_takes_records(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"r\xff")
    path = write_record(record(), folder)
    assert path.parent == folder
    assert read_record(path).record_path == f"{tmp_path}/r\ufffd/{path.name}"
