"""The ample run: does the model run at all on this device, and what does it tell when memory is no matter."""

from __future__ import annotations

from collections.abc import Iterator

from harness.deadline import Deadline
from harness.device.bench import Bench, TrialRun
from harness.device.client import Device, UnsupportedError
from harness.errors import DeviceError, DoesNotFitError, HarnessError, LinkError, UnfitModelError
from harness.trial import Reason, Trial
from harness.units import align_down, align_up, format_size, safe_text
from harness.wire.messages import ReadObject

#: An arena that is larger than the prediction by this much, or twice the prediction, is ample.
_SPARE_BYTES = 16 * 1024
#: How far a wrong plan is followed up where the capacity allows more.
_SECOND_FACTOR = 8
_SECOND_LEAST_BYTES = 64 * 1024 * 1024
#: TFLM prints a line or two; a device that prints without end is not listened to for ever.
_LOG_CHARS = 500


def ample_sizes(predicted_bytes: int, capacity_bytes: int) -> Iterator[int]:
    """Sizes for the first run, multiples of 16: the second is for a plan that was far too low.

    Raises DoesNotFitError when the prediction is beyond the capacity.
    """
    capacity = align_down(capacity_bytes, 16)
    if predicted_bytes > capacity:
        raise DoesNotFitError(
            f"the model needs an arena of {format_size(predicted_bytes)}, the board has {format_size(capacity)}",
            remedy="take a smaller model, or a board with more memory: harness boards",
            code="fit.arena_too_large",
        )
    first = min(capacity, align_up(max(2 * predicted_bytes, predicted_bytes + _SPARE_BYTES), 16))
    yield first
    second = min(capacity, max(_SECOND_LEAST_BYTES, align_up(_SECOND_FACTOR * first, 16)))
    if second > first:
        yield second


def ample_run(bench: Bench, sizes: Iterator[int], deadline: Deadline) -> TrialRun:
    """The first run that works, or the last that does not: a size that was too low is followed by a larger one."""
    for size in sizes:
        run = bench.run(size, None, deadline)
        if run.trial.reason is not Reason.ALLOC_FAILED:
            break
    return run


def tflm_log(device: Device, deadline: Deadline) -> str:
    """What TFLM printed since boot, on one line; empty where the device does not keep it."""
    try:
        data = device.read_object(ReadObject.LOG, 0, 64, deadline.sooner(5.0))
    except (LinkError, DeviceError, UnsupportedError):
        return ""
    lines = [line.strip() for line in data.decode("utf-8", "replace").splitlines() if line.strip()]
    return safe_text(" | ".join(lines), _LOG_CHARS)


def ample_failure(run: TrialRun, log: str) -> HarnessError:
    """Why the model or the device is at fault: with an ample arena it is not the arena."""
    trial = run.trial
    text = log or trial.detail or "no reason given"
    arena = format_size(trial.arena_bytes)
    match trial.reason:
        case Reason.ALLOC_FAILED:
            return UnfitModelError(
                f"AllocateTensors fails in an ample arena of {arena}: {text}",
                remedy="harness check names what TFLM cannot do with this model",
                code="trial.alloc_failed",
            )
        case Reason.INVOKE_FAILED:
            return UnfitModelError(
                f"Invoke fails in an ample arena of {arena}: {text}",
                remedy="harness check names what TFLM cannot do with this model",
                code="trial.invoke_failed",
            )
        case Reason.LINK_LOST:
            return LinkError(f"the link was lost: {trial.detail}", remedy="check cable and port, then run again")
        case None:
            return DeviceError(trial.detail, remedy="rebuild and flash the firmware", code="trial.device")
        case Reason.TIMEOUT:
            return DeviceError(
                f"{trial.detail} (ample arena of {arena})",
                remedy="the model may loop for ever on this input: choose another with --fill or --input, "
                "or allow more with --trial-timeout",
                code="trial.timeout",
            )
        case _:
            return DeviceError(
                f"{trial.reason.value} with an ample arena of {arena}: {trial.detail}",
                remedy="the model or the firmware is at fault, not the arena: harness check, harness monitor",
                code=f"trial.{trial.reason.value}",
            )


def search_failure(trial: Trial) -> HarnessError:
    """Why the search could not go on after ``trial``."""
    where = f"in the trial of {format_size(trial.arena_bytes)}"
    remedy = "run again: the trials that ended are kept and the sweep goes on from them"
    if trial.reason is Reason.LINK_LOST:
        return LinkError(f"the link was lost {where}: {trial.detail}", remedy=remedy)
    return DeviceError(f"{trial.detail or 'error'} {where}", remedy=remedy, code="trial.device")
