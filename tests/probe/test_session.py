"""How pyOCD is asked to open a probe: nothing is left to its defaults or to configuration files."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from harness.board.catalogue import list_boards, load_hardware_board
from harness.board.record import Family, HardwareBoard
from harness.errors import ProbeError
from harness.probe.protection import with_limits
from harness.probe.session import Rung, ladder, open_session, session_options
from harness.probe.targets import register_target
from tests.patience import patient

pytest.importorskip("pyocd", reason="the extra [pyocd] is not installed")
BOARD = load_hardware_board("nucleo-f746zg")


def test_the_options_never_unlock_and_never_trust_a_checksum() -> None:
    options = session_options(BOARD, Rung("halt", 4_000_000))
    assert options["auto_unlock"] is False
    assert options["fast_program"] is False
    assert options["no_config"] is True
    assert options["cache.enable_memory"] is False
    assert options["target_override"] == "stm32f746zgtx"
    assert options["project_dir"] == os.getcwd()  # noqa: PTH109 - pyOCD changes to it


def test_the_ladder_has_at_most_three_rungs_and_ends_slowly() -> None:
    assert ladder(BOARD) == (Rung("halt", 4_000_000), Rung("under-reset", 4_000_000), Rung("under-reset", 400_000))
    careful = msgspec.structs.replace(BOARD, pyocd=msgspec.structs.replace(BOARD.pyocd, connect="under-reset"))
    assert ladder(careful) == (Rung("under-reset", 4_000_000), Rung("under-reset", 400_000))


def test_the_generic_target_is_refused() -> None:
    generic = msgspec.structs.replace(BOARD, pyocd=msgspec.structs.replace(BOARD.pyocd, target="cortex_m"))
    with pytest.raises(ProbeError) as caught:
        open_session(generic, "any", "desk", patient())
    assert caught.value.code == "probe.generic_target"


def test_a_target_that_nobody_knows_is_refused_before_a_probe_is_touched() -> None:
    unknown = msgspec.structs.replace(
        BOARD, family=Family.NRF53, pyocd=msgspec.structs.replace(BOARD.pyocd, target="nosuchchip")
    )
    with pytest.raises(ProbeError) as caught:
        open_session(unknown, "any", "desk", patient())
    assert caught.value.code == "probe.unknown_target"
    assert "pack" in caught.value.remedy


def test_our_target_descriptions_have_the_sectors_of_the_board_files() -> None:
    from pyocd.target import TARGET

    for board in list_boards():
        if not isinstance(board, HardwareBoard) or board.is_simulated or board.family is Family.NRF53:
            continue
        if not register_target(board):
            continue
        target = TARGET[board.pyocd.target]
        assert target.VENDOR in ("STMicroelectronics", "Nordic Semiconductor")


def test_the_working_directory_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ProbeError):
        open_session(BOARD, "nothing-has-this-id", "desk", patient())
    assert Path.cwd() == tmp_path


def test_an_st_link_on_an_nrf_says_that_it_cannot_unlock() -> None:
    silent = ProbeError("no cores", remedy="check the wires", code="probe.no_target")
    nrf = load_hardware_board("nrf52840dk")
    assert "cannot tell or unlock" in with_limits(silent, nrf, "STM32 STLink").remedy
    assert with_limits(silent, nrf, "Segger J-Link") is silent
    assert with_limits(silent, BOARD, "STM32 STLink") is silent
    busy = ProbeError("in use", remedy="close it", code="probe.busy")
    assert with_limits(busy, nrf, "ST-Link/V2") is busy
