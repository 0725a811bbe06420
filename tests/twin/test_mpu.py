"""Both memory protection units, and the default map, on a core with nothing but flash and RAM."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from hypothesis import given
from hypothesis import strategies as st

from harness.board.catalogue import load_hardware_board
from harness.board.record import Fpu
from harness.sim.bus import Bus, Memory
from harness.sim.chip import build_core
from harness.sim.cortex_m import CortexM
from harness.sim.engine import Engine, Stop
from harness.sim.mpu import Access, MpuV7, MpuV8, Span
from harness.sim.scs import ARM, RomTable
from tests.examples import examples

from .bare_metal import compile_firmware
from .conftest import segments

CORES = ("nucleo-f746zg", "nrf52840dk", "nrf5340dk")
#: CFSR: IACCVIOL bit 0, DACCVIOL bit 1 with MMARVALID bit 7, IBUSERR bit 8. HFSR: FORCED bit 30.
FETCH, DATA, NO_BUS, FORCED = 0x01, 0x82, 0x100, 1 << 30


class Bench:
    """A program on a bare core. ``board`` says only which core, and where memory is."""

    def __init__(self, program: str, board_name: str, folder: Path) -> None:
        board = load_hardware_board(board_name)
        self.core, self.bus = _bare_core(board_name)
        self.flash = Memory("flash", board.flash.size_bytes, (board.flash.address,), writable=False, fill=0xFF)
        ram = board.region(board.layout.data)
        self.ram = Memory("ram", ram.end - ram.address, (ram.address,), writable=True)
        for memory in (self.flash, self.ram):
            self.bus.add_memory(memory)
        self.bus.finish()
        with compile_firmware(program, board_name, folder).open("rb") as file:
            for address, data in segments(file):
                offset = address - board.flash.address
                self.flash.view[offset : offset + len(data)] = data
            table = ELFFile(file).get_section_by_name(".symtab")
            self.symbols = {symbol.name: int(symbol["st_value"]) for symbol in table.iter_symbols()}
        self.core.reset()

    def words(self, symbol: str, count: int) -> tuple[int, ...]:
        return struct.unpack(f"<{count}I", self.bus.read(self.symbols[symbol], 4 * count))

    def run_until(self, symbol: str) -> int:
        for _ in range(2000):
            self.core.run(1000)
            (value,) = self.words(symbol, 1)
            if value:
                return value
        pytest.fail(f"{symbol} is 0, PC {self.core.engine.pc:#x}, {self.core.state}, CFSR {self.core.faults.cfsr:#x}")


def _bare_core(board_name: str) -> tuple[CortexM, Bus]:
    board = load_hardware_board(board_name)
    return build_core(
        board.core,
        double_precision=board.fpu is Fpu.DOUBLE,
        has_fpu=board.fpu is not Fpu.NONE,
        priority_bits=3,
        reset_vtor=board.flash.address,
        rom=RomTable(ARM, 0),
    )


@pytest.mark.parametrize("board", CORES)
def test_what_the_mpu_and_the_memory_map_forbid_is_a_fault_with_its_place(board: str, firmware_dir: Path) -> None:
    bench = Bench("protect", board, firmware_dir)
    count = bench.run_until("done")
    code = bench.symbols["code"]
    flash = load_hardware_board(board).flash.address
    words = bench.symbols["words"]
    told = [bench.words("results", 5 * count)[5 * n : 5 * n + 5] for n in range(count)]
    facts = [(cfsr, hfsr, mmfar if cfsr & 0x80 else 0, value) for cfsr, hfsr, mmfar, _, value in told]
    cpuid = {"nucleo-f746zg": 0x410FC271, "nrf52840dk": 0x410FC241, "nrf5340dk": 0x410FD213}[board]
    overlap = (DATA, 0, words, 0) if board == "nrf5340dk" else (0, 0, 0, 7)  # ARMv8-M: two regions are one too many
    assert facts == [
        (0, 0, 0, 42),
        (FETCH, 0, 0, 0),
        (0, 0, 0, 0x4770_202A),
        (0, 0, 0, 42),
        (0, 0, 0, 7),
        (DATA, 0, 0x4000_3000, 0),
        (DATA, 0, 0x4000_3000, 0),
        (0, 0, 0, cpuid),
        (DATA, 0, flash, 0),
        (FETCH, 0, 0, 0),
        (FETCH, FORCED, 0, 7),
        (DATA, 0, words, 0),
        overlap,
        (FETCH, 0, 0, 0),
        (FETCH, 0, 0, 0),
        (FETCH, 0, 0, 0),
        (FETCH, 0, 0, 0),
        (NO_BUS, 0, 0, 0),
        (0, 0, 0, 42),
    ]
    at = {n: pc for n, (_, _, _, pc, _) in enumerate(told)}
    assert [at[n] for n in (1, 9, 10, 13, 14, 15, 16, 17)] == [
        code,
        code,
        code,
        0x4000_0000,
        0xA000_0000,
        0xE000_E000,
        0xFFFF_FFF0,
        0x9000_0000,
    ]


def test_a_stack_that_passes_its_limit_register_is_a_usage_fault(firmware_dir: Path) -> None:
    """CFSR: STKOF, bit 20. The last push that was let through wrote the word at the limit."""
    bench = Bench("limit", "nrf5340dk", firmware_dir)
    bench.run_until("done")
    assert bench.words("results", 2) == (bench.symbols["stack"] + 4 * 32, 1 << 20)


def v7(*regions: tuple[int, int], control: int = 5) -> MpuV7:
    """Regions as (RBAR, RASR)."""
    mpu = MpuV7(Engine("cortex-m4"))
    for number, (base, attributes) in enumerate(regions):
        mpu.store(0xD9C, base | 1 << 4 | number)
        mpu.store(0xDA0, attributes)
    mpu.store(0xD94, control)
    return mpu


def test_eighths_that_are_off_leave_their_place_to_the_region_below() -> None:
    # 2 KiB read only over 4 KiB read and write; the third eighth of the upper is off.
    mpu = v7((0x2000_0000, 3 << 24 | 11 << 1 | 1), (0x2000_0000, 6 << 24 | 1 << 10 | 10 << 1 | 1), control=1)
    writable = [
        address for address in range(0x2000_0000, 0x2000_1000, 256) if mpu.denies(address, 4, Access.WRITE) is None
    ]
    assert writable == [0x2000_0200, *range(0x2000_0800, 0x2000_1000, 256)]
    assert mpu.denies(0x2000_0FFC, 8, Access.READ) == 0x2000_1000
    assert mpu.denies(0x1FFF_FFFC, 4, Access.READ) == 0x1FFF_FFFC


def test_with_the_background_only_regions_and_the_default_map_forbid() -> None:
    mpu = v7((0x2000_0400, 1 << 28 | 7 << 1 | 1))  # 256 bytes, no access, execute never
    assert mpu.spans() == [
        Span(0, 0x2000_0400, frozenset(Access)),
        Span(0x2000_0400, 0x2000_0500, frozenset()),
        Span(0x2000_0500, 0x4000_0000, frozenset(Access)),
        Span(0x4000_0000, 0x6000_0000, frozenset({Access.READ, Access.WRITE})),
        Span(0x6000_0000, 0xA000_0000, frozenset(Access)),
        Span(0xA000_0000, 1 << 32, frozenset({Access.READ, Access.WRITE})),
    ]


def test_nothing_is_executed_from_the_system_space_whatever_a_region_says() -> None:
    mpu = v7((0xE000_0000, 3 << 24 | 28 << 1 | 1), control=1)
    assert mpu.denies_fetch(0xE000_0000)
    assert mpu.denies_fetch(0xF000_0000)
    assert mpu.denies(0xF000_0000, 4, Access.WRITE) is None


def test_regions_of_armv8_are_read_through_the_aliases_of_their_group() -> None:
    mpu = MpuV8(Engine("cortex-m33"))
    mpu.store(0xD98, 5)  # RNR: the group of 4 to 7
    mpu.store(0xDAC, 0x2000_0100 | 2)  # RBAR_A2: region 6
    mpu.store(0xDB0, 0x2000_017F)
    mpu.store(0xDC0, 0x44)
    mpu.store(0xD98, 6)
    assert [mpu.load(offset) for offset in (0xD90, 0xD9C, 0xDA0, 0xDC0)] == [0x800, 0x2000_0102, 0x2000_016F, 0x44]
    assert [(region.start, region.end) for region in mpu.regions()] == [(0x2000_0100, 0x2000_0180)]


@pytest.mark.parametrize("length", [2, 4])
def test_code_that_runs_on_into_a_forbidden_region_stops_before_it(length: int) -> None:
    """The instruction at 0x5E ends before the region, or has its second half in it."""
    engine = Engine("cortex-m4")
    engine.uc.mem_map(0x2000_0000, 0x1000)
    add, add_wide = bytes.fromhex("0130"), bytes.fromhex("00f10100")  # adds r0, #1; add.w r0, r0, #1
    engine.uc.mem_write(0x2000_0000, add * 0x2F + (add if length == 2 else add_wide) + add * 64)
    mpu = MpuV7(engine)
    for offset, value in ((0xD9C, 0x2000_0060), (0xDA0, 1 << 28 | 3 << 24 | 4 << 1 | 1), (0xD94, 5)):
        mpu.store(offset, value)
    stop, _ = engine.run(0x2000_0000, 1000)
    at = 0x2000_0060 if length == 2 else 0x2000_005E
    assert (stop, engine.pc, engine.read(engine.arm.UC_ARM_REG_R0)) == (Stop.FETCH_DENIED, at, (at & 0xFF) // 2)


@st.composite
def v7_region(draw: st.DrawFn) -> tuple[int, int]:
    """(RBAR, RASR) of a region that is on, within 64 KiB of RAM."""
    log2 = draw(st.integers(5, 16))
    base = 0x2000_0000 + draw(st.integers(0, 2 ** (16 - log2) - 1)) * 2**log2
    never, permission, disabled = draw(st.integers(0, 1)), draw(st.integers(0, 7)), draw(st.integers(0, 255))
    return base, never << 28 | permission << 24 | disabled << 8 | (log2 - 1) << 1 | 1


@examples(40)
@given(st.lists(v7_region(), max_size=8), st.lists(st.integers(0, 0xFFFF), min_size=1, max_size=20), st.booleans())
def test_each_byte_has_the_rule_of_the_highest_region_that_covers_it(
    regions: list[tuple[int, int]], offsets: list[int], background: bool
) -> None:
    mpu = v7(*regions, control=5 if background else 1)
    for offset in offsets:
        address = 0x2000_0000 + offset
        allowed = set(Access) if background else set()
        for base, attributes in regions:  # the last one that covers the byte decides
            size = 2 << (attributes >> 1 & 31)
            eighth = (address - base) * 8 // size
            if base <= address < base + size and (size < 256 or not attributes >> (8 + eighth) & 1):
                permission = attributes >> 24 & 7
                allowed = {Access.READ} if permission in (1, 2, 3, 5, 6, 7) else set()
                allowed |= {Access.WRITE} if permission in (1, 2, 3) else set()
                allowed |= {Access.EXECUTE} if allowed and not attributes >> 28 & 1 else set()
        assert {access for access in Access if mpu.denies(address, 1, access) is None} == allowed
    mpu._engine.close()
