"""Other ways to lay arenas out: a persistent and a non-persistent one apart, and one arena for several models.

Both take the setup steps of ordinary plans and replay them under the rules of the other layout. Verified on real TFLM
90b983c (Cortex-M4): tests/plan/golden_arenas.json.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.abi import ARENA_ALIGNMENT, Abi
from harness.errors import UnfitModelError, UsageError
from harness.plan.arena import ArenaPlan, Confidence
from harness.plan.setup import Category, Setup, SetupStep, StepKind, TailItem
from harness.plan.target import Interpreter
from harness.units import align_up

#: SingleArenaBufferAllocator, the planner and MicroAllocator: the steps of MicroAllocator::Create.
_CONSTRUCTION_STEPS = 3


@dataclass(frozen=True, slots=True)
class TwoArenas:
    """MicroAllocator::Create(persistent, size, non_persistent, size). Sizes to the byte for 16-aligned bases.

    The non-persistent arena holds the activations and scratch buffers, which every operator reads and writes: the one
    for fast memory. The persistent arena holds what is set up once (operator data, tensor structs, variable tensors)
    and may lie in slower memory. ``used_bytes`` is arena_used_bytes(): head and persistent bytes.
    """

    persistent_bytes: int
    nonpersistent_bytes: int
    used_bytes: int
    nonpersistent_limit: SetupStep


@dataclass(frozen=True, slots=True)
class SharedArena:
    """Interpreters of several models with one MicroAllocator, set up in this order; one runs at a time.

    The tails add up, the head is the largest one, the allocator's own objects are there once. ``limit`` is the step
    that fails at one byte less than ``min_exact_bytes``, of the model with number ``limit_model``. ``tail`` is how the
    persistent allocations of all lie in an arena of ``min_bytes``.
    """

    head_bytes: int
    tail_bytes: int
    min_exact_bytes: int
    limit: SetupStep
    limit_model: int
    confidence: Confidence
    tail: tuple[TailItem, ...]

    @property
    def used_bytes(self) -> int:
        return self.head_bytes + self.tail_bytes

    @property
    def min_bytes(self) -> int:
        return align_up(self.min_exact_bytes, ARENA_ALIGNMENT)


def two_arenas(plan: ArenaPlan, abi: Abi) -> TwoArenas:
    """What a plan's model needs when its arena is split. Raises UsageError for the recording interpreter, which TFLM
    has for one arena only."""
    if plan.target.interpreter is Interpreter.RECORDING:
        raise UsageError(
            "the recording interpreter has one arena only (TFLM recording_micro_allocator.h)",
            remedy="plan two arenas with --interpreter plain",
        )
    single, planner, allocator = plan.setup.steps[:_CONSTRUCTION_STEPS]
    fixed = [
        _resized(single, abi, "PersistentArenaBufferAllocator"),
        _resized(single, abi, "NonPersistentArenaBufferAllocator"),
        planner,
        allocator,
    ]
    steps = [*fixed, *plan.setup.steps[_CONSTRUCTION_STEPS:]]
    # CreatePersistentArenaAllocator aligns the end of the persistent arena down to 16.
    persistent = align_up(Setup(steps=steps).tail_bytes(_ample(steps)), ARENA_ALIGNMENT)
    others = [step for step in steps if step.kind is not StepKind.PERSISTENT]
    limit = max(others, key=lambda step: step.floor_bytes)
    used = Setup(steps=steps).tail_bytes(_ample(steps)) + plan.head_bytes
    return TwoArenas(persistent, limit.floor_bytes, used, limit)


def shared_arena(plans: Sequence[ArenaPlan]) -> SharedArena:
    """What several models need together. Raises UnfitModelError for preserve_all_tensors: the linear planner is not
    reset between models (LinearMemoryPlanner has no Init), so the second would be given the first one's offsets."""
    if any(plan.target.interpreter is Interpreter.PRESERVE_ALL for plan in plans):
        raise UnfitModelError(
            "several models cannot share an arena with preserve_all_tensors: TFLM's linear planner keeps the buffers "
            "of the first model and gives their offsets to the second",
            code="plan.shared_linear",
            remedy="plan them with --interpreter plain",
        )
    if len({plan.target for plan in plans}) > 1:
        raise UsageError("models that share an arena are planned for one target", remedy="give one target for all")
    steps = list(plans[0].setup.steps[:_CONSTRUCTION_STEPS])
    owners = [0] * len(steps)
    head = 0
    for number, plan in enumerate(plans):
        own = _after_other_models(plan, head)
        head = max(head, plan.head_bytes)
        steps += own
        owners += [number] * len(own)
    together = Setup(steps=steps)
    minimum, limit = together.minimum()
    owner = next(number for step, number in zip(steps, owners, strict=True) if step is limit)
    confidence = min((plan.confidence for plan in plans), key=lambda known: known is Confidence.EXACT)
    smallest = align_up(minimum, ARENA_ALIGNMENT)
    tail = tuple(together.tail_items(smallest))
    return SharedArena(head, together.tail_bytes(smallest), minimum, limit, owner, confidence, tail)


def _after_other_models(plan: ArenaPlan, head_bytes: int) -> list[SetupStep]:
    """A model's setup steps behind those of others whose largest head is ``head_bytes``. The head shrinks to the
    scratch requests while a model is set up (nobody runs then), and is put back to the largest of all at its end."""
    steps = plan.setup.steps[_CONSTRUCTION_STEPS:]
    heads = [at for at, step in enumerate(steps) if step.kind is StepKind.HEAD]
    first, last = heads[0], heads[-1]
    final = max(head_bytes, plan.head_bytes)
    adjusted = []
    for at, step in enumerate(steps):
        if at < first:
            adjusted.append(replace(step, floor_bytes=max(step.floor_bytes, head_bytes)))
        elif at == last:
            adjusted.append(replace(step, size_bytes=final, floor_bytes=final))
        else:
            adjusted.append(replace(step, floor_bytes=max(step.floor_bytes, final)) if at > last else step)
    return adjusted


def _resized(step: SetupStep, abi: Abi, struct: str) -> SetupStep:
    size, alignment = abi.size(struct), abi.alignment(struct)
    return replace(step, label=struct, size_bytes=size, alignment=alignment, category=Category.ALLOCATOR)


def _ample(steps: Sequence[SetupStep]) -> int:
    """A size, multiple of 16, that is more than enough: every allocation with the most padding it can have."""
    return align_up(sum(step.size_bytes + step.alignment for step in steps), ARENA_ALIGNMENT)
