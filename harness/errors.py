"""The error tree: one subclass per reaction of the caller, each with the exit code that it ends in."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from enum import IntEnum
from typing import TypeVar


class ExitCode(IntEnum):
    """What the process ends with. Several models: the highest code."""

    DONE = 0
    RESULT_BAD = 1  # refused, does not fit, mismatch, regression, unfit model
    USAGE = 2  # bad usage, unreadable input, or a choice is needed
    ENVIRONMENT = 3  # something required is not installed
    BUILD = 4
    PROBE = 5  # probe or flash failed, or no such board
    LINK = 6  # device or link
    INTERRUPTED = 130


class HarnessError(Exception):
    """Something the user has to know: what happened, with which values, and what to do next.

    ``code`` is a stable machine name (``model.truncated``), ``remedy`` one sentence that says what to do.
    """

    exit_code: ExitCode = ExitCode.RESULT_BAD
    default_code = "error"

    def __init__(self, message: str, *, remedy: str = "", code: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.code = code or self.default_code


E = TypeVar("E", bound=HarnessError)


def chain(exc: BaseException) -> Iterator[BaseException]:
    """``exc``, and what it came of: causes, and what was being handled when it was raised."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [exc]
    while waiting:
        link = waiting.pop()
        if link is not None and id(link) not in seen:
            seen.add(id(link))
            yield link
            waiting += [link.__context__, link.__cause__]


def was_interrupted(exc: BaseException) -> bool:
    """Whether ``exc`` came of a Ctrl-C: what is closed after one may raise an error of its own, which hides it."""
    return any(isinstance(link, KeyboardInterrupt) for link in chain(exc))


class UsageError(HarnessError):
    """The command cannot be carried out as given: bad option, unreadable input, or a choice is needed."""

    exit_code = ExitCode.USAGE
    default_code = "usage"


class ModelFileError(UsageError):
    """The bytes are not a readable ``.tflite`` model."""

    default_code = "model.unreadable"


class ConfigError(UsageError):
    """A configuration file (board, lab, suite) does not say what it must."""

    default_code = "config.invalid"


class UnfitModelError(HarnessError):
    """The model is readable, but TFLM cannot run it, or not rightly."""

    exit_code = ExitCode.RESULT_BAD
    default_code = "model.unfit"


class DoesNotFitError(HarnessError):
    """The arena, image or stack is larger than the board's memory."""

    exit_code = ExitCode.RESULT_BAD
    default_code = "fit.too_large"


class MissingDependencyError(HarnessError):
    """A package, program or library that this command needs is not installed."""

    exit_code = ExitCode.ENVIRONMENT
    default_code = "environment.missing"


class BuildError(HarnessError):
    """Rendering, compiling or linking the firmware failed."""

    exit_code = ExitCode.BUILD
    default_code = "build.failed"


class ProbeError(HarnessError):
    """The debug probe, the flash or the board's identity."""

    exit_code = ExitCode.PROBE
    default_code = "probe.failed"


class LinkError(HarnessError):
    """The link to the device: silence, damage beyond repair, a vanished port."""

    exit_code = ExitCode.LINK
    default_code = "link.failed"


class DeviceError(HarnessError):
    """The device answered, and the answer says that the run cannot be trusted."""

    exit_code = ExitCode.LINK
    default_code = "device.failed"


class DiskFullError(HarnessError):
    """There is no room for what has to be written."""

    exit_code = ExitCode.ENVIRONMENT
    default_code = "disk.full"


class InternalError(HarnessError):
    """Something that was not foreseen: a bug of this tool, told as one, without ending the work on other models."""

    default_code = "internal"


def is_disk_full(exc: OSError) -> bool:
    """The disk, the user's share of it, or what one file may have."""
    return exc.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def cannot_serve(kind: type[E], exc: OSError, code: str, *, port: int, host: str = "") -> E:
    """A server that could not be opened: because of its address, or its port."""
    number = exc.errno or 0
    if host and (number == errno.EADDRNOTAVAIL or number < 0):  # negative: of the resolver, which knows no such name
        return kind(
            f"cannot serve on {host}: it is no address of this computer",
            remedy="--host takes one of its addresses, or 0.0.0.0 for all",
            code=code,
        )
    reason = os.strerror(number) if number > 0 else str(exc)
    return kind(
        f"cannot serve on TCP port {port}: {reason}", remedy="name another port, or 0 for a free one", code=code
    )
