"""The second reference: the same model and inputs on the host board, for what LiteRT does not run."""

from __future__ import annotations

from collections.abc import Sequence

from harness.deadline import Deadline
from harness.device.bench import Bench
from harness.device.client import Device
from harness.errors import HarnessError
from harness.inputs import NUMPY_NAMES
from harness.link.serial_link import SerialLink
from harness.model.graph import Model, TensorType
from harness.plan.arena import plan_arena
from harness.plan.target import target_for
from harness.probe.protocol import FlashImage
from harness.reference.litert import ReferenceRun
from harness.sim.host.board import HostBoard
from harness.sweep.vectors import Vector, read_outputs, run_vector
from harness.units import safe_text

_TRIAL_TIMEOUT_S = 60.0


def run_tflm_on_host(model: Model, vectors: Sequence[Vector], deadline: Deadline) -> ReferenceRun:
    """Never raises for what the host board cannot do: that is told in ``refused``."""
    try:
        board = HostBoard()
    except HarnessError as exc:
        return ReferenceRun("TFLM host interpreter", refused=exc.message)
    try:
        link = SerialLink(board.port)
        try:
            return _run(board, Device(link), model, vectors, deadline)
        finally:
            link.close()
    except HarnessError as exc:
        return ReferenceRun("TFLM host interpreter", refused=exc.message)
    finally:
        board.close()


def _run(board: HostBoard, device: Device, model: Model, vectors: Sequence[Vector], deadline: Deadline) -> ReferenceRun:
    image = FlashImage(build_id=model.sha256[:32], model_sha256=model.sha256, model_path=model.path)
    board.flash(image, deadline)
    bench = Bench(board, device, image, vectors[0].inputs.plan, trial_timeout_s=_TRIAL_TIMEOUT_S)
    hello = bench.boot(deadline)
    backend = f"TFLM host interpreter {hello.tflm_commit}"
    ample = 2 * plan_arena(model, target_for("host")).min_bytes + 64 * 1024
    trial = bench.run(ample, None, deadline).trial
    if trial.output_digest == "":
        return ReferenceRun(backend, refused=safe_text(f"{trial.reason.value if trial.reason else ''} {trial.detail}"))
    outputs = [read_outputs(device, hello, deadline)]
    for vector in vectors[1:]:
        run_vector(bench, hello, vector, deadline)
        outputs.append(read_outputs(device, hello, deadline))
    main = model.subgraphs[0]
    # of an unusual type the bytes are compared
    dtypes = tuple(NUMPY_NAMES.get(TensorType(main.tensors[index].type), "uint8") for index in main.outputs)
    return ReferenceRun(backend, tuple(outputs), dtypes)
