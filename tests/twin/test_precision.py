"""A core has double-precision instructions where its board has such an FPU, and nowhere else."""

from __future__ import annotations

import random
import struct

import pytest

from harness.board.catalogue import load_board
from harness.board.record import Fpu, HardwareBoard

pytest.importorskip("unicorn", reason="the extra [sim] is not installed")

#: vmov.f32 s0, #1.5; vcvt.f64.f32 d1, s0; vadd.f64 d1, d1, d1; vcvt.f32.f64 s0, d1
PROGRAM = bytes.fromhex("b7ee080a b7eec01a 31ee011b b7eec10b")
CODE = 0x0800_0000


@pytest.mark.parametrize("name", ["nucleo-f767zi", "nucleo-h743zi", "nucleo-f746zg", "nucleo-f446re", "nrf5340dk"])
def test_double_precision_is_the_boards_not_the_cores(name: str) -> None:
    """TFLM's own build for cortex-m7+fp has such instructions: on a NUCLEO-F746ZG they are UsageFaults, on a
    NUCLEO-F767ZI they are results."""
    from harness.sim.engine import Engine, Stop

    board = load_board(name)
    assert isinstance(board, HardwareBoard)
    double = board.fpu is Fpu.DOUBLE
    engine = Engine(board.core, double_precision=double)
    engine.uc.mem_map(CODE, 0x1000)
    engine.uc.mem_write(CODE, PROGRAM)
    stop, executed = engine.run(CODE, 4)
    if double:
        assert (stop, executed) == (Stop.COUNT, 4)
        assert struct.unpack("<f", struct.pack("<I", engine.read(engine.arm.UC_ARM_REG_S0))) == (3.0,)
    else:
        assert (stop, engine.pc) == (Stop.UNDEFINED, CODE + 4)
    engine.close()


def test_the_catalogue_has_both_kinds() -> None:
    boards = [load_board(name) for name in ("nucleo-f767zi", "nucleo-h743zi", "nucleo-f746zg")]
    assert [board.fpu for board in boards if isinstance(board, HardwareBoard)] == [Fpu.DOUBLE, Fpu.DOUBLE, Fpu.SINGLE]


def test_among_many_twins_of_one_process_each_has_its_own_precision() -> None:
    """Their structures lie side by side, with what is left of those that are closed."""
    from harness.sim.engine import Engine, Stop

    choice = random.Random(1)
    alive: list[Engine] = []
    for _ in range(120):
        double = choice.random() < 0.5
        engine = Engine(
            "cortex-m7" if double else choice.choice(["cortex-m4", "cortex-m7", "cortex-m33"]), double_precision=double
        )
        engine.uc.mem_map(CODE, 0x1000)
        engine.uc.mem_write(CODE, PROGRAM)
        alive.append(engine)
        while len(alive) > choice.randrange(1, 12):
            alive.pop(choice.randrange(len(alive))).close()
        for other in alive:
            stop, _ = other.run(CODE, 4)
            assert stop is (Stop.COUNT if other.double_precision else Stop.UNDEFINED)
    for engine in alive:
        engine.close()
