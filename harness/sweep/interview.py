"""What a device tells about itself besides its hello: the sizes of TFLM's structs, and what makes timing comparable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from harness.deadline import Deadline
from harness.device.client import Device, UnsupportedError
from harness.record.schema import EnvironmentRecord
from harness.sweep.evidence import environment_record
from harness.wire.messages import SizeRow

_ANSWER_S = 10.0
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class About:
    """``struct_sizes`` by name, empty where the device cannot tell; ``environment`` None likewise."""

    struct_sizes: dict[str, SizeRow]
    environment: EnvironmentRecord | None


def interview(device: Device, deadline: Deadline) -> About:
    """Ask what the device can answer, in the session that is open."""
    soon = deadline.sooner(_ANSWER_S)
    environment = _asked(lambda: device.environment(soon))
    return About(
        struct_sizes=_asked(lambda: device.sizes(soon)) or {},
        environment=environment_record(environment) if environment else None,
    )


def _asked(question: Callable[[], T]) -> T | None:
    """The answer, or None where the device does not support the question."""
    try:
        return question()
    except UnsupportedError:
        return None
