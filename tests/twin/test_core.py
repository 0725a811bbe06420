"""The emulated core: exceptions, faults, FPU switch, SysTick, DWT, stacks, resets, watchdogs, lock-up."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.sim.cortex_m import State
from harness.sim.engine import first_fpu_instruction
from tests.patience import patient

from .bare_metal import BOARDS

#: CFSR: NOCP bit 19, UNDEFINSTR bit 16, PRECISERR bit 9 with BFARVALID bit 15. HFSR: FORCED bit 30.
CORE_CHECKS = """\
fpu off cfsr=00080000
 hfsr=40000000
fpu sum x16=00000030
fpu on cfsr=00000000
undefined cfsr=00010000
 hfsr=40000000
undefined enabled cfsr=00010000
 hfsr=00000000
bus cfsr=00008200
 hfsr=00000000
bfar=90000000
svc=00000001
pendsv=00000001
order=0000007b
ticks=0000000a
masked=00000000
unmasked=00000001
dwt moved=00000001
svc on psp=00000002
done
"""


@pytest.mark.parametrize("board", BOARDS)
def test_the_core_does_what_the_architecture_says(board: str, run_firmware: Callable) -> None:
    twin, port = run_firmware("core", board)
    told = port.read_until(b"done\n").decode()
    assert told == CORE_CHECKS
    assert twin.failure is None


@pytest.mark.parametrize(
    ("board", "software", "watchdog"),
    [
        ("nucleo-f746zg", 0x14, 0x24),
        ("nucleo-f446re", 0x14, 0x24),
        ("nucleo-l476rg", 0x14, 0x24),
        ("nrf52840dk", 0x4, 0x2),
    ],
)
def test_a_reset_tells_its_cause(board: str, software: int, watchdog: int, run_firmware: Callable) -> None:
    """RCC_CSR bits 31..24: PINRST 26, SFTRST 28, IWDGRST 29. RESETREAS: DOG 1, SREQ 2."""
    _, port = run_firmware("misc", board)
    port.readline()
    port.write(b"r")
    assert port.readline() == f"reset={software:08x}\n".encode()
    port.write(b"w")
    assert port.readline() == f"reset={watchdog:08x}\n".encode()


@pytest.mark.parametrize("board", BOARDS)
def test_floating_point_registers_survive_an_interrupt_that_uses_them(board: str, run_firmware: Callable) -> None:
    _, port = run_firmware("misc", board)
    port.readline()
    port.write(b"f")
    assert port.readline() == b"s1=40000000\n"


@pytest.mark.parametrize("board", BOARDS)
def test_a_fault_whose_vector_faults_locks_the_core_up(board: str, run_firmware: Callable) -> None:
    twin, port = run_firmware("misc", board)
    port.readline()
    port.write(b"l")
    wait_for_state(twin, State.LOCKUP)
    twin.assert_reset(True)
    twin.assert_reset(False)
    assert port.readline().startswith(b"reset=")


def test_a_store_to_locked_flash_changes_nothing_and_is_noted_by_the_controller(run_firmware: Callable) -> None:
    twin, port = run_firmware("misc", "nucleo-f746zg")
    port.readline()
    port.write(b"s")
    assert port.readline() == b"stored\n"
    with twin.turn() as chip:
        assert chip.bus.read(0x0801_0000, 4) == b"\xff\xff\xff\xff"
        assert chip.controller.load(0x0C) & (1 << 7)  # ERSERR


def test_a_store_to_nrf_flash_faults_unless_the_controller_allows_it(run_firmware: Callable) -> None:
    twin, port = run_firmware("misc", "nrf52840dk")
    port.readline()
    port.write(b"s")
    deadline = patient()
    while not twin.chip.core.faults.cfsr and not deadline.passed:
        with twin.turn():
            pass
    assert twin.chip.core.faults.cfsr & (1 << 9)
    assert twin.chip.core.faults.bfar == 0x80000


def test_floating_point_instructions_are_found_in_mixed_code() -> None:
    nop, push_w, vadd, vldr = b"\x00\xbf", b"\x2d\xe9\xf0\x4f", b"\x30\xee\x00\x0a", b"\x90\xed\x00\x0a"
    assert first_fpu_instruction(nop + push_w + vadd) == 6
    assert first_fpu_instruction(vldr) == 0
    assert first_fpu_instruction(nop * 3 + push_w) is None


def wait_for_state(twin: object, state: State) -> None:
    deadline = patient()
    while twin.chip.core.state is not state and not deadline.passed:  # type: ignore[attr-defined]
        with twin.turn():  # type: ignore[attr-defined]
            pass
    assert twin.chip.core.state is state  # type: ignore[attr-defined]


def test_ram_holds_anything_when_power_comes_and_is_kept_over_a_reset(make_twin: Callable) -> None:
    twin = make_twin("nucleo-f746zg")
    with twin.turn() as chip:
        first = [bytes(ram.view) for ram in chip.rams]
        assert all(len(set(data)) == 256 for data in first)
        chip.rams[-1].view[100:104] = b"kept"
    twin.assert_reset(True)
    twin.assert_reset(False)
    with twin.turn() as chip:
        assert bytes(chip.rams[-1].view[100:104]) == b"kept"
    twin.brown_out()
    with twin.turn() as chip:
        assert [bytes(ram.view) for ram in chip.rams] == first
