"""The plan for the host against real TFLM on the host board: on the project's own models and on random ones."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from harness.device.bench import Bench, InputPlan
from harness.device.client import Device
from harness.link.serial_link import SerialLink
from harness.model.builder import EXAMPLES
from harness.model.builder.random_models import random_model
from harness.model.reader import read_model
from harness.plan.arena import Confidence, plan_arena
from harness.plan.target import target_for
from harness.probe.protocol import FlashImage
from harness.sim.host.board import HostBoard
from harness.trial import Outcome
from tests.patience import PATIENCE_S, patient
from tests.plan.one_operator import ONE_OPERATOR

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("tflite_micro") is None, reason="the tflite-micro wheel is Linux x86-64 only"
)
AMPLE_BYTES = 4_000_000
#: Their outputs hold what was in the arena until enough input has come.
NOT_YET_VALID = {"CIRCULAR_BUFFER", "SignalFramer", "SignalStacker"}
#: Refuse random input (boxes that are none), and an output shape with an open dimension that the host board reads.
NOT_RUN = {"TFLite_Detection_PostProcess", "RESHAPE_open"}
MODELS: dict[str, Callable[[], bytes]] = (
    EXAMPLES | ONE_OPERATOR | {f"random_{seed}": (lambda seed=seed: random_model(seed)) for seed in range(30)}
)


@pytest.fixture(scope="module")
def board() -> Iterator[tuple[HostBoard, Device]]:
    with ExitStack() as stack:
        host = stack.enter_context(closing(HostBoard()))
        yield host, Device(stack.enter_context(closing(SerialLink(host.port))))


@pytest.mark.parametrize("name", sorted(MODELS.keys() - NOT_RUN))
def test_planned_used_and_minimum_are_what_tflm_reports_and_needs(
    name: str, board: tuple[HostBoard, Device], tmp_path: Path
) -> None:
    data = MODELS[name]()
    path = tmp_path / "model.tflite"
    path.write_bytes(data)
    plan = plan_arena(read_model(path), target_for("host"))
    assert plan.confidence is Confidence.EXACT

    host, device = board
    sha256 = hashlib.sha256(data).hexdigest()
    image = FlashImage(sha256[:32], sha256, model_path=str(path))
    host.flash(image, patient())
    bench = Bench(host, device, image, InputPlan.seeded(1), trial_timeout_s=PATIENCE_S)
    ample = bench.run(AMPLE_BYTES, None, patient())
    assert ample.report is not None
    assert (ample.trial.outcome, ample.trial.used_bytes) == (Outcome.WORKS, plan.used_bytes)

    digest = ample.report.output_digest
    expected = None if name in NOT_YET_VALID else digest
    at_minimum = bench.run(plan.min_exact_bytes, expected, patient()).trial
    below = bench.run(plan.min_exact_bytes - 1, digest, patient()).trial
    assert (at_minimum.outcome, below.outcome) == (Outcome.WORKS, Outcome.TOO_SMALL)
