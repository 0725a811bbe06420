"""What a board type is, as strict records: unknown keys, missing keys and wrong types are refused with file and key."""

from __future__ import annotations

from enum import Enum
from itertools import pairwise
from typing import Annotated, Literal

import msgspec

Name = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9_-]*$")]
Address = Annotated[int, msgspec.Meta(ge=0, le=0xFFFF_FFFF)]
Size = Annotated[int, msgspec.Meta(gt=0, le=0x1000_0000)]
Hertz = Annotated[int, msgspec.Meta(gt=0)]
Source = Annotated[str, msgspec.Meta(min_length=4, description="where the numbers of this block are from")]


class Evidence(str, Enum):
    """What this board's path was proven on."""

    NONE = "none"
    TWIN = "twin"
    SILICON = "silicon"


class Fpu(str, Enum):
    NONE = "none"
    SINGLE = "single"
    DOUBLE = "double"


class Family(str, Enum):
    """Chips that share clock, flash and UART blocks: one clock template each."""

    STM32F4 = "stm32f4"
    STM32F7 = "stm32f7"
    STM32L4 = "stm32l4"
    STM32H7 = "stm32h7"
    NRF52 = "nrf52"
    NRF53 = "nrf53"


class UartDriver(str, Enum):
    STM32_V1 = "stm32_v1"  # SR/DR/BRR
    STM32_V2 = "stm32_v2"  # ISR/RDR/TDR/BRR
    STM32_LPUART = "stm32_lpuart"  # as v2, divisor × 256
    NRF_UARTE = "nrf_uarte"  # EasyDMA


class Memory(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One memory of the chip, ``size_bytes`` from ``address``; the end is exclusive."""

    name: Name
    kind: Literal["flash", "ram", "itcm"]
    address: Address
    size_bytes: Size
    source: Source
    #: Accesses go through the data cache (where the core has one and it is on).
    cached: bool = False
    #: The DMA that serves the UART can reach it.
    dma: bool = True

    @property
    def end(self) -> int:
        return self.address + self.size_bytes


class SectorRun(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``count`` erase units of ``size_bytes`` each."""

    count: Annotated[int, msgspec.Meta(gt=0)]
    size_bytes: Size


class FlashSectors(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Erase units in address order from the start of the memory ``flash``."""

    runs: tuple[SectorRun, ...]
    source: Source

    @property
    def total_bytes(self) -> int:
        return sum(run.count * run.size_bytes for run in self.runs)


class Pll(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """core clock = input / m × n / p."""

    m: Annotated[int, msgspec.Meta(gt=0)]
    n: Annotated[int, msgspec.Meta(gt=0)]
    p: Annotated[int, msgspec.Meta(gt=0)]


class Clock(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The clock tree that the firmware sets up."""

    input: Literal["hse_bypass", "hse_crystal", "hsi", "internal"]
    input_hz: Hertz
    core_hz: Hertz
    source: Source
    pll: Pll | None = None
    ahb_divider: Literal[1, 2, 4] = 1
    apb1_divider: Literal[1, 2, 4, 8, 16] = 1
    apb2_divider: Literal[1, 2, 4, 8, 16] = 1
    flash_wait_states: Annotated[int, msgspec.Meta(ge=0, le=15)] = 0
    #: Value of the VOS field of the power controller, as the reference manual numbers it.
    voltage_scale: Annotated[int, msgspec.Meta(ge=0, le=3)] = 0
    over_drive: bool = False

    @property
    def bus_hz(self) -> int:
        """Clock of the AHB, from which the peripheral clocks are divided."""
        return self.core_hz // self.ahb_divider


class Caches(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the firmware switches on: L1 caches of the core, and the flash accelerator's."""

    instruction: bool = False
    data: bool = False
    flash_accelerator: bool = False
    prefetch: bool = False
    source: Source


class Pin(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``port`` is a letter on STM32, a digit on nRF."""

    port: Annotated[str, msgspec.Meta(pattern=r"^[A-K0-1]$")]
    number: Annotated[int, msgspec.Meta(ge=0, le=31)]
    alternate_function: Annotated[int, msgspec.Meta(ge=0, le=15)] | None = None


class Uart(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The UART that is wired to the debug probe's virtual COM port."""

    driver: UartDriver
    instance: str
    base: Address
    clock_hz: Hertz
    tx: Pin
    rx: Pin
    source: Source
    #: STM32: the bit that switches the peripheral's clock on.
    enable_register: Address | None = None
    enable_bit: Annotated[int, msgspec.Meta(ge=0, le=31)] | None = None
    baud: Hertz = 115200
    max_baud: Hertz = 1_000_000
    #: PWR_CR2.IOSV: pins PG2..PG15 of an STM32L4 are dead without it.
    needs_vddio2: bool = False


class IdCode(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``(read32(address) & mask) == value`` on the right chip."""

    address: Address
    mask: Address
    value: Address
    source: Source


class PyOcd(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How pyOCD calls the chip. ``pack`` is the path of a CMSIS-Pack where pyOCD has no built-in target."""

    target: str
    source: Source
    pack: str = ""
    erase: Literal["sector", "chip"] = "sector"
    connect: Literal["halt", "under-reset", "attach"] = "halt"
    reset: Literal["system", "core", "hardware"] = "system"
    #: Board id of the on-board ST-Link or J-Link, as pyOCD's board table writes it.
    board_ids: tuple[str, ...] = ()


class Layout(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where the firmware puts what: names of memories, contiguous ones joined by ``+``.

    ``arena`` lists the places in order of preference: the first that is large enough is taken.
    """

    data: Name
    stack: Name
    arena: tuple[str, ...]
    stack_bytes: Annotated[int, msgspec.Meta(ge=8192, multiple_of=32)] = 8192


class Board(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Any board. ``name`` is what ``--board`` takes."""

    name: Annotated[str, msgspec.Meta(pattern=r"^(sim:)?[a-z0-9][a-z0-9_.-]*$")]
    kind: Literal["host", "hardware", "sim"]
    title: str
    core: str
    evidence: Evidence = Evidence.NONE
    notes: str = ""

    @property
    def abi(self) -> str:
        return "lp64" if self.core == "host" else "ilp32"

    @property
    def is_simulated(self) -> bool:
        return self.kind == "sim"


class HardwareBoard(Board, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A board with a chip on it, real or emulated (``kind`` "sim": the same numbers, another rig)."""

    chip: str
    family: Family
    fpu: Fpu
    #: TARGET_ARCH values of TFLM's makefile whose library runs on this chip, best first.
    tflm_archs: tuple[str, ...]
    memories: tuple[Memory, ...]
    flash_sectors: FlashSectors
    clock: Clock
    caches: Caches
    uart: Uart
    id_code: IdCode
    pyocd: PyOcd
    layout: Layout

    def memory(self, name: str) -> Memory:
        """Raises KeyError where the board has no such memory."""
        for memory in self.memories:
            if memory.name == name:
                return memory
        raise KeyError(name)

    @property
    def flash(self) -> Memory:
        return self.memory("flash")

    @property
    def rams(self) -> tuple[Memory, ...]:
        return tuple(memory for memory in self.memories if memory.kind == "ram")

    def region(self, name: str) -> Memory:
        """``sram1`` or ``dtcm+sram1``: contiguous memories seen as one. Raises KeyError or ValueError."""
        parts = [self.memory(part) for part in name.split("+")]
        for before, after in pairwise(parts):
            if before.end != after.address:
                raise ValueError(f"{after.name} does not begin where {before.name} ends")
        return Memory(
            name="_".join(part.name for part in parts),
            kind=parts[0].kind,
            address=parts[0].address,
            size_bytes=sum(part.size_bytes for part in parts),
            source="; ".join(dict.fromkeys(part.source for part in parts)),
            cached=any(part.cached for part in parts),
            dma=all(part.dma for part in parts),
        )

    @property
    def base_name(self) -> str:
        """The name of the hardware board, for a twin too."""
        return self.name.removeprefix("sim:")
