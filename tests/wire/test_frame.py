"""Frames: what arrives whole is taken, everything else is noise."""

from __future__ import annotations

import contextlib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import LinkError
from harness.wire.fields import MAX_PAYLOAD_BYTES, PayloadError
from harness.wire.frame import MAX_STUFFED_BYTES, Frame, FrameReader, Noise, decode_frame, encode_frame
from harness.wire.messages import (
    MESSAGES,
    Hello,
    HelloRequest,
    RefusalReason,
    Refused,
    TrialReport,
    TrialRequest,
    boot_line,
    from_frame,
    to_frame,
)
from tests.examples import examples
from tests.wire.samples import sample_of


def test_the_bytes_of_a_trial_request_are_as_documented() -> None:
    frame = to_frame(TrialRequest(arena_bytes=0x00012345), nonce=0xAABBCCDD, sequence=0x0102)
    # nonce, sequence, type, arena_bytes, invoke, crc, all little-endian, before stuffing
    assert frame.payload == bytes.fromhex("4523010001")
    encoded = encode_frame(frame)
    assert encoded[0] == encoded[-1] == 0
    assert 0 not in encoded[1:-1]
    assert encoded[2:9] == bytes.fromhex("ddccbbaa020106")


def test_the_largest_frame_fits_a_buffer_of_256_bytes() -> None:
    encoded = encode_frame(Frame(0xFFFFFFFF, 0xFFFF, 0x8B, b"\xff" * MAX_PAYLOAD_BYTES))
    assert len(encoded) == 251
    assert MAX_STUFFED_BYTES == 249


def test_a_longer_payload_is_refused() -> None:
    with pytest.raises(PayloadError, match="238 bytes; a frame takes 237"):
        encode_frame(Frame(1, 1, 1, b"x" * 238))


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**16 - 1), st.integers(0, 255), st.binary(max_size=MAX_PAYLOAD_BYTES))
def test_every_frame_comes_back(nonce: int, sequence: int, number: int, payload: bytes) -> None:
    frame = Frame(nonce, sequence, number, payload)
    assert list(FrameReader().feed(encode_frame(frame))) == [frame]


@given(st.lists(st.integers(1, 40), min_size=1))
def test_frames_are_found_however_the_stream_is_cut(cuts: list[int]) -> None:
    frames = [
        to_frame(HelloRequest(), 7, 1),
        to_frame(TrialRequest(4096), 7, 2),
        to_frame(Refused(RefusalReason(0)), 7, 3),
    ]
    stream = b"".join(encode_frame(frame) for frame in frames)
    reader, found, at, turn = FrameReader(), [], 0, 0
    while at < len(stream):
        size = cuts[turn % len(cuts)]
        found += reader.feed(stream[at : at + size])
        at, turn = at + size, turn + 1
    assert found == frames


def test_boot_text_before_a_frame_is_text_and_the_frame_is_found() -> None:
    frame = to_frame(HelloRequest(), 1, 1)
    found = list(FrameReader().feed(b"\xff\xfe\x00" + boot_line("host", bytes(16)) + encode_frame(frame)))
    assert found[0] == Noise(b"\xff\xfe", "shorter than a frame") or isinstance(found[0], Noise)
    assert isinstance(found[1], Noise)
    assert found[1].is_text
    assert found[1].text == "tflm-harness 1.2 board=host build=00000000000000000000000000000000"
    assert found[2] == frame


def test_a_stream_without_zero_bytes_is_held_to_one_frame() -> None:
    reader = FrameReader()
    noise = [piece for _ in range(100) for piece in reader.feed(b"\x55" * 1000)]
    assert all(isinstance(piece, Noise) for piece in noise)
    assert len(reader.pending) <= MAX_STUFFED_BYTES
    frame = to_frame(HelloRequest(), 3, 3)
    assert list(reader.feed(encode_frame(frame)))[-1] == frame


@pytest.mark.parametrize("number", sorted(MESSAGES))
def test_every_message_comes_back(number: int) -> None:
    record = sample_of(MESSAGES[number], random.Random(number))
    assert from_frame(to_frame(record, 5, 6)) == record


def test_a_later_minor_version_may_append_fields() -> None:
    record = Refused(RefusalReason.UNSUPPORTED, detail="no profiler")
    frame = to_frame(record, 1, 1)
    assert from_frame(Frame(1, 1, frame.type, frame.payload + b"later fields")) == record


def test_fields_that_came_later_may_be_missing() -> None:
    assert from_frame(Frame(1, 1, 0xFF, b"\x01")) == Refused(RefusalReason.NO_SESSION)


def test_an_unknown_enumeration_value_reads_as_unknown() -> None:
    refused = from_frame(Frame(1, 1, 0xFF, b"\x77\x01\x09"))
    assert refused.reason is RefusalReason.UNKNOWN
    assert (refused.major, refused.minor) == (1, 9)


def test_a_cut_payload_is_an_error_of_the_link() -> None:
    frame = to_frame(sample_of(TrialReport, random.Random(1)), 1, 1)
    with pytest.raises(PayloadError, match="the payload ends inside detail: 119 of 120 bytes"):
        from_frame(Frame(1, 1, frame.type, frame.payload[:-1]))


def test_an_announced_count_beyond_the_limit_is_an_error_of_the_link() -> None:
    with pytest.raises(PayloadError, match="225 bytes announced where at most 224 fit"):
        from_frame(Frame(1, 1, 0x90, bytes([225]) + bytes(225)))


def test_an_unknown_message_type_is_an_error_of_the_link() -> None:
    with pytest.raises(LinkError, match=r"0x7d is not known to protocol 1\.2"):
        from_frame(Frame(1, 1, 0x7D, b""))


@given(st.binary(max_size=600))
@examples(300)
def test_any_bytes_are_frames_or_noise_and_nothing_else(data: bytes) -> None:
    for piece in FrameReader().feed(data):
        if isinstance(piece, Frame):
            with contextlib.suppress(LinkError):
                from_frame(piece)


@given(st.sampled_from(sorted(MESSAGES)), st.binary(max_size=MAX_PAYLOAD_BYTES))
@examples(500)
def test_any_payload_is_a_message_or_an_error_of_the_link(number: int, payload: bytes) -> None:
    """A device with a bug may send a well-formed frame with any payload."""
    try:
        record = from_frame(Frame(1, 1, number, payload))
    except LinkError:
        return
    assert type(record) is MESSAGES[number]


def test_hello_tells_its_capabilities() -> None:
    hello = sample_of(Hello, random.Random(3))
    from harness.wire.messages import Capability

    assert hello.can(Capability.PROFILE) == bool(hello.capabilities & 2)


#: ≥ 1,000,000 in all: damage of one frame, in the ways a line damages.
MUTATIONS = 1_000_000


def _mutate(data: bytearray, rng: random.Random) -> None:
    """One to four faults of a line: flipped bits, lost, doubled, swapped and foreign bytes, a cut, a lost delimiter."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 4))):
        size = len(data)
        if size == 0:
            return
        kind = rng.random()
        at = int(rng.random() * size)
        if kind < 0.45:
            data[at] ^= 1 << int(rng.random() * 8)
        elif kind < 0.60:
            data[at] = int(rng.random() * 256)
        elif kind < 0.72:
            del data[at]
        elif kind < 0.84:
            data.insert(at, data[at])
        elif kind < 0.92 and at:
            data[at - 1], data[at] = data[at], data[at - 1]
        elif kind < 0.96:
            del data[at:]
        else:
            data.insert(at, int(rng.random() * 256))


def test_a_million_damaged_frames_give_no_other_message() -> None:
    """Nothing that arrives damaged is ever taken for a result. Seeded: the same million each time."""
    rng = random.Random(20260101)
    originals = []
    for number in sorted(MESSAGES):
        for _ in range(4):
            frame = to_frame(sample_of(MESSAGES[number], rng), rng.getrandbits(32), rng.getrandbits(16))
            originals.append((frame, encode_frame(frame)))
    accepted_damage = 0
    for turn in range(MUTATIONS):
        frame, encoded = originals[turn % len(originals)]
        data = bytearray(encoded)
        _mutate(data, rng)
        for piece in data.split(b"\0"):
            if piece:
                found = decode_frame(bytes(piece))
                if isinstance(found, Frame) and found != frame:
                    accepted_damage += 1
    assert accepted_damage == 0
