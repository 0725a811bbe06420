"""Transcripts: written beside a link, replayed in its place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.deadline import Deadline
from harness.device.bench import Bench
from harness.device.client import Device, UnsupportedError
from harness.errors import LinkError, UsageError
from harness.link.transcript import Passage, ReplayedLink, TranscribedLink, read_transcript
from harness.probe.protocol import FlashImage
from harness.trial import Outcome
from harness.wire.frame import Frame, FrameReader
from harness.wire.input_plan import InputPlan
from harness.wire.messages import NUMBERS, HelloRequest
from tests.device.fakes import QUICK, FakeDevice, FakeLink, FakeProbe, nonces
from tests.patience import PATIENCE_S, patient


def record_session(path: Path) -> int:
    device = FakeDevice()
    device.boot()
    link = TranscribedLink(FakeLink(device), path)
    client = Device(link, nonces=nonces(7), policy=QUICK)
    client.hello(patient())
    report = client.trial(2048, patient())
    link.close()
    return report.output_digest


def test_a_session_replays_to_the_same_answers(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    digest = record_session(path)
    client = Device(ReplayedLink(read_transcript(path)), nonces=nonces(7), policy=QUICK)
    assert client.hello(patient()).board == "fake"
    assert client.trial(2048, patient()).output_digest == digest


def test_a_replay_refuses_another_request(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    record_session(path)
    client = Device(ReplayedLink(read_transcript(path)), nonces=nonces(7), policy=QUICK)
    client.hello(patient())
    with pytest.raises(LinkError, match="the transcript goes on with"):
        client.trial(2049, patient())


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


#: A sweep of examples/hello.tflite on the host board, written by protocol 1.0 and never changed.
HOST_SESSION = Path(__file__).parent / "host-session-1.0.jsonl"


def session_nonces(passages: list[Passage]) -> Iterator[int]:
    """The nonces that the host chose, in order: those of its hellos."""
    reader = FrameReader()
    for passage in passages:
        for piece in reader.feed(passage.data) if passage.direction == "out" else ():
            if isinstance(piece, Frame) and piece.type == NUMBERS[HelloRequest]:
                yield piece.nonce


class NoProbe(FakeProbe):
    """A transcript cannot be reset: its next passage is the boot."""

    def reset(self, deadline: Deadline) -> None:
        pass


def test_a_sweep_on_real_tflm_replays_to_the_same_minimum() -> None:
    """Protocol 1.0 stays readable: what a device said then still gives the same trials."""
    passages = read_transcript(HOST_SESSION)
    device = Device(ReplayedLink(passages), nonces=session_nonces(passages))
    hello = device.hello(patient())
    device.environment(patient())
    with pytest.raises(UnsupportedError):
        device.sizes(patient())
    image = FlashImage(build_id=hello.build_id.hex(), model_sha256=hello.model_sha256.hex())
    bench = Bench(NoProbe(FakeDevice()), device, image, InputPlan.seeded(1), trial_timeout_s=PATIENCE_S)
    ample = bench.run(18320, None, patient())
    assert (ample.trial.outcome, ample.trial.used_bytes) == (Outcome.WORKS, 1504)
    device.allocations(patient())
    assert ample.report is not None
    assert bench.run(1936, ample.report.output_digest, patient()).trial.outcome is Outcome.WORKS
    failed = bench.run(1920, ample.report.output_digest, patient()).trial
    assert (failed.outcome, failed.detail) == (Outcome.TOO_SMALL, "Too many buffers (max is 3)")


@pytest.mark.parametrize("name", [".", "file/below"])
def test_a_transcript_that_cannot_be_written_is_said_so(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot write the transcript") as caught:
        record_session(tmp_path / name)
    assert caught.value.code == "transcript.unwritable"


def test_a_full_disk_ends_the_transcript_with_a_sentence() -> None:
    with pytest.raises(UsageError, match="No space left on device"):
        record_session(Path("/dev/full"))
