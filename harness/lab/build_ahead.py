"""Builds images ahead of the rigs, so that a rig flashes while the next image is compiled; each image is built once.

The compiler's objects are cached by content, so what is built here is only linked when the rig's turn comes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from harness.lab.order import Order
from harness.lab.rig_worker import RigWorker


@dataclass(slots=True)
class BuildAhead:
    """``orders`` are built in their order by one worker. A rig that is about to run a job calls `take_over`."""

    orders: Sequence[Order]
    open_worker: Callable[[], RigWorker]
    built: list[str] = field(default_factory=list)
    _claimed: set[str] = field(default_factory=set)
    _building: str = ""
    _stopped: bool = False
    _worker: RigWorker | None = None
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def start(self) -> None:
        """No thread and no process where there is nothing to build."""
        if self.orders:
            threading.Thread(target=self._build, name="build ahead", daemon=True).start()

    def take_over(self, job_id: str) -> None:
        """The rig's worker has the job from here: wait for its image if it is being built, else leave it to the rig."""
        with self._changed:
            self._claimed.add(job_id)
            while self._building == job_id and not self._stopped:
                self._changed.wait()

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            worker = self._worker
            self._changed.notify_all()
        if worker is not None:
            worker.stop()

    def _build(self) -> None:
        worker = self.open_worker()
        with self._changed:
            self._worker = worker
        try:
            for order in self.orders:
                if not self._begin(order.job_id):
                    continue
                # what goes wrong here goes wrong again in the job itself, and is told there
                worker.run(order, lambda _text: None)
                self._end(order.job_id)
        finally:
            self._end("")
            worker.stop()

    def _begin(self, job_id: str) -> bool:
        with self._changed:
            if self._stopped or job_id in self._claimed:
                return False
            self._building = job_id
            return True

    def _end(self, job_id: str) -> None:
        with self._changed:
            self._building = ""
            if job_id:
                self.built.append(job_id)
            self._changed.notify_all()
