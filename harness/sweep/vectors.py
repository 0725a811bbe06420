"""The inferences whose outputs are compared: one for a model without state, a sequence for one with it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from harness.deadline import Deadline
from harness.device.bench import Bench
from harness.device.client import Device
from harness.inputs import InputChoice, ModelInputs, resolve_inputs
from harness.model.graph import Model
from harness.model.state import is_stateful
from harness.reference.steps import Step
from harness.wire import messages as wire

#: Inferences in a row without a reset between them.
_SEQUENCE = 4


@dataclass(frozen=True, slots=True)
class Vector:
    """One inference. ``reset``: the model's state is as new before it."""

    inputs: ModelInputs
    reset: bool = True

    @property
    def step(self) -> Step:
        return Step(self.inputs.make(), self.reset)


def vectors_for(model: Model, choice: InputChoice) -> list[Vector]:
    """The first is the trial's own. With state: some in sequence, then the same ones each after a reset. Seeds count
    up; a fill and given files are the same each time."""
    first = Vector(resolve_inputs(model, choice))
    if not is_stateful(model):
        return [first]
    later = [
        resolve_inputs(model, dataclasses.replace(choice, seed=(choice.seed + number) % (1 << 64)))
        for number in range(1, _SEQUENCE)
    ]
    return [first, *(Vector(inputs, reset=False) for inputs in later), *(Vector(inputs) for inputs in later)]


def run_vector(bench: Bench, hello: wire.Hello, vector: Vector, deadline: Deadline) -> int:
    """One inference in the boot of a trial that worked; the digest of its outputs."""
    bench.set_inputs(hello, deadline, vector.inputs.plan)
    return bench.device.measure(0, 1, deadline, reset_state=vector.reset).output_digest


def read_outputs(device: Device, hello: wire.Hello, deadline: Deadline) -> tuple[bytes, ...]:
    """The bytes of all outputs of the last inference."""
    chunk = hello.chunk_bytes
    return tuple(
        device.read_object(wire.ReadObject.OUTPUT, index, chunk, deadline) for index in range(hello.output_count)
    )
