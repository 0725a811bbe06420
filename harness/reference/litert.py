"""Runs a model in LiteRT. In a child process: LiteRT may crash or never return on models that TFLM runs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from harness.reference.steps import Step


@dataclass(frozen=True, slots=True)
class ReferenceRun:
    """``refused`` is empty where the model ran; then ``outputs`` are, for each step, its output bytes in order,
    ``dtypes`` their numpy names. ``backend`` is package and version, empty where neither package is installed."""

    backend: str
    outputs: tuple[tuple[bytes, ...], ...] = ()
    dtypes: tuple[str, ...] = ()
    refused: str = ""


def run_litert(model: bytes, steps: Sequence[Step], timeout_s: float) -> ReferenceRun:
    """All steps in turn. Never raises for what LiteRT does: a refusal, a crash or a timeout is told in ``refused``."""
    told = [{"reset": step.reset, "input_bytes": [len(data) for data in step.inputs]} for step in steps]
    header = {"model_bytes": len(model), "steps": told}
    request = json.dumps(header).encode() + b"\n" + model + b"".join(data for step in steps for data in step.inputs)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "harness.reference"],
            input=request,
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return ReferenceRun("litert", refused=f"did not return in {timeout_s:g} s")
    if done.returncode != 0 or b"\n" not in done.stdout:
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or [""]
        return ReferenceRun("litert", refused=f"ended with {done.returncode}: {last[0]}")
    return parse_answer(done.stdout)


def parse_answer(answer: bytes) -> ReferenceRun:
    """The child's stdout: a JSON line, then the bytes of all outputs of all steps."""
    line, _, data = answer.partition(b"\n")
    header = json.loads(line)
    outputs, at = [], 0
    for sizes in header["output_bytes"]:
        pieces = []
        for size in sizes:
            pieces.append(data[at : at + size])
            at += size
        outputs.append(tuple(pieces))
    return ReferenceRun(header["backend"], tuple(outputs), tuple(header["dtypes"]), header["refused"])
