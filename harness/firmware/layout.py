"""Where the firmware's parts lie in the board's memories, and what fits."""

from __future__ import annotations

from dataclasses import dataclass

from harness.board.record import HardwareBoard, Memory
from harness.errors import DoesNotFitError, UsageError
from harness.firmware.config import FirmwareConfig
from harness.units import format_bytes, quoted

#: Bytes between the stack and what lies below it that no access may touch (MPU region of 256 bytes).
STACK_GUARD_BYTES = 256
#: Guard bytes on each side of the arena: arena.h, kGuardBytes.
ARENA_GUARD_BYTES = 32
#: What .data, .bss and .noinit of harness and TFLM take at least (3,424 bytes measured on the F746 with TFLM 90b983c
#: and a small model). Only for the prediction before compiling; after linking the real numbers count.
STATIC_DATA_BYTES = 3072
#: What they take at most: room that the default capacity leaves.
STATIC_DATA_LIMIT_BYTES = 8192
#: Code of harness, TFLM core and one kernel take at least this much flash. Same use, same source.
CODE_BYTES = 24 * 1024


@dataclass(frozen=True, slots=True)
class Region:
    """A MEMORY entry of the linker script."""

    name: str
    kind: str
    address: int
    size_bytes: int

    @property
    def end(self) -> int:
        return self.address + self.size_bytes


@dataclass(frozen=True, slots=True)
class MemoryLayout:
    """Names of regions for data, stack and arena. ``arena_place`` is what the user calls the arena's memory."""

    regions: tuple[Region, ...]
    data_region: str
    stack_region: str
    arena_region: str
    arena_place: str
    stack_bytes: int

    def region(self, name: str) -> Region:
        return next(region for region in self.regions if region.name == name)

    @property
    def arena(self) -> Region:
        return self.region(self.arena_region)

    @property
    def stack_top(self) -> int:
        return self.region(self.stack_region).end

    @property
    def stack_guard(self) -> int:
        return self.stack_top - self.stack_bytes - STACK_GUARD_BYTES

    @property
    def holds_stack(self) -> bool:
        """The stack lies in the arena's region, above it."""
        return self.arena.address <= self.stack_guard < self.arena.end

    @property
    def holds_data(self) -> bool:
        """The static data lie in the arena's region, below it."""
        return self.data_region == self.arena_region

    @property
    def arena_limit(self) -> int:
        """Where the arena must end."""
        return self.stack_guard if self.holds_stack else self.arena.end

    def largest_arena_bytes(self, data_bytes: int) -> int:
        """The largest arena that fits when static data take ``data_bytes``; a multiple of 16."""
        room = self.arena_limit - self.arena.address - 2 * ARENA_GUARD_BYTES - (data_bytes if self.holds_data else 0)
        return max(0, room // 16 * 16)


def plan_layout(board: HardwareBoard, config: FirmwareConfig) -> MemoryLayout:
    """The layout for ``config``, with the arena in the named place, or in the first of the board's that holds it.

    Raises DoesNotFitError with a table of who takes what and the largest arena that would fit.
    """
    stack_bytes = config.stack_bytes or board.layout.stack_bytes
    if stack_bytes % STACK_GUARD_BYTES or stack_bytes < 2048:
        raise UsageError(f"a stack of {stack_bytes} bytes", remedy="take a multiple of 256 from 2048 up")
    if config.capacity_bytes < 16:
        raise UsageError(f"an arena of {config.capacity_bytes} bytes", remedy="take at least 16")
    places = [config.arena_region] if config.arena_region else list(board.layout.arena)
    layouts = [_layout(board, place, stack_bytes) for place in places]
    for layout in layouts:
        if config.capacity_bytes <= layout.largest_arena_bytes(STATIC_DATA_BYTES):
            return layout
    best = max(layouts, key=lambda layout: layout.largest_arena_bytes(STATIC_DATA_BYTES))
    raise DoesNotFitError(
        f"an arena of {format_bytes(config.capacity_bytes)} bytes does not fit on {board.name}:\n"
        + fit_table(best, config.capacity_bytes, STATIC_DATA_BYTES, predicted=True),
        remedy=f"the largest arena that fits is {format_bytes(best.largest_arena_bytes(STATIC_DATA_BYTES))} bytes, in "
        f"{best.arena_place}" + ("" if len(board.layout.arena) < 2 else f"; places: {', '.join(board.layout.arena)}"),
        code="fit.arena",
    )


def default_capacity_bytes(board: HardwareBoard, config: FirmwareConfig | None = None) -> int:
    """The capacity when nobody names one: what the first of the board's places (or the named one) holds with room left
    for static data; a multiple of 16."""
    place = config.arena_region if config and config.arena_region else board.layout.arena[0]
    stack_bytes = (config.stack_bytes if config else None) or board.layout.stack_bytes
    return _layout(board, place, stack_bytes).largest_arena_bytes(STATIC_DATA_LIMIT_BYTES)


def _layout(board: HardwareBoard, place: str, stack_bytes: int) -> MemoryLayout:
    try:
        arena = board.region(place)
    except (KeyError, ValueError) as exc:
        names = ", ".join(memory.name for memory in board.rams)
        raise UsageError(
            f"{quoted(place)} is no memory of {board.name}", remedy=f"its memories are {names}; join contiguous with +"
        ) from exc
    if arena.kind != "ram":
        raise UsageError(f"{quoted(place)} is no RAM", remedy="name a RAM for the arena")
    data, stack = board.memory(board.layout.data), board.memory(board.layout.stack)
    regions = {"flash": _region(board.flash)}
    for memory in [arena, data, stack]:
        if memory is arena or not arena.address <= memory.address < arena.end:
            regions[memory.name] = _region(memory)
    inside = {m.name for m in (data, stack) if arena.address <= m.address < arena.end}
    return MemoryLayout(
        regions=tuple(regions.values()),
        data_region=arena.name if data.name in inside else data.name,
        # the stack keeps its own memory's end, which is the arena region's end only when it is the last part
        stack_region=arena.name if stack.name in inside and stack.end == arena.end else stack.name,
        arena_region=arena.name,
        arena_place=place,
        stack_bytes=stack_bytes,
    )


def _region(memory: Memory) -> Region:
    return Region(memory.name, memory.kind, memory.address, memory.size_bytes)


def check_flash(board: HardwareBoard, model_bytes: int) -> None:
    """Before compiling: a model that cannot fit is refused at once."""
    flash = board.flash.size_bytes
    if model_bytes + CODE_BYTES > flash:
        raise DoesNotFitError(
            f"the model has {format_bytes(model_bytes)} bytes, the firmware at least {format_bytes(CODE_BYTES)} more; "
            f"{board.name} has {format_bytes(flash)} bytes of flash",
            remedy=f"take a model of at most {format_bytes(flash - CODE_BYTES)} bytes, or a board with more flash",
            code="fit.flash",
        )


def fit_table(layout: MemoryLayout, capacity_bytes: int, data_bytes: int, *, predicted: bool) -> str:
    """Who takes what in the arena's region, as aligned text."""
    rows = [("arena", capacity_bytes), ("guards", 2 * ARENA_GUARD_BYTES)]
    if layout.holds_data:
        rows.append((".data + .bss" + (" (at least)" if predicted else ""), data_bytes))
    if layout.holds_stack:
        rows.append(("stack and its guard", layout.stack_bytes + STACK_GUARD_BYTES))
    rows.append(("together", sum(size for _, size in rows)))
    rows.append((f"{layout.arena_place} has", layout.arena.size_bytes))
    return "\n".join(f"  {name:<24}{format_bytes(size):>12}" for name, size in rows)
