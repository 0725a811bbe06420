"""Firmware as it is rendered, but for one line: the twin finds what a chip would stumble over."""

from __future__ import annotations

import dataclasses
import importlib.util
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from harness.board.catalogue import load_hardware_board
from harness.firmware.elf import read_elf
from harness.firmware.image import FirmwareImage
from harness.firmware.library import TflmLibrary, choose_library
from harness.firmware.toolchain import compile_flags, find_toolchain, machine_flags
from harness.sim.cortex_m import State
from harness.wire import messages as wire
from tests.firmware.conftest import Builder
from tests.firmware.test_on_twin import Bench, soon
from tests.patience import patient

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("unicorn") is None, reason="the extra [sim] (unicorn) is not installed"
    ),
    pytest.mark.skipif(sys.platform == "win32", reason="a twin's serial port is a pseudo-terminal"),
]


def functions(object_path: Path) -> set[str]:
    with object_path.open("rb") as file:
        symbols = ELFFile(file).get_section_by_name(".symtab").iter_symbols()
        return {s.name for s in symbols if s["st_info"]["type"] == "STT_FUNC" and s["st_info"]["bind"] == "STB_GLOBAL"}


def rebuilt(image: FirmwareImage, library: TflmLibrary, source: str, pattern: str, instead: str) -> FirmwareImage:
    """The image with one place of one source replaced: that source compiled anew, everything linked again."""
    board, folder, tools = load_hardware_board(image.board), image.elf_path.parent, find_toolchain()
    text, count = re.subn(pattern, instead, (folder / "src" / source).read_text())
    assert count == 1, f"{source} has {count} times: {pattern}"
    edited, made, elf = folder / "src" / "defect.cc", folder / "defect.o", folder / "defect.elf"
    edited.write_text(text)
    machine = machine_flags(board, library)
    flags = compile_flags(machine, image.optimise, library.defines)
    tools.run(tools.compile_argv(edited, made, flags, (folder / "src",), library.include_dirs), soon(), cwd=folder)
    defined = functions(made)
    map_text = (folder / "firmware.map").read_text()
    objects = [Path(name) for name in re.findall(r"^LOAD (\S+\.o)$", map_text, re.MULTILINE)]
    kept = [path for path in objects if not defined & functions(path)]
    assert len(kept) == len(objects) - 1
    argv = tools.link_argv(
        [*kept, made], folder / "src" / "link.ld", library.archive, elf, folder / "d.map", (*machine, image.optimise)
    )
    tools.run(argv, soon(), cwd=folder / "src")
    return dataclasses.replace(image, elf_path=elf, segments=read_elf(elf).segments)


Start = Callable[..., Bench]


@pytest.fixture
def start(build_fake: Builder, fake_libraries: list[TflmLibrary]) -> Iterator[Start]:
    """A board's twin that has started the firmware with the defect."""
    opened: list[Bench] = []

    def begin(board: str, source: str, pattern: str, instead: str = "") -> Bench:
        image = build_fake(board)
        library = choose_library(fake_libraries, load_hardware_board(board), "cmsis_nn")
        bench = Bench(rebuilt(image, library, source, pattern, instead), board)
        opened.append(bench)
        bench.twin.assert_reset(True)
        bench.twin.assert_reset(False)
        return bench

    yield begin
    for bench in opened:
        bench.close()


def told(bench: Bench, what: Callable[[Bench], list[str]]) -> str:
    """The first that the twin says of this kind."""
    deadline = patient()
    while not what(bench) and not deadline.passed:
        bench.twin.run_until_stopped(0.1)
    assert what(bench), "the twin has found nothing"
    return what(bench)[0]


def complaints(bench: Bench) -> list[str]:
    return bench.twin.chip.bus.complaints


def violations(bench: Bench) -> list[str]:
    return bench.twin.chip.violations


NO_CLOCK, NO_PIN = "without a clock, by the instruction at 0x08", "a byte is sent, and the pin is not switched to it"
OFF = "a byte is sent, and the transmitter is off (UE, TE)"
NO_RATE = "a byte is sent, and the rate's divisor or its clock is missing"


@pytest.mark.parametrize(
    ("board", "pattern", "instead", "text"),
    [
        ("nucleo-f746zg", r"  reg\(kEnable\) = .*\n", "", f"USART3: 0x0 written to +0x000 {NO_CLOCK}"),
        ("nucleo-f446re", r"  reg\(kEnable\) = .*\n", "", f"USART2: 0x0 written to +0x00c {NO_CLOCK}"),
        ("nucleo-l476rg", r"  reg\(kEnable\) = .*\n", "", f"USART2: 0x0 written to +0x000 {NO_CLOCK}"),
        ("nucleo-f746zg", r"  reg\(kGpioEnable\) = .*\n", "", f"GPIOD: +0x024 read {NO_CLOCK}"),
        ("nucleo-l476rg", r"(?<=reg\(mode\) = ).*(?=;)", "reg(mode)", f"USART2: {NO_PIN}"),
        ("nucleo-f446re", r"\(function << shift\)", "(2 * function << shift)", f"USART2: {NO_PIN}"),
        ("nucleo-f746zg", r"  reg\(kDivisor\) = .*\n", "", f"USART3: {NO_RATE}"),
        (
            "nucleo-f446re",
            r"\(1u << 13\) \| \(1u << 3\)",
            "(1u << 13)",
            f"USART2: {OFF}",
        ),
        ("nrf52840dk", r"(?<=reg\(kEnable\) = )8(?=;)", "4", "UARTE0: task +0x000 started, and ENABLE is not 8"),
        ("nucleo-l4r5zi", r"\(1u << 9\)(?=;  // IOSV)", "0u", f"LPUART1: {NO_PIN}"),
        (
            "nrf52840dk",
            r"(?<=reg\(kPinTx\) = ).*(?=;)",
            "5",
            "UARTE0: a byte is sent, and PSEL.TXD does not name the pin",
        ),
    ],
)
def test_a_uart_that_is_not_set_up_sends_nothing(
    board: str, pattern: str, instead: str, text: str, start: Start
) -> None:
    bench = start(board, "uart.cc", pattern, instead)
    assert told(bench, complaints).startswith(text)
    assert bench.twin.wire.sent_bytes == 0


@pytest.mark.parametrize(
    ("board", "pattern", "instead", "text"),
    [
        (
            "nucleo-f746zg",
            r"const uint32_t acr = 7u",
            "const uint32_t acr = 6u",
            "flash at 216000000 Hz needs 7 wait states, 6",
        ),
        (
            "nucleo-l476rg",
            r"const uint32_t acr = 4u",
            "const uint32_t acr = 0u",
            "flash at 80000000 Hz needs 4 wait states, 0",
        ),
        (
            "nucleo-f746zg",
            r".*// ODSWEN\n",
            "",
            "the core clock is 216000000 Hz, the chip ends at 180000000 Hz with VOS = 3",
        ),
        (
            "nucleo-f446re",
            r"(?<=\| )\(3u << 14\)(?=;  // VOS)",
            "(2u << 14)",
            "the core clock is 180000000 Hz, the chip ends at 168",
        ),
        (
            "nucleo-l476rg",
            r"(?<=\| )\(1u << 9\)(?=;  // VOS)",
            "(2u << 9)",
            "the core clock is 80000000 Hz, the chip ends at 26",
        ),
        ("nucleo-f446re", r".*// PWREN\n", "", "the core clock is 180000000 Hz, the chip ends at 168000000 Hz"),
    ],
)
def test_a_core_clock_that_flash_or_voltage_do_not_allow_stops_the_core(
    board: str, pattern: str, instead: str, text: str, start: Start
) -> None:
    bench = start(board, "clock.cc", pattern, instead)
    assert told(bench, violations).startswith(text)
    assert bench.twin.chip.core.state is State.LOCKUP


@pytest.mark.parametrize(
    ("board", "source", "pattern", "text"),
    [
        ("nucleo-l476rg", "clock.cc", r".*// PWREN\n", r"PWR: \+0x000 read without a clock"),
        (
            "nrf52840dk",
            "clock.cc",
            r".*reg\(kTaskHfclkStart\) = .*\n",
            r"UARTE0: a byte is sent, and the crystal was not",
        ),
        ("nucleo-f746zg", "cycles.cc", r".*= 0xC5ACCE55;\n", r"DWT: \+0x004 written while LAR locks it"),
        ("nucleo-f446re", "cycles.cc", r".*// TRCENA\n", r"DWT: \+0x004 written without DEMCR.TRCENA"),
    ],
)
def test_what_a_board_might_get_away_with_is_told(
    board: str, source: str, pattern: str, text: str, start: Start
) -> None:
    bench = start(board, source, pattern)
    assert re.match(text, told(bench, complaints))
    assert bench.device.hello(soon()).board == board


def test_without_its_unlocked_cycle_counter_the_firmware_counts_with_systick(start: Start) -> None:
    bench = start("nucleo-f746zg", "cycles.cc", r".*= 0xC5ACCE55;\n")
    assert bench.device.hello(soon()).timing is wire.TimingKind.SYSTICK
