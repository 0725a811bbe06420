"""Qualification of an emulated board with the stand-in TFLM: everything but the minima of real models."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from harness.board.catalogue import load_board
from harness.board.lab_file import RigEntry
from harness.board.record import Evidence
from harness.qualify.flow import qualify
from harness.qualify.record import (
    CheckRecord,
    QualificationRecord,
    evidence_for,
    read_qualifications,
    write_qualification,
)
from harness.sweep.request import SilentProgress, SweepRequest


@pytest.fixture
def stand_in(fake_library: Path) -> Iterator[None]:
    before = os.environ.get("HARNESS_TFLM")
    os.environ["HARNESS_TFLM"] = str(fake_library)
    yield
    if before is None:
        del os.environ["HARNESS_TFLM"]
    else:
        os.environ["HARNESS_TFLM"] = before


def qualified(tmp_path: Path, *faults: str) -> QualificationRecord:
    board = "sim:nucleo-f446re"
    request = SweepRequest(
        Path(), board, results=tmp_path, reference=False, rig=RigEntry(name="desk", board=board, faults=faults)
    )
    return qualify(request, SilentProgress(), rig="desk", link_bytes=3000)


def checks(record: QualificationRecord) -> dict[str, CheckRecord]:
    return {check.name: check for check in record.checks}


@pytest.mark.usefixtures("stand_in")
def test_a_twin_shows_chip_flash_link_counter_faults_watchdog_and_stack(tmp_path: Path) -> None:
    record = qualified(tmp_path)

    found = checks(record)
    for name in ("id_code", "flash", "link", "counter", "stack", "fault_record", "watchdog", "stack_guard"):
        assert found[name].status == "passed", found[name]
    assert found["id_code"].values["found"] == 0x421
    assert found["link"].values["bytes"] == 3000
    assert found["link"].values["lost"] == 0
    assert [found[name].values["kind"] for name in ("fault_record", "watchdog", "stack_guard")] == [
        "usage",
        "watchdog",
        "stack",
    ]
    assert found["minimum of hello_int8"].status == "not_applicable", "the stand-in is not that TFLM"
    assert not record.qualified, "numbers that were not looked at qualify nothing"
    assert record.evidence == "none"


@pytest.mark.usefixtures("stand_in")
def test_a_line_that_loses_bytes_is_not_qualified(tmp_path: Path) -> None:
    found = checks(qualified(tmp_path, "drop=900"))

    assert found["link"].status == "failed"
    assert found["link"].values["lost"] > 0


def test_a_qualification_raises_the_label_of_its_board(tmp_path: Path) -> None:
    board = msgspec.structs.replace(load_board("nucleo-f446re"), evidence=Evidence.NONE)
    record = QualificationRecord(
        created="2026-01-02T03:04:05Z",
        harness_version="1",
        board="sim:nucleo-f446re",
        rig="",
        kernels="cmsis_nn",
        qualified=True,
        evidence="twin",
        checks=(),
    )
    assert evidence_for(board, tmp_path) == (Evidence.NONE, None)

    twin = write_qualification(record, tmp_path)
    assert evidence_for(board, tmp_path) == (Evidence.TWIN, twin)

    failed = msgspec.structs.replace(record, board="nucleo-f446re", qualified=False, created="2026-01-02T03:04:06Z")
    write_qualification(failed, tmp_path)
    assert evidence_for(board, tmp_path) == (Evidence.TWIN, twin)

    real = write_qualification(msgspec.structs.replace(failed, qualified=True, kernels="reference"), tmp_path)
    assert evidence_for(board, tmp_path) == (Evidence.SILICON, real)
    assert len(read_qualifications(tmp_path)) == 3
