"""Fills the firmware's templates. Owner of ``import jinja2`` for firmware."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from harness.board.record import Family, HardwareBoard, UartDriver
from harness.errors import BuildError
from harness.firmware.config import FirmwareConfig, Transport
from harness.firmware.layout import STACK_GUARD_BYTES, MemoryLayout
from harness.model.graph import Model
from harness.paths import firmware_templates_dir
from harness.wire.description import describe

if TYPE_CHECKING:
    from jinja2 import Environment

#: Bytes per element (TensorType); tensors of other types have no input from the host.
_ELEMENT_BYTES = {0: 4, 1: 2, 2: 4, 3: 1, 4: 8, 6: 1, 7: 2, 9: 1, 10: 8, 12: 8, 15: 4, 16: 2}
#: Profiler events kept, in steps, so that another model seldom means another object.
_EVENT_STEPS = (32, 64, 128, 256, 512)

_CLOCKS = {
    Family.STM32F4: "stm32f4_f7",
    Family.STM32F7: "stm32f4_f7",
    Family.STM32L4: "stm32l4",
    Family.STM32H7: "stm32h7",
    Family.NRF52: "nrf52",
    Family.NRF53: "nrf53",
}
#: GPIO port A, and the register that switches the ports' clocks on. RM0385 2.2.2, RM0090 2.3, RM0351 2.2.2, RM0433
#: 2.3.2.
_STM32_GPIO = {
    Family.STM32F4: (0x40020000, 0x40023830),
    Family.STM32F7: (0x40020000, 0x40023830),
    Family.STM32L4: (0x48000000, 0x4002104C),
    Family.STM32H7: (0x58020000, 0x580244E0),
}
#: Port P0, OUTSET, PIN_CNF. nRF52840 PS v1.7 6.9; nRF5340 PS v1.3 7.13 (secure alias).
_NRF_GPIO = {Family.NRF52: (0x50000000, 0x508, 0x700), Family.NRF53: (0x50842500, 0x008, 0x200)}
#: Frequency of the inside oscillator that stands in for HSE. RM0385 5.2.2, RM0090 6.2.2, RM0433 8.5.2.
_HSI_HZ = {Family.STM32F4: 16_000_000, Family.STM32F7: 16_000_000, Family.STM32H7: 64_000_000}
#: Vector table entries behind the core's 16: none is used, and a table must only be as long as what can occur.
_INTERRUPTS = 0


def _c_string(text: str) -> str:
    """A C string literal: everything but plain ASCII letters, digits and a few marks as octal escapes."""
    pieces = []
    for byte in text.encode("utf-8", "surrogatepass"):
        char = chr(byte)
        pieces.append(char if char.isascii() and (char.isalnum() or char in " ._+-:/=,()") else f"\\{byte:03o}")
    return '"' + "".join(pieces) + '"'


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:].lower() for part in re.split(r"[_ ]", name))


def _environment() -> Environment:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(firmware_templates_dir()),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # C, not HTML: texts go through c_string
    )
    environment.filters["c_string"] = _c_string
    environment.filters["c_hex"] = lambda value: f"0x{value:X}u"
    environment.filters["c_bool"] = lambda value: "true" if value else "false"
    environment.filters["c_bytes"] = lambda data: ", ".join(f"0x{byte:02x}" for byte in data)
    environment.filters["camel"] = _camel
    return environment


def tensor_bytes(model: Model, index: int) -> int:
    """Bytes of a tensor of the main subgraph; 0 where the model does not say."""
    tensor = model.subgraphs[0].tensors[index]
    size = _ELEMENT_BYTES.get(int(tensor.type), 0)
    return max(0, tensor.element_count) * size


def profile_events(*models: Model) -> int:
    """How many profiler events, or digests of one tensor around each operator, the firmware keeps: those of one Invoke
    of each, in steps; loops may have more."""
    around = 1 + sum(len(subgraph.operators) for model in models for subgraph in model.subgraphs)
    return next((step for step in _EVENT_STEPS if around <= step), _EVENT_STEPS[-1])


def resource_variables(*models: Model) -> int:
    """How many resource variables the firmware makes room for, for each model: a power of two, 0 for none."""
    handles = max(Counter(operator.name for _, operator in model.operators())["VAR_HANDLE"] for model in models)
    return 0 if handles == 0 else 1 << (handles - 1).bit_length()


def render_board(
    board: HardwareBoard, layout: MemoryLayout, transport: Transport, *, caches: bool = True
) -> dict[str, str]:
    """Sources that depend on the board alone, plus the linker script: file name → text."""
    environment = _environment()
    if not caches:
        off = msgspec.structs.replace(board.caches, flash_accelerator=False, prefetch=False)
        board = msgspec.structs.replace(board, caches=off)
    facts = _board_facts(board) | {"start_caches": caches}
    uart = "rtt" if transport is Transport.RTT else "nrf_uarte" if _is_nrf(board) else "stm32"
    texts = {
        "board.h": _render(environment, "board.h.j2", facts),
        "wire.h": _render(environment, "wire.h.j2", {"wire": describe()}),
        "clock.cc": _render(environment, f"clock/{_CLOCKS[board.family]}.cc.j2", facts),
        "uart.cc": _render(environment, f"uart/{uart}.cc.j2", facts),
        "link.ld": _render(environment, "link.ld.j2", {"board": board, **_link_facts(layout)}),
    }
    for path in sorted((firmware_templates_dir() / "src").iterdir()):
        texts[path.name] = path.read_text(encoding="utf-8")
    return texts


def render_models(models: Sequence[Model], config: FirmwareConfig, methods: tuple[str, ...]) -> dict[str, str]:
    """Sources that depend on the models, in the order of their setup, and the arena."""
    environment = _environment()
    sizes = [tensor_bytes(model, index) for model in models for index in model.subgraphs[0].inputs]
    baked = [len(data) for data in config.inputs] or [0] * len(sizes)
    if len(baked) != len(sizes) or any(have not in {0, want} for have, want in zip(baked, sizes, strict=False)):
        raise BuildError(
            f"the inputs have {sizes} bytes, the given ones {baked}",
            remedy="give one array per input, of the input's shape and type",
            code="build.input",
        )
    return {
        "model_info.cc": _render(
            environment,
            "model_info.cc.j2",
            {
                "model_count": len(models),
                "input_bytes": sizes,
                "output_count": sum(len(model.subgraphs[0].outputs) for model in models),
                "tensor_counts": [len(subgraph.tensors) for subgraph in models[0].subgraphs],
                "baked_bytes": baked,
            },
        ),
        "model.S": _render(environment, "model.S.j2", {"baked_bytes": baked, "model_count": len(models)}),
        "op_resolver.cc": _render(environment, "op_resolver.cc.j2", {"methods": methods}),
        "arena.cc": _render(
            environment,
            "arena.cc.j2",
            {"capacity_bytes": config.capacity_bytes, "static_arena": config.static_arena},
        ),
    }


def render_build_info(facts: dict[str, Any]) -> str:
    """The one source that holds the build id; ``facts`` as the template names them."""
    return _render(_environment(), "build_info.cc.j2", facts)


def _render(environment: Environment, name: str, facts: dict[str, Any]) -> str:
    return environment.get_template(name).render(**facts)


def _is_nrf(board: HardwareBoard) -> bool:
    return board.uart.driver is UartDriver.NRF_UARTE


def _board_facts(board: HardwareBoard) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "board": board,
        "family": board.family.value,
        "driver": board.uart.driver.value,
        "armv8m": board.core == "cortex-m33",
        "has_mpu": True,
        "interrupts": _INTERRUPTS,
        "stack_guard_bytes": STACK_GUARD_BYTES,
    }
    if _is_nrf(board):
        base, outset, pin_cnf = _NRF_GPIO[board.family]
        return facts | {"gpio_base": base, "gpio_outset": outset, "gpio_pin_cnf": pin_cnf}
    base, enable = _STM32_GPIO[board.family]
    clock = board.clock
    pll = clock.pll
    if pll is None:
        raise BuildError(f"{board.name}: clock.pll is missing", remedy="add it to the board file", code="build.board")
    fallback = pll.m * _HSI_HZ.get(board.family, clock.input_hz)
    if fallback % clock.input_hz:
        raise BuildError(
            f"{board.name}: clock.pll.m = {pll.m} has no counterpart for the inside oscillator",
            remedy="choose m so that input_hz / m divides the inside oscillator's rate",
            code="build.board",
        )
    vco_hz = clock.input_hz // pll.m * pll.n
    return facts | {
        "gpio_base": base,
        "gpio_enable": enable,
        "tx_port": ord(board.uart.tx.port) - ord("A"),
        "rx_port": ord(board.uart.rx.port) - ord("A"),
        "fallback_m": fallback // clock.input_hz,
        "pll_q": min(15, -(-vco_hz // 48_000_000)),
        "ahb_code": {1: 0, 2: 8, 4: 9}[clock.ahb_divider],
        "apb1_code": {1: 0, 2: 4, 4: 5, 8: 6, 16: 7}[clock.apb1_divider],
        "apb2_code": {1: 0, 2: 4, 4: 5, 8: 6, 16: 7}[clock.apb2_divider],
    }


def _link_facts(layout: MemoryLayout) -> dict[str, Any]:
    stack = layout.region(layout.stack_region)
    arena = layout.arena
    stack_follows = arena.address <= stack.address and (layout.holds_stack or arena.end == stack.address)
    return {
        "regions": layout.regions,
        "data_region": layout.data_region,
        "stack_region": layout.stack_region,
        "arena_region": layout.arena_region,
        "stack_bytes": layout.stack_bytes,
        "stack_guard_bytes": STACK_GUARD_BYTES,
        "spare_start": "__arena_end",
        "spare_end": "__stack_guard" if stack_follows else f"0x{arena.end:08X}",
    }


def template_files() -> tuple[Path, ...]:
    """Every template and source, for packaging checks."""
    return tuple(sorted(path for path in firmware_templates_dir().rglob("*") if path.suffix in {".j2", ".cc", ".h"}))
