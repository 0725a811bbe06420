"""The catalogue of boards: strict files, numbers that agree, twins that follow from the hardware."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.board.catalogue import (
    BoardFileError,
    UnknownBoardError,
    board_schema,
    list_boards,
    load_board,
    load_hardware_board,
    read_board,
)
from harness.board.record import Fpu, HardwareBoard, UartDriver
from harness.errors import ExitCode, HarnessError
from harness.paths import boards_dir

CATALOGUE = [
    "nrf52840dk",
    "nrf52dk",
    "nrf5340dk",
    "nucleo-f401re",
    "nucleo-f446re",
    "nucleo-f746zg",
    "nucleo-f767zi",
    "nucleo-h743zi",
    "nucleo-l476rg",
    "nucleo-l4r5zi",
    "stm32f429i-disc1",
    "stm32f746g-disco",
]


def test_the_catalogue_has_the_host_and_twelve_boards_and_their_twins() -> None:
    boards = list_boards()
    assert boards[0].name == "host"
    assert boards[0].core == "host"
    assert boards[0].abi == "lp64"
    assert [board.name for board in boards if board.kind == "hardware"] == CATALOGUE
    twins = {board.name for board in boards if board.kind == "sim"}
    assert {"sim:nucleo-f746zg", "sim:nucleo-f446re", "sim:nucleo-l476rg", "sim:nrf52840dk"} <= twins
    assert "sim:nrf5340dk" not in twins


def test_the_f746_is_what_its_reference_manual_says() -> None:
    board = load_hardware_board("nucleo-f746zg")
    assert board.core == "cortex-m7"
    assert board.fpu is Fpu.SINGLE
    assert {m.name: (m.address, m.size_bytes) for m in board.memories} == {
        "flash": (0x08000000, 1024 * 1024),
        "itcm": (0, 16 * 1024),
        "dtcm": (0x20000000, 64 * 1024),
        "sram1": (0x20010000, 240 * 1024),
        "sram2": (0x2004C000, 16 * 1024),
    }
    assert board.region("dtcm+sram1+sram2").end == 0x20050000
    assert board.clock.core_hz == 216_000_000
    assert board.tflm_archs == ("cortex-m4+fp",)
    assert board.id_code.value == 0x449
    assert not board.memory("dtcm").cached
    assert board.memory("sram1").cached


def test_the_l4r5_speaks_over_lpuart1_behind_vddio2() -> None:
    uart = load_hardware_board("nucleo-l4r5zi").uart
    assert uart.driver is UartDriver.STM32_LPUART
    assert uart.needs_vddio2


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_block_of_numbers_names_its_source(name: str) -> None:
    board = load_hardware_board(name)
    for block in [*board.memories, board.flash_sectors, board.clock, board.caches, board.uart, board.id_code]:
        assert any(word in block.source for word in ("RM0", "UM", "PS v", "PM0", "DS", "hardware guide")), block


def test_a_twin_has_the_numbers_of_its_board() -> None:
    board, twin = load_board("nucleo-f446re"), load_board("sim:nucleo-f446re")
    assert isinstance(board, HardwareBoard) and isinstance(twin, HardwareBoard)
    assert twin.memories == board.memories
    assert (twin.name, twin.kind, twin.base_name) == ("sim:nucleo-f446re", "sim", "nucleo-f446re")


def test_an_unknown_board_names_the_near_ones() -> None:
    with pytest.raises(UnknownBoardError) as caught:
        load_board("nucleo-f746")
    assert "nucleo-f746zg" in caught.value.message
    assert caught.value.exit_code == ExitCode.PROBE


def test_a_board_of_an_unmodelled_family_has_no_twin() -> None:
    with pytest.raises(UnknownBoardError, match="there is no twin"):
        load_board("sim:nrf5340dk")


def test_the_host_has_no_firmware() -> None:
    with pytest.raises(HarnessError, match="has no firmware"):
        load_hardware_board("host")


def edited(tmp_path: Path, old: str, new: str, base: str = "nucleo-f746zg") -> Path:
    text = (boards_dir() / f"{base}.yaml").read_text()
    assert old in text
    path = tmp_path / f"{base}.yaml"
    path.write_text(text.replace(old, new, 1))
    return path


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("size_bytes: 1048576", "size_bytes: 1024k", "memories"),
        ("fpu: single", "fpu: sp", "fpu"),
        ("fpu: single\n", "", "fpu"),
        ("fpu: single", "fpu: single\ncolour: red", "colour"),
        ("fpu: single", "fpu: single\nfpu: double", "stands twice"),
        ("core: cortex-m7", "core: cortex-m4\nfpu_: 1", "fpu_"),
        ("n: 216", "n: 215", "215000000"),
        ("address: 0x20010000", "address: 0x2000F000", "overlap"),
        ("address: 0x20010000", "address: 0x20010020", "overlap"),
        ("{count: 3, size_bytes: 262144}", "{count: 2, size_bytes: 262144}", "add up to"),
        ("arena: [sram1,", "arena: [sdram,", "no memory is called sdram"),
        ("arena: [sram1,", "arena: [flash,", "not RAM"),
        ("stack: sram2", "stack: sdram", "layout.stack"),
        ("clock_hz: 54000000", "clock_hz: 27000000", "APB1"),
        ("kind: hardware", "kind: sim", "derived"),
    ],
)
def test_a_wrong_board_file_is_refused_with_file_and_key(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = edited(tmp_path, old, new)
    with pytest.raises(BoardFileError) as caught:
        read_board(path)
    assert str(path) in caught.value.message
    assert said in caught.value.message
    assert caught.value.exit_code == ExitCode.USAGE


def test_a_users_folder_adds_boards_and_wins(tmp_path: Path) -> None:
    own = tmp_path / "my-board.yaml"
    own.write_text((boards_dir() / "nucleo-f446re.yaml").read_text().replace("name: nucleo-f446re", "name: my-board"))
    assert load_board("my-board", [tmp_path]).title == "ST NUCLEO-F446RE"
    assert load_board("sim:my-board", [tmp_path]).kind == "sim"
    with pytest.raises(HarnessError, match="no folder"):
        list_boards([tmp_path / "absent"])


def test_the_schema_for_editors_names_the_keys() -> None:
    schema = board_schema()
    properties = schema["$defs"]["HardwareBoard"]["properties"]
    assert {"memories", "clock", "uart", "fpu", "tflm_archs"} <= set(properties)
