"""What a rig's worker process is told and what it tells: one JSON line each."""

from __future__ import annotations

import msgspec

from harness.board.lab_file import RigEntry
from harness.record.schema import ErrorRecord, SweepRecord


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """Sweep one model. ``results`` is the job's own folder: its records, its journal, its transcript. ``tflm`` is the
    folder of a TFLM library that takes the place of the registered ones."""

    job_id: str
    model_path: str
    board: str
    rig: RigEntry
    kernels: str = ""
    tflm: str = ""
    seed: int = 1
    fill: float | None = None
    inputs: tuple[str, ...] = ()
    step_bytes: int = 16
    runs: int = 0
    certify: bool = False
    tolerance_steps: float | None = None
    interpreter: str = ""
    timeout_s: float = 600.0
    trial_timeout_s: float = 20.0
    results: str
    build_only: bool = False
    boards_dirs: tuple[str, ...] = ()


class Told(msgspec.Struct, frozen=True, kw_only=True, tag="told"):
    """A line for whoever watches."""

    text: str


class Result(msgspec.Struct, frozen=True, kw_only=True, tag="result"):
    """What came of an order. ``record`` None: the worker itself failed, ``error`` says how."""

    exit_code: int
    seconds: float
    record: SweepRecord | None = None
    error: ErrorRecord | None = None
    record_path: str = ""
    protocol_tail: tuple[str, ...] = ()


Message = Told | Result
