"""Structure sizes: the known ABIs, and those that a board reports."""

from __future__ import annotations

import pytest

from harness.abi import ARENA_ALIGNMENT, Abi, abi_named, abi_reported
from harness.abi.layout import TFLM_COMMIT
from harness.errors import UsageError


def _reported(abi: Abi, *names: str) -> dict[str, int]:
    return {name: abi.size(name) for name in names}


def test_enums_are_one_byte_on_bare_metal_arm() -> None:
    sizes = [abi_named(name).size("TfLiteFullyConnectedParams") for name in ("ilp32", "ilp32_long_enums", "lp64")]
    assert sizes == [5, 16, 32]
    assert abi_named("ilp32").alignment("TfLiteFullyConnectedParams") == 1


def test_an_array_of_ints_has_a_length_word() -> None:
    assert abi_named("ilp32").int_array_bytes(4) == 20
    assert abi_named("lp64").int_array_bytes(0) == 4


def test_every_size_is_a_multiple_of_its_alignment_and_no_alignment_exceeds_the_arena_s() -> None:
    for name in ("ilp32", "ilp32_long_enums", "lp64"):
        for struct, layout in abi_named(name).structs.items():
            if struct != "kiss_fft_state":  # counted without its first twiddle
                assert layout.size_bytes % layout.alignment == 0, (name, struct)
            assert layout.alignment <= ARENA_ALIGNMENT, (name, struct)


def test_an_unknown_abi_names_the_known_ones() -> None:
    with pytest.raises(UsageError) as caught:
        abi_named("lp32")
    assert "ilp32 (Cortex-M), ilp32_long_enums and lp64 (host)" in caught.value.remedy


def test_a_board_that_reports_what_is_known_leaves_no_doubt() -> None:
    known = abi_named("ilp32")
    reported = abi_reported(_reported(known, "void*", "TfLiteType", "TfLiteTensor", "MicroAllocator"), TFLM_COMMIT)
    assert reported.doubts == ()
    assert reported.structs == known.structs


def test_another_commit_is_a_doubt() -> None:
    reported = abi_reported(_reported(abi_named("ilp32"), "void*", "TfLiteType"), "0123456789abcdef")
    assert "the board runs TFLM 0123456789ab" in reported.doubts[0]
    assert any("armclang" in doubt for doubt in reported.doubts)


def test_another_size_is_planned_with_and_is_a_doubt() -> None:
    reported = abi_reported({"void*": 4, "TfLiteType": 1, "TfLiteTensor": 36}, TFLM_COMMIT[:12])
    assert reported.size("TfLiteTensor") == 36
    assert reported.doubts[0] == "sizeof(TfLiteTensor) is 36 on the board, 32 here"


def test_four_byte_enums_choose_the_other_table() -> None:
    reported = abi_reported({"void*": 4, "TfLiteType": 4}, TFLM_COMMIT)
    assert reported.name == "ilp32_long_enums"
    assert reported.size("TfLiteFullyConnectedParams") == 16
    assert "4-byte enums" in reported.doubts[0]


def test_eight_byte_pointers_are_the_host() -> None:
    assert abi_reported({"void*": 8, "TfLiteType": 4}, "8f6596d").name == "lp64"
