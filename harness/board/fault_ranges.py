"""Which numbers of a twin's faults can act on a board: a sector that it has, a rate that it uses, another chip."""

from __future__ import annotations

from harness.board.record import HardwareBoard
from harness.board.twin_faults import parse_fault
from harness.errors import UsageError

#: The clock of the debug port that is tried first. harness.probe.session.
FIRST_CLOCK_HZ = 4_000_000
#: More than any run sends, transfers or programs: a fault that waits for so much never comes.
_MOST = 1_000_000_000
_MOST_GARBAGE = 1_000_000
#: A receiver at another rate reads every bit of a byte right up to some 5 %, either way (harness.sim.wire).
_SAME_CLOCK = (0.95, 1.052)
_CLOCKS = (0.001, 1000.0)
_COUNTED = {
    "unplug-after",
    "brownout-flashing",
    "brownout-running",
    "drop",
    "drop-in",
    "duplicate",
    "corrupt",
    "replug-after",
}


def check_fault(text: str, board: HardwareBoard) -> tuple[str, float]:
    """As `parse_fault`. Raises UsageError also for a number that can do nothing on this board, with those that can."""
    name, number = parse_fault(text)
    wanted = _wanted(name, number, board)
    if wanted:
        raise UsageError(f"fault {text} does nothing on {board.name}", remedy=f"write {name}=N, N {wanted}")
    return name, number


def _wanted(name: str, number: float, board: HardwareBoard) -> str:
    """Which numbers act; "" where this one does."""
    acts, wanted = True, ""
    if name in _COUNTED:
        acts, wanted = number <= _MOST, f"at most {_MOST}"
    match name:
        case "dead-sector":
            sectors = sum(run.count for run in board.flash_sectors.runs)
            acts, wanted = number < sectors, f"from 0 to {sectors - 1}: its flash has {sectors} sectors"
        case "flash-bit":
            size = board.flash.size_bytes
            acts, wanted = number < size, f"from 0 to {size - 1}: its flash has {size} bytes"
        case "wrong-chip":
            right = board.id_code
            acts = number < 1 << 32 and int(number) & right.mask != right.value
            wanted = f"of 32 bits, and not 0x{right.value:x} in the bits 0x{right.mask:x}, which is a {board.chip}"
        case "max-clock":
            acts, wanted = number < FIRST_CLOCK_HZ, f"below {FIRST_CLOCK_HZ}, the clock that is tried first"
        case "max-baud":
            fastest = max(board.uart.baud, board.uart.max_baud)
            acts, wanted = number < fastest, f"below {fastest}, the highest rate that is used"
        case "clock":
            same, ends = _SAME_CLOCK, _CLOCKS
            acts = ends[0] <= number <= ends[1] and not same[0] <= number <= same[1]
            wanted = (
                f"from {ends[0]:g} to {ends[1]:g}, and not {same[0]:g} to {same[1]:g}, which a UART does not notice"
            )
        case "garbage":
            acts, wanted = number <= _MOST_GARBAGE, f"at most {_MOST_GARBAGE}"
    return "" if acts else wanted
