"""Transcripts: written beside a link, replayed in its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.deadline import Deadline
from harness.device.client import Device
from harness.errors import LinkError, UsageError
from harness.link.transcript import ReplayedLink, TranscribedLink, read_transcript
from tests.device.fakes import QUICK, FakeDevice, FakeLink, nonces


def record_session(path: Path) -> int:
    device = FakeDevice()
    device.boot()
    link = TranscribedLink(FakeLink(device), path)
    client = Device(link, nonces=nonces(7), policy=QUICK)
    client.hello(Deadline.after(2))
    report = client.trial(2048, Deadline.after(2))
    link.close()
    return report.output_digest


def test_a_session_replays_to_the_same_answers(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    digest = record_session(path)
    client = Device(ReplayedLink(read_transcript(path)), nonces=nonces(7), policy=QUICK)
    assert client.hello(Deadline.after(2)).board == "fake"
    assert client.trial(2048, Deadline.after(2)).output_digest == digest


def test_a_replay_refuses_another_request(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    record_session(path)
    client = Device(ReplayedLink(read_transcript(path)), nonces=nonces(7), policy=QUICK)
    client.hello(Deadline.after(2))
    with pytest.raises(LinkError, match="the transcript goes on with"):
        client.trial(2049, Deadline.after(2))


def test_a_transcript_cut_short_by_a_kill_is_read_up_to_there(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    record_session(path)
    whole = read_transcript(path)
    path.write_bytes(path.read_bytes()[:-5])
    assert read_transcript(path) == whole[:-1]


@pytest.mark.parametrize("text", ["", "{}", "not json\n", '{"schema": "harness.record", "schema_version": 1}\n'])
def test_another_file_is_no_transcript(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(UsageError, match="not a transcript"):
        read_transcript(path)


def test_damage_in_the_middle_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    record_session(path)
    lines = path.read_text().splitlines(keepends=True)
    lines[2] = '{"t": 0, "dir": "sideways", "hex": ""}\n'
    path.write_text("".join(lines))
    with pytest.raises(UsageError, match="line 3 is not a passage"):
        read_transcript(path)
