"""``--preserve-all-tensors``: a firmware that reuses no memory beside the one that does, on a twin."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.board.lab_file import RigEntry
from harness.cli.main import main
from harness.firmware.registry import VARIABLE
from harness.model.builder import ModelBuilder, layers, state
from harness.model.graph import TensorType
from harness.model.reader import parse_model
from harness.plan.arena import plan_arena
from harness.plan.target import target_for
from harness.record.schema import NoReuseRecord, OperatorDifferenceRecord, OverwrittenRecord, SweepRecord
from harness.record.store import read_record
from harness.sweep.flow import keep_record, measure_model, sweep_model
from harness.sweep.request import SilentProgress, Strategy, SweepRequest
from tests.firmware.fake_tflm import build_fake_tflm
from tests.firmware.offline import overwritten_input, placed

from .conftest import small_model, svdf_model

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
BOARD = "nucleo-f446re"
Sweep = Callable[..., SweepRecord]


def overwritten_output() -> bytes:
    """Operator 2 writes over what operator 0 gave as an output of the model."""
    builder = ModelBuilder(seed=1, description="an output written over")
    graph = builder.graph
    x = graph.input((1, 64), TensorType.INT8)
    first = layers.fully_connected(graph, x, 64)
    second = layers.fully_connected(graph, first, 48)
    third = layers.fully_connected(graph, second, 64)
    graph.output(first, third)
    return placed(builder, {x.index: 0, first.index: 64, second.index: 128, third.index: 64})


def written_over_itself() -> bytes:
    """Operator 1's output lies 16 bytes into its own input."""
    builder = ModelBuilder(seed=1, description="an operator over itself")
    graph = builder.graph
    x = graph.input((1, 64), TensorType.INT8)
    first = layers.fully_connected(graph, x, 64)
    second = layers.fully_connected(graph, first, 64)
    graph.output(second)
    return placed(builder, {x.index: 0, first.index: 64, second.index: 80})


def too_large_without_reuse() -> bytes:
    """Two places of 24,000 bytes for nine tensors; without reuse they take 216,000 of a board with 128 KiB."""
    builder = ModelBuilder(seed=1, description="a chain in two places")
    graph = builder.graph
    chain = [graph.input((1, 6000), TensorType.FLOAT32)]
    for _ in range(8):
        chain.append(layers.unary(graph, "NEG", chain[-1]))
    graph.output(chain[-1])
    return placed(builder, {value.index: 24000 * (number % 2) for number, value in enumerate(chain)})


def compared(record: SweepRecord) -> NoReuseRecord:
    assert record.no_reuse is not None, record.error
    return record.no_reuse


def test_the_same_outputs_cost_one_flash(sweep: Sweep) -> None:
    record = sweep(BOARD, no_reuse=True)
    assert record.status == "ok", record.error
    found = compared(record)
    assert record.search is not None and record.measured is not None and record.device is not None
    assert (found.verdict, found.vectors, found.flashes, record.search.flashes) == ("equal", 1, 1, 1)
    assert found.output_digest == record.measured.output_digest
    assert found.build_id not in {record.device.build_id, ""}
    plan = plan_arena(parse_model(small_model("a small model")), target_for("cortex-m4", interpreter="preserve_all"))
    assert found.planned_bytes == plan.min_exact_bytes
    assert found.arena_bytes is not None and found.arena_bytes >= plan.min_exact_bytes
    assert (found.first_difference, found.differing_vector, found.offline_plan_removed) == (None, None, False)
    assert record.record_path is not None and read_record(Path(record.record_path)).no_reuse == found


def test_without_the_option_nothing_is_compared(sweep: Sweep) -> None:
    assert sweep(BOARD).no_reuse is None


def test_the_reader_of_an_overwritten_tensor_and_who_wrote_over_it_are_named(sweep: Sweep) -> None:
    record = sweep(BOARD, model=overwritten_input(), check=False, no_reuse=True, runs=0)
    assert (record.status, record.error.code if record.error else "") == ("failed", "outputs.overlap")
    found = compared(record)
    assert (found.verdict, found.differing_vector, found.offline_plan_removed) == ("different", 0, True)
    assert found.flashes == 2  # the baseline, and the firmware under test again to look into it
    assert found.first_difference == OperatorDifferenceRecord(
        4, "ADD", ("main/add_4",), OverwrittenRecord(0, "features", 1, "FULLY_CONNECTED")
    )
    assert record.error is not None
    for words in (
        '"small.tflite" on rig desk (sim:nucleo-f446re)',
        'the first operator that computes otherwise is 4, ADD ("main/add_4")',
        'its input "features" (tensor 0) was written over by operator 1, FULLY_CONNECTED',
    ):
        assert words in record.error.message
    assert "offline memory plan" in record.error.remedy
    assert record.search is not None and record.search.min_bytes is not None  # what was measured is kept


def test_an_output_that_is_written_over_later_is_told(sweep: Sweep) -> None:
    record = sweep(BOARD, model=overwritten_output(), check=False, no_reuse=True, runs=0)
    assert compared(record).first_difference == OperatorDifferenceRecord(
        overwritten=OverwrittenRecord(3, "main/fully_connected_0", 2, "FULLY_CONNECTED")
    )
    assert record.error is not None and "each operator computes the same, and output" in record.error.message


def test_an_operator_that_writes_over_its_own_input_is_named_alone(sweep: Sweep) -> None:
    record = sweep(BOARD, model=written_over_itself(), check=False, no_reuse=True, runs=0)
    assert compared(record).first_difference == OperatorDifferenceRecord(
        1, "FULLY_CONNECTED", ("main/fully_connected_1",), None
    )
    assert record.error is not None and "no other operator had written over its inputs" in record.error.message


def test_what_does_not_fit_without_reuse_is_not_run_and_no_fault_of_the_model(sweep: Sweep) -> None:
    model = too_large_without_reuse()
    record = sweep(BOARD, model=model, check=False, no_reuse=True, runs=0)
    assert record.status == "ok", record.error
    found = compared(record)
    assert (found.verdict, found.flashes, found.arena_bytes) == ("not_run", 0, None)
    assert found.planned_bytes is not None and found.planned_bytes > 9 * 24000
    assert f"{found.planned_bytes:,} B" in found.detail
    assert "the largest arena that fits is" in found.detail


def test_a_sequence_is_compared_of_a_model_with_state(sweep: Sweep) -> None:
    record = sweep(BOARD, model=svdf_model("fake state<1"), no_reuse=True, runs=0)
    assert record.status == "ok", record.error
    assert (compared(record).verdict, compared(record).vectors) == ("equal", 7)


def test_a_measurement_compares_too(sweep: Sweep) -> None:
    record = sweep(BOARD, model=overwritten_input(), check=False, no_reuse=True, runs=2, job=measure_model)
    assert record.error is not None and record.error.code == "outputs.overlap"
    assert record.timing is not None and record.timing.ample.runs == 2


def test_a_certificate_comes_after_the_comparison(sweep: Sweep) -> None:
    record = sweep(BOARD, no_reuse=True, certify=True, runs=0)
    assert record.status == "ok", record.error
    assert compared(record).verdict == "equal"
    assert record.certificate is not None and record.certificate.works.outcome == "works"


def test_rtt_talks_to_both_firmwares(sweep: Sweep) -> None:
    record = sweep(BOARD, model=overwritten_input(), check=False, no_reuse=True, runs=0, transport="rtt")
    assert compared(record).first_difference is not None, compared(record)


@pytest.mark.parametrize(
    "choices", [{"interpreter": "preserve_all"}, {"strategy": Strategy.REFLASH}], ids=["preserve_all", "reflash"]
)
def test_what_has_no_baseline_is_refused(sweep: Sweep, choices: dict[str, object]) -> None:
    record = sweep(BOARD, no_reuse=True, **choices)
    assert record.error is not None and record.error.code == "usage"
    assert "--preserve-all-tensors compares" in record.error.message
    assert record.search is None


def test_a_shared_arena_has_no_baseline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    models = [str(EXAMPLES / f"{name}.tflite") for name in ("kws", "hello")]
    arguments = ["sweep", "--board", f"sim:{BOARD}", "--shared-arena", "--preserve-all-tensors"]
    assert main([*arguments, "--results", str(tmp_path), *models]) == 2
    assert "cannot share an arena with preserve_all" in capsys.readouterr().err


def test_a_tflm_without_profiler_events_names_no_operator(
    sweep: Sweep, tmp_path_factory: pytest.TempPathFactory
) -> None:
    library = build_fake_tflm(tmp_path_factory.mktemp("silent"), extra=("-DTF_LITE_STRIP_ERROR_STRINGS",))
    record = sweep(BOARD, model=overwritten_input(), check=False, no_reuse=True, runs=0, library=library)
    found = compared(record)
    assert (found.verdict, found.first_difference) == ("different", None)
    assert "TF_LITE_STRIP_ERROR_STRINGS" in found.detail
    assert record.error is not None
    assert (
        record.error.code == "outputs.overlap" and "no operator is named: this TFLM was built" in record.error.message
    )


@pytest.mark.tflm
def test_real_tflm_names_the_reader_and_who_wrote_over(tmp_path: Path) -> None:
    record = real_sweep(model_file(tmp_path, overwritten_input()), tmp_path, check=False)
    assert record.error is not None and record.error.code == "outputs.overlap"
    assert compared(record).first_difference == OperatorDifferenceRecord(
        4, "ADD", ("main/add_4",), OverwrittenRecord(0, "features", 1, "FULLY_CONNECTED")
    )


@pytest.mark.tflm
def test_real_tflm_finds_a_state_that_is_lost_between_inferences(tmp_path: Path) -> None:
    """The first inference is right: the state is written over only after it was used."""
    builder = ModelBuilder(seed=1, description="a state written over")
    graph = builder.graph
    x = graph.input((1, 64), TensorType.INT8)
    filtered = state.svdf(graph, x, 16, 8)
    wide = layers.fully_connected(graph, filtered, 64)
    last = layers.fully_connected(graph, wide, 16)
    graph.output(last)
    (variable,) = (index for index, tensor in enumerate(graph.tensors) if tensor.is_variable)
    # the variable has 512 bytes
    data = placed(builder, {variable: 0, x.index: 512, filtered.index: 576, wide.index: 0, last.index: 608})
    record = real_sweep(model_file(tmp_path, data), tmp_path, check=False)
    found = compared(record)
    assert (found.verdict, found.differing_vector, found.vectors) == ("different", 1, 7)
    assert found.first_difference == OperatorDifferenceRecord(
        0, "SVDF", ("main/svdf_0",), OverwrittenRecord(variable, "main/svdf_0/state", 1, "FULLY_CONNECTED")
    )
    assert record.error is not None and "(inference 1 of a sequence)" in record.error.message


@pytest.mark.tflm
@pytest.mark.parametrize("interpreter", ["plain", "recording"])
@pytest.mark.parametrize("name", ["kws", "residual", "svdf"])
def test_real_models_of_the_project_are_the_same_without_reuse(name: str, interpreter: str, tmp_path: Path) -> None:
    record = real_sweep(EXAMPLES / f"{name}.tflite", tmp_path, interpreter=interpreter)
    assert record.status == "ok", record.error
    assert (compared(record).verdict, compared(record).flashes) == ("equal", 1)


@pytest.mark.tflm
@pytest.mark.cases
@pytest.mark.parametrize(
    ("name", "vectors"),
    [("mlperf_kws_ref_int8", 1), ("mnist_lstm_int8", 7), ("esphome_v2_hey_jarvis", 7), ("synth_if_f", 1)],
)
def test_real_models_are_the_same_without_reuse(name: str, vectors: int, shared_dir: Path, tmp_path: Path) -> None:
    record = real_sweep(shared_dir / "models" / f"{name}.tflite", tmp_path, board="nucleo-f746zg")
    assert record.status == "ok", record.error
    assert (compared(record).verdict, compared(record).vectors, compared(record).flashes) == ("equal", vectors, 1)


def model_file(folder: Path, data: bytes) -> Path:
    path = folder / "made.tflite"
    path.write_bytes(data)
    return path


def real_sweep(path: Path, folder: Path, *, board: str = BOARD, **choices: object) -> SweepRecord:
    if not os.environ.get(VARIABLE):
        pytest.skip(f"{VARIABLE} names no TFLM library")
    request = SweepRequest(
        path,
        f"sim:{board}",
        results=folder,
        rig=RigEntry(name="desk", board=f"sim:{board}"),
        runs=0,
        reference=False,
        no_reuse=True,
        **choices,  # type: ignore[arg-type]
    )
    return keep_record(sweep_model(request, SilentProgress()))
