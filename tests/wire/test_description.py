"""The description that other languages are rendered from."""

from __future__ import annotations

from harness.wire.description import FieldDescription, describe
from harness.wire.fields import MAX_PAYLOAD_BYTES


def test_every_message_fits_a_frame() -> None:
    for record in describe().messages:
        assert record.max_bytes <= MAX_PAYLOAD_BYTES, record.name


def test_numbers_are_unique_and_answers_are_the_request_plus_0x80() -> None:
    numbers = [record.number for record in describe().messages]
    assert len(set(numbers)) == len(numbers)
    for record in describe().messages:
        assert record.number is not None
        if record.number < 0x80:
            assert record.number + 0x80 in numbers, record.name


def test_the_trial_request_is_described_for_c() -> None:
    (record,) = [record for record in describe().messages if record.name == "TrialRequest"]
    assert record.number == 6
    assert record.fields == (
        FieldDescription("arena_bytes", "scalar", "uint32_t", 1),
        FieldDescription("invoke", "scalar", "uint8_t", 1),
    )


def test_rows_and_enumerations_are_described() -> None:
    protocol = describe()
    assert {row.name for row in protocol.rows} == {"SizeRow", "ProfileRow", "AllocationRow", "TensorDigestRow"}
    stages = next(enum for enum in protocol.enums if enum.name == "Stage")
    assert ("INVOKE", 5) in stages.values
    assert all(dict(enum.values)["UNKNOWN"] == 255 for enum in protocol.enums)
