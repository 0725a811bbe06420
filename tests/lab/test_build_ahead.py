from __future__ import annotations

import threading
from collections.abc import Callable

from harness.board.lab_file import RigEntry
from harness.lab.build_ahead import BuildAhead
from harness.lab.order import Order, Result
from tests.patience import PATIENCE_S

RIG = RigEntry(name="left", board="nucleo-f746zg")


class FakeBuilder:
    """Implements ``RigWorker``: builds when it is let, and remembers what."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.started = threading.Semaphore(0)
        self.go = threading.Semaphore(0)
        self.stopped = threading.Event()

    def run(self, order: Order, on_text: Callable[[str], None]) -> Result:
        on_text("build")
        self.begun.append(order.job_id)
        self.started.release()
        assert self.go.acquire(timeout=PATIENCE_S)
        return Result(exit_code=0, seconds=0.0)

    def stop(self) -> None:
        self.stopped.set()
        self.go.release()


def _ahead(builder: FakeBuilder, *jobs: str) -> BuildAhead:
    orders = [Order(job_id=job, model_path="", board=RIG.board, rig=RIG, results="") for job in jobs]
    return BuildAhead(orders, lambda: builder)


def test_images_are_built_in_order_unless_a_rig_was_first() -> None:
    builder = FakeBuilder()
    ahead = _ahead(builder, "a", "b", "c")
    ahead.take_over("a")  # a rig has it already
    ahead.start()
    assert builder.started.acquire(timeout=PATIENCE_S)
    ahead.take_over("c")
    builder.go.release()
    assert builder.stopped.wait(PATIENCE_S)
    assert builder.begun == ["b"]


def test_a_rig_waits_for_an_image_that_is_being_built() -> None:
    builder = FakeBuilder()
    ahead = _ahead(builder, "a")
    ahead.start()
    assert builder.started.acquire(timeout=PATIENCE_S)
    rig = threading.Thread(target=ahead.take_over, args=("a",))
    rig.start()
    rig.join(0.05)
    assert rig.is_alive()
    builder.go.release()
    rig.join(PATIENCE_S)
    assert not rig.is_alive()
    assert ahead.built == ["a"]


def test_stopping_lets_waiting_rigs_go() -> None:
    builder = FakeBuilder()
    ahead = _ahead(builder, "a", "b")
    ahead.start()
    assert builder.started.acquire(timeout=PATIENCE_S)
    rig = threading.Thread(target=ahead.take_over, args=("a",))
    rig.start()
    ahead.stop()
    rig.join(PATIENCE_S)
    assert not rig.is_alive()
    assert builder.stopped.wait(PATIENCE_S)
    assert builder.begun == ["a"]


def test_without_images_nothing_is_started() -> None:
    ahead = _ahead(FakeBuilder())
    ahead.open_worker = lambda: (_ for _ in ()).throw(AssertionError("a worker was opened"))
    ahead.start()
    ahead.take_over("a")
    ahead.stop()
