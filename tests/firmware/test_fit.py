"""What does not fit is told before compiling where it can be, with a table and the size that would fit."""

from __future__ import annotations

import pytest

from harness.board.catalogue import load_hardware_board
from harness.errors import DoesNotFitError, ExitCode, UsageError
from harness.firmware.config import FirmwareConfig
from harness.firmware.layout import check_flash, default_capacity_bytes, plan_layout
from tests.firmware.conftest import Builder


def test_an_arena_of_400_kb_on_the_f746_is_refused_with_a_table() -> None:
    """A user's build ran for minutes and ended in "region RAM overflowed by 72568 bytes"."""
    with pytest.raises(DoesNotFitError) as caught:
        plan_layout(load_hardware_board("nucleo-f746zg"), FirmwareConfig(400_000))
    error = caught.value
    assert error.exit_code == ExitCode.RESULT_BAD
    for words in ("400,000", "stack and its guard", ".data + .bss", "dtcm+sram1+sram2 has", "327,680"):
        assert words in error.message
    assert "the largest arena that fits is 316,096 bytes, in dtcm+sram1+sram2" in error.remedy


def test_the_size_that_is_said_to_fit_fits(build_fake: Builder) -> None:
    for name in ("nucleo-f446re", "nrf52dk", "nucleo-f746zg"):
        board = load_hardware_board(name)
        capacity = default_capacity_bytes(board)
        image = build_fake(board, capacity_bytes=capacity)
        assert capacity <= image.largest_arena_bytes
        largest = build_fake(board, capacity_bytes=image.largest_arena_bytes)
        assert largest.capacity_bytes == image.largest_arena_bytes


def test_sixteen_bytes_more_than_the_largest_do_not_link_and_say_so(build_fake: Builder) -> None:
    image = build_fake("nrf52dk", capacity_bytes=16_384)
    with pytest.raises(DoesNotFitError) as caught:
        build_fake("nrf52dk", capacity_bytes=image.largest_arena_bytes + 32)
    assert caught.value.code == "fit.arena"


def test_a_model_larger_than_the_flash_is_refused_before_anything_is_rendered() -> None:
    with pytest.raises(DoesNotFitError, match=r"nrf52dk has 524,288 bytes of flash"):
        check_flash(load_hardware_board("nrf52dk"), 600_000)


@pytest.mark.parametrize("region", ["sdram", "flash", "dtcm+sram2", "itcm", ""])
def test_a_place_that_is_no_ram_of_the_board_is_refused(region: str) -> None:
    board = load_hardware_board("nucleo-f746zg")
    if region:
        with pytest.raises(UsageError):
            plan_layout(board, FirmwareConfig(1024, arena_region=region))
    else:
        assert plan_layout(board, FirmwareConfig(1024)).arena_place == "sram1"


@pytest.mark.parametrize("stack_bytes", [100, 1024, 8200])
def test_a_stack_that_cannot_be_guarded_is_refused(stack_bytes: int) -> None:
    with pytest.raises(UsageError, match="a stack of"):
        plan_layout(load_hardware_board("nrf52dk"), FirmwareConfig(1024, stack_bytes=stack_bytes))
