"""A twin's probe and a board's are told apart by what they say of their maker."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from harness.board.catalogue import load_hardware_board
from harness.errors import UsageError
from harness.probe.kind import TWIN_VENDOR, refuse_other_kind

BOARD, TWIN = load_hardware_board("nucleo-f446re"), load_hardware_board("sim:nucleo-f446re")


@dataclass
class Probe:
    vendor_name: str


class Silent:
    @property
    def vendor_name(self) -> str:
        raise ConnectionError("it closed the connection")


def test_each_kind_is_let_through_where_it_belongs() -> None:
    refuse_other_kind(Probe("STMicroelectronics"), BOARD, "desk")
    refuse_other_kind(Probe(TWIN_VENDOR), TWIN, "desk")
    refuse_other_kind(Silent(), BOARD, "desk")


def test_a_board_entered_as_a_twin_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        refuse_other_kind(Probe("STMicroelectronics"), TWIN, "desk")
    assert (caught.value.code, caught.value.remedy) == ("rig.is_board", "write board: nucleo-f446re")


def test_a_twin_entered_as_a_board_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        refuse_other_kind(Probe(TWIN_VENDOR), BOARD, "desk")
    assert caught.value.code == "rig.is_twin"
    assert "board: sim:nucleo-f446re" in caught.value.remedy
