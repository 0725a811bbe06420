"""A better placement as an offline plan in the model: smaller, and real TFLM computes the same with it."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import struct
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from harness.device.bench import Bench, InputPlan
from harness.device.client import Device
from harness.errors import UsageError
from harness.link.serial_link import SerialLink
from harness.model.builder import EXAMPLES
from harness.model.builder.random_models import random_model
from harness.model.graph import Model
from harness.model.reader import parse_model, read_model
from harness.plan.arena import plan_arena
from harness.plan.better import NoBetterPlanError, plan_offline
from harness.plan.offline import METADATA_NAME, offline_offsets
from harness.plan.target import target_for
from harness.probe.protocol import FlashImage
from harness.sim.host.board import HostBoard
from harness.trial import Outcome
from tests.patience import PATIENCE_S, patient

GOLDEN = json.loads((Path(__file__).parent / "golden_arenas.json").read_text(encoding="utf-8"))


def model(name: str) -> Model:
    make = (lambda: random_model(int(name.removeprefix("random_")))) if name.startswith("random_") else EXAMPLES[name]
    return parse_model(make(), f"{name}.tflite")


@pytest.mark.parametrize(
    ("name", "was", "becomes"),
    [
        ("residual_int8", 4608, 3744),
        ("residual_int16", 9216, 7200),
        ("residual_float", 18432, 13824),
        ("random_40", 2112, 1568),
    ],
)
def test_the_head_shrinks(name: str, was: int, becomes: int) -> None:
    plan = plan_arena(model(name), target_for("cortex-m4"))
    better = plan_offline(model(name), plan)
    assert (plan.head_bytes, better.plan.head_bytes) == (was, becomes)
    assert better.plan.min_exact_bytes - plan.min_exact_bytes == becomes - was
    assert better.plan.tail_bytes == plan.tail_bytes


@pytest.mark.cases
@pytest.mark.parametrize("row", GOLDEN["offline_plan"], ids=lambda row: row["model"])
def test_what_was_measured_on_a_cortex_m4_is_planned(shared_dir: Path, row: dict[str, str | int]) -> None:
    source = read_model(shared_dir / "models" / f"{row['model']}.tflite")
    plan = plan_arena(source, target_for("cortex-m4"))
    better = plan_offline(source, plan).plan
    assert (plan.used_bytes, plan.min_exact_bytes) == (row["used"], row["min_exact"])
    assert (better.used_bytes, better.min_exact_bytes) == (row["offline_used"], row["offline_min_exact"])


def test_the_model_is_the_same_but_for_its_metadata() -> None:
    source = model("residual_int8")
    copy = parse_model(plan_offline(source, plan_arena(source, target_for("cortex-m4"))).data)
    assert copy.subgraphs == source.subgraphs
    assert [entry.name for entry in copy.metadata] == [*(entry.name for entry in source.metadata), METADATA_NAME]
    assert [bytes(copy.buffer_data(b.index)) for b in source.buffers] == [
        bytes(source.buffer_data(b.index)) for b in source.buffers
    ]
    words = struct.unpack(f"<{3 + len(source.subgraphs[0].tensors)}i", copy.buffer_data(copy.metadata[-1].buffer))
    assert words[:3] == (1, 1, len(source.subgraphs[0].tensors))
    assert all(word == -1 or word % 16 == 0 for word in words[3:])


def test_an_offline_plan_that_is_there_is_replaced() -> None:
    source = model("residual_int8")
    target = target_for("cortex-m4")
    first = plan_offline(source, plan_arena(source, target)).data
    with_plan = parse_model(first)
    with pytest.raises(NoBetterPlanError):
        plan_offline(with_plan, plan_arena(with_plan, target))
    host = target_for("host")
    again = parse_model(plan_offline(with_plan, plan_arena(source, host)).data)
    assert [entry.name for entry in again.metadata].count(METADATA_NAME) == 1
    assert offline_offsets(again) is not None


def test_a_model_that_is_placed_as_well_as_can_be_is_left_alone() -> None:
    source = model("ds_cnn_kws")
    with pytest.raises(NoBetterPlanError, match="no better placement"):
        plan_offline(source, plan_arena(source, target_for("cortex-m4")))


def test_the_linear_planner_takes_no_offline_plan() -> None:
    source = model("residual_int8")
    with pytest.raises(UsageError, match="linear planner"):
        plan_offline(source, plan_arena(source, target_for("cortex-m4", interpreter="preserve_all")))


@pytest.fixture(scope="module")
def board() -> Iterator[tuple[HostBoard, Device]]:
    with ExitStack() as stack:
        host = stack.enter_context(closing(HostBoard()))
        yield host, Device(stack.enter_context(closing(SerialLink(host.port))))


@pytest.mark.skipif(
    importlib.util.find_spec("tflite_micro") is None, reason="the tflite-micro wheel is Linux x86-64 only"
)
@pytest.mark.parametrize(
    "name", ["residual_int8", "residual_int16", "residual_float", "random_5", "random_34", "random_40"]
)
def test_real_tflm_computes_the_same_in_the_smaller_arena(
    name: str, board: tuple[HostBoard, Device], tmp_path: Path
) -> None:
    source = model(name)
    before = plan_arena(source, target_for("host"))
    better = plan_offline(source, before)
    digests = []
    for label, data, size in (("before", source.data, 4_000_000), ("after", better.data, better.plan.min_exact_bytes)):
        bench = flashed(board, tmp_path / f"{label}.tflite", data)
        run = bench.run(size, None, patient())
        assert run.report is not None and run.trial.outcome is Outcome.WORKS
        digests.append(run.report.output_digest)
    assert digests[0] == digests[1]
    below = bench.run(better.plan.min_exact_bytes - 1, digests[0], patient()).trial
    assert below.outcome is Outcome.TOO_SMALL
    assert better.plan.min_exact_bytes < before.min_exact_bytes


def flashed(board: tuple[HostBoard, Device], path: Path, data: bytes) -> Bench:
    host, device = board
    path.write_bytes(data)
    sha256 = hashlib.sha256(data).hexdigest()
    image = FlashImage(sha256[:32], sha256, model_path=str(path))
    host.flash(image, patient())
    return Bench(host, device, image, InputPlan.seeded(1), trial_timeout_s=PATIENCE_S)
