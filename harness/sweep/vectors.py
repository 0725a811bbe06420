"""The inferences whose outputs are compared: one for a model without state, a sequence for one with it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from harness.deadline import Deadline
from harness.device.bench import Bench
from harness.device.client import Device
from harness.inputs import InputChoice, ModelInputs, given_inputs, resolve_inputs
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


def vectors_for(models: Sequence[Model], choice: InputChoice) -> list[Vector]:
    """The first is the trial's own. With state: some in sequence, then the same ones each after a reset. Seeds count
    up; a fill and given files are the same each time. Of models that share an arena the first only: to read the outputs
    of one of them again it runs again, from its first state."""
    model, *others = models
    first = Vector(resolve_inputs(model, choice, others))
    if others or not is_stateful(model):
        return [first]
    later = [
        resolve_inputs(model, dataclasses.replace(choice, seed=(choice.seed + number) % (1 << 64)))
        for number in range(1, _SEQUENCE)
    ]
    return [first, *(Vector(inputs, reset=False) for inputs in later), *(Vector(inputs) for inputs in later)]


def vectors_of_each(models: Sequence[Model], vectors: Sequence[Vector]) -> list[tuple[Model, Sequence[Vector]]]:
    """Each model with its own inputs, as it runs alone."""
    if len(models) == 1:
        return [(models[0], vectors)]
    made = [(vector.inputs.make(), vector.reset) for vector in vectors]
    apart: list[tuple[Model, Sequence[Vector]]] = []
    first = 0
    for model in models:
        end = first + len(model.subgraphs[0].inputs)
        apart.append((model, [Vector(given_inputs(data[first:end]), reset) for data, reset in made]))
        first = end
    return apart


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
