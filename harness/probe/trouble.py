"""pyOCD's exceptions as ours: which rig, which step, what it means, and what to do.

pyOCD tells most causes apart by text only. The texts are those of pyOCD 0.46.0 and of the reports collected for it
(issues 267, 497, 877, 1054, 1322, 1689, 1719 of pyocd/pyOCD).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from harness.errors import ProbeError, chain
from harness.units import safe_text


@dataclass(frozen=True, slots=True)
class Place:
    """Where something went wrong: the rig's name and the step, as a user knows them."""

    rig: str
    step: str


@dataclass(frozen=True, slots=True)
class _Cause:
    pattern: re.Pattern[str]
    code: str
    text: str
    remedy: str


def _cause(pattern: str, code: str, text: str, remedy: str) -> _Cause:
    return _Cause(re.compile(pattern, re.IGNORECASE), code, text, remedy)


_CAUSES = (
    _cause(
        r"connection (refused|lost|reset|aborted)|broken pipe|timed out.*connect|no route|name or service not known",
        "probe.remote_unreachable",
        "the remote probe's server does not answer",
        "check host and port, and that pyocd server or harness sim serve runs there",
    ),
    _cause(
        r"errno 13|access denied|insufficient permissions|permission denied",
        "probe.no_permission",
        "this user may not open the probe",
        "add a udev rule for the probe (docs/rigs.md), then plug it in again",
    ),
    _cause(
        r"errno 16|resource busy|already open|in use|claim",
        "probe.busy",
        "another program has the probe open",
        "close it (an IDE, a debugger, another harness) and run again",
    ),
    _cause(
        r"older firmware|unsupported.*firmware|firmware.*update",
        "probe.old_firmware",
        "the probe's own firmware is too old",
        "update it with STM32CubeProgrammer (ST-LINK firmware upgrade), then run again",
    ),
    _cause(
        r"errno 19|errno 5\b|no such device|disconnected|unplugged|not plugged in|pipe error",
        "probe.unplugged",
        "the probe is gone",
        "plug it in again, and give the same command again: a sweep goes on from its finished trials",
    ),
    _cause(
        r"not recognized|target type|no cmsis-pack",
        "probe.unknown_target",
        "pyOCD has no description of this chip",
        "name a CMSIS-Pack in the board file (pyocd: pack), or a pyOCD target that is built in",
    ),
    _cause(
        r"no ack|target not detected|not detected|no cores|unexpected ack|protocol|debug power|idcode",
        "probe.no_target",
        "the probe is there, the chip does not answer",
        "check the board's power, the SWD wires and NRST; hold the reset button and try again",
    ),
)


def translate(exc: BaseException, place: Place, *, detail: str = "") -> ProbeError:
    """The error to raise ``from exc``. ``detail`` is what the caller found out besides (a controller's state)."""
    if isinstance(exc, ProbeError):
        return exc
    lost = next((link for link in chain(exc) if isinstance(link, ConnectionError)), None)
    if lost is not None:  # pyOCD's unlocking of a probe whose server is gone ends in an AssertionError above it
        exc = lost
    said = safe_text(str(exc).strip() or type(exc).__name__)
    more = f"; {detail}" if detail else ""
    for cause in _CAUSES:
        if cause.pattern.search(str(exc)):
            return ProbeError(
                f"rig {place.rig}, {place.step}: {cause.text} ({said}{more})", remedy=cause.remedy, code=cause.code
            )
    kind = type(exc).__name__
    code, remedy = _BY_TYPE.get(kind, ("probe.failed", "run again with --debug for pyOCD's own log"))
    return ProbeError(f"rig {place.rig}, {place.step}: {said}{more}", remedy=remedy, code=code)


_BY_TYPE = {
    "FlashEraseFailure": (
        "flash.erase_failed",
        "power the board off and on; if it stays, the sector may be write-protected or worn out",
    ),
    "FlashProgramFailure": (
        "flash.program_failed",
        "power the board off and on; if it stays, the sector may be write-protected or worn out",
    ),
    "TransferFaultError": (
        "probe.transfer_fault",
        "a fault inside flash mostly means read-out protection: STM32CubeProgrammer shows the option bytes",
    ),
    "TransferTimeoutError": ("probe.timeout", "power the board off and on and run again"),
    "TimeoutError": ("probe.timeout", "power the board off and on and run again"),
}
