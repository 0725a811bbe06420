"""Every board's firmware compiles and links with the fake TFLM, warnings being errors, and lies where it must."""

from __future__ import annotations

import pytest

from harness.board.catalogue import list_boards, load_hardware_board
from harness.board.record import Fpu, HardwareBoard
from harness.firmware.config import Transport
from harness.firmware.elf import elf_problems, read_elf
from harness.wire.messages import BOOT_LINE_PREFIX
from tests.firmware.conftest import Builder, small_model

HARDWARE = [board.name for board in list_boards() if isinstance(board, HardwareBoard) and board.kind == "hardware"]

#: Of the whole harness without TFLM, model and arena, on the F746.
FLASH_LIMIT_BYTES = 16 * 1024
RAM_LIMIT_BYTES = 6 * 1024


@pytest.mark.parametrize("transport", list(Transport), ids=lambda transport: transport.value)
@pytest.mark.parametrize("name", HARDWARE)
def test_the_firmware_links_and_passes_every_check(build_fake: Builder, name: str, transport: Transport) -> None:
    board = load_hardware_board(name)
    image = build_fake(board, transport=transport)
    facts = read_elf(image.elf_path)
    assert list(elf_problems(facts, board)) == []
    assert facts.attributes.vfp_args == 1
    assert facts.attributes.uses_double == (board.fpu is Fpu.DOUBLE)
    assert image.arena_address % 16 == 0
    region = board.region(image.arena_region)
    assert region.address <= image.arena_address
    assert image.arena_address + image.capacity_bytes <= region.end
    assert image.symbols["g_model"] % 16 == 0
    assert board.flash.address <= image.symbols["g_model"] < board.flash.end
    assert image.segments[0][0] == board.flash.address
    # beside the vectors: whoever replaces them replaces it
    assert BOOT_LINE_PREFIX.encode() in image.segments[0][1][:2048]
    assert ("_SEGGER_RTT" in image.symbols) == (transport is Transport.RTT)


def test_the_f746_has_its_stack_at_the_end_of_ram_and_its_arena_in_sram1(build_fake: Builder) -> None:
    """A chip database once said 384 KiB of RAM for the F746ZG: stack top 0x2005FFE0, bus fault at the first push."""
    image = build_fake("nucleo-f746zg", capacity_bytes=70_000)
    assert image.symbols["_estack"] == 0x20050000
    assert image.symbols["_estack"] - image.symbols["__stack_limit"] == 8192
    assert 0x20010000 <= image.arena_address < 0x2004C000
    assert image.arena_region == "sram1"
    vectors = dict(image.segments)[0x08000000]
    assert int.from_bytes(vectors[:4], "little") == 0x20050000
    assert int.from_bytes(vectors[4:8], "little") == image.symbols["Reset_Handler"]


def test_an_arena_larger_than_one_memory_spans_several_and_says_so(build_fake: Builder) -> None:
    image = build_fake("nucleo-f746zg", capacity_bytes=280_000)
    assert image.arena_region == "dtcm+sram1+sram2"
    assert any("several memories" in note for note in image.notes)


def test_the_arena_goes_where_it_is_told(build_fake: Builder) -> None:
    image = build_fake("nucleo-f746zg", capacity_bytes=40_000, arena_region="dtcm")
    assert 0x20000000 <= image.arena_address < 0x20010000
    ccm = build_fake("stm32f429i-disc1", capacity_bytes=40_000, arena_region="ccm")
    assert 0x10000000 <= ccm.arena_address < 0x10010000


def test_the_harness_is_small_on_the_f746(build_fake: Builder) -> None:
    harness = build_fake("nucleo-f746zg").owners["harness"]
    assert 0 < harness.flash_bytes < FLASH_LIMIT_BYTES
    assert 0 < harness.ram_bytes < RAM_LIMIT_BYTES


def test_a_static_arena_is_a_compile_time_constant(build_fake: Builder) -> None:
    image = build_fake("nucleo-f446re", capacity_bytes=4000, static_arena=True)
    assert image.static_arena
    source = (image.elf_path.parent / "src" / "arena.cc").read_text()
    assert "static_assert(kCapacity == 4000" in source


def test_the_owners_account_for_the_sections(build_fake: Builder) -> None:
    image = build_fake("nucleo-f446re")
    flash = sum(owner.flash_bytes for owner in image.owners.values())
    assert abs(flash - image.flash_bytes) < 64  # gaps before a section belong to nobody
    ram = sum(owner.ram_bytes for owner in image.owners.values())
    assert abs(ram + image.sections[".stack"] - image.ram_bytes) < 64
    assert image.owners["model"].rodata == small_model().size_bytes
    assert image.owners["arena"].bss == image.capacity_bytes + 64


def test_cmsis_nn_kernels_are_told_from_reference_ones(build_fake: Builder) -> None:
    assert build_fake("nucleo-f446re").operator_kernels == {"FULLY_CONNECTED": "cmsis_nn"}
    assert build_fake("nucleo-f446re", kernels="reference").operator_kernels == {"FULLY_CONNECTED": "reference"}


def test_the_same_build_has_the_same_id_and_another_another(build_fake: Builder) -> None:
    first = build_fake("nucleo-f446re")
    assert build_fake("nucleo-f446re").build_id == first.build_id
    assert build_fake("nucleo-f446re").segments == first.segments
    others = {
        build_fake("nucleo-f446re", capacity_bytes=16400).build_id,
        build_fake("nucleo-f446re", small_model("another")).build_id,
        build_fake("nucleo-f446re", optimise="-O2").build_id,
        build_fake("nucleo-f446re", watchdog_s=7).build_id,
        build_fake("nucleo-f446re", kernels="reference").build_id,
    }
    assert len(others | {first.build_id}) == 6


def test_an_address_is_given_its_function_and_nothing_else(build_fake: Builder) -> None:
    image = build_fake("nrf52840dk")
    start = image.functions["harness_main"]
    assert image.symbol_at(start) == "harness_main"
    assert image.symbol_at(start | 1) == "harness_main"
    assert image.symbol_at(0) == ""
    # symbols that are numbers, not addresses, lie among the code of a chip whose flash begins at 0
    named = {image.symbol_at(address) for address in range(0x200, image.sections[".text"], 64)}
    assert "__flash_used" not in named and "__ram_used" not in named
