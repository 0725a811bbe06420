"""LiteRT in a process of its own: what it computes, and how it refuses."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from harness.reference.litert import run_litert
from harness.reference.steps import Step

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

pytestmark = [
    pytest.mark.backend,
    pytest.mark.skipif(
        not any(importlib.util.find_spec(name) for name in ("tflite_runtime", "ai_edge_litert")),
        reason="neither tflite-runtime nor ai-edge-litert is installed",
    ),
]


def test_it_computes_and_names_itself() -> None:
    run = run_litert((EXAMPLES / "hello.tflite").read_bytes(), [Step((np.zeros(1, np.int8).tobytes(),))], 60)
    assert run.refused == ""
    assert run.backend.split()[0] in {"tflite-runtime", "ai-edge-litert"}
    assert [len(output) for output in run.outputs] == [1]
    assert run.dtypes == ("int8",)


def test_a_model_that_it_refuses_is_told_not_raised() -> None:
    run = run_litert(b"\x1c\0\0\0TFL3" + bytes(64), [Step(())], 60)
    assert run.outputs == ()
    assert run.refused


def test_a_run_that_does_not_end_is_ended() -> None:
    run = run_litert((EXAMPLES / "hello.tflite").read_bytes(), [Step((b"\0",))], 0.001)
    assert run.refused == "did not return in 0.001 s"


def test_an_operator_without_a_reference_kernel_is_computed_by_the_optimised_one(shared_dir: Path) -> None:
    model = (shared_dir / "models" / "synth_elu_int8.tflite").read_bytes()
    run = run_litert(model, [Step((np.zeros(64, np.int8).tobytes(),))], 60)
    assert "Didn't find op" not in run.refused
