"""Opening a pyOCD session: the right probe, explicit options, and a short ladder of ways to connect.

Facts of pyOCD 0.46.0 that this module exists for: `Session` changes the working directory and reads configuration files
unless told not to; ``auto_unlock`` defaults to True and would mass-erase a locked chip; ids match by containment;
``fast_program`` has left holes in flash; memory reads may come from a cache.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from typing import Any

from harness.board.fault_ranges import FIRST_CLOCK_HZ
from harness.board.record import HardwareBoard
from harness.deadline import Deadline
from harness.errors import MissingDependencyError, ProbeError, was_interrupted
from harness.probe.kind import refuse_other_kind
from harness.probe.protection import is_locked, with_limits
from harness.probe.remote import bound_waits
from harness.probe.targets import register_target
from harness.probe.trouble import Place, translate

log = logging.getLogger(__name__)
# pyOCD logs every failed attempt as an error; the library is silent, the CLI may listen.
logging.getLogger("pyocd").addHandler(logging.NullHandler())

_FAST_HZ = FIRST_CLOCK_HZ
_SLOW_HZ = 400_000


@dataclass(frozen=True, slots=True)
class Rung:
    """One way to connect."""

    mode: str
    clock_hz: int

    def __str__(self) -> str:
        return f"{self.mode} at {self.clock_hz / 1e6:g} MHz"


def ladder(board: HardwareBoard) -> tuple[Rung, ...]:
    """At most three: as the board file says, under reset (sleeping firmware), and slowly (long or bad wires)."""
    rungs = (Rung(board.pyocd.connect, _FAST_HZ), Rung("under-reset", _FAST_HZ), Rung("under-reset", _SLOW_HZ))
    return tuple(dict.fromkeys(rungs))


def session_options(board: HardwareBoard, rung: Rung, operation_timeout_s: float = 10.0) -> dict[str, Any]:
    """Every option that matters, so that no configuration file or default decides.

    ``operation_timeout_s`` bounds one erasure of a sector or one programming of a page.
    """
    options: dict[str, Any] = {
        "no_config": True,
        "project_dir": os.getcwd(),  # noqa: PTH109 - pyOCD would chdir to whatever this says
        "target_override": board.pyocd.target,
        "auto_unlock": False,
        "connect_mode": rung.mode,
        "frequency": rung.clock_hz,
        "chip_erase": board.pyocd.erase,
        "smart_flash": True,
        "fast_program": False,
        "keep_unwritten": True,
        "hide_programming_progress": True,
        "cache.enable_memory": False,
        "vector_catch": "",
        "flash.timeout.init": operation_timeout_s,
        "flash.timeout.erase_sector": operation_timeout_s,
        "flash.timeout.program": operation_timeout_s,
        "resume_on_disconnect": True,
        "reset_type": {"system": "sysresetreq", "core": "vectreset", "hardware": "hw"}[board.pyocd.reset],
        "warning.cortex_m_default": False,
    }
    if board.pyocd.pack:
        options["pack"] = [board.pyocd.pack]
    return options


@dataclass(slots=True)
class OpenSession:
    """A session that is open, and how that came about."""

    session: Any
    rung: Rung
    attempts: tuple[str, ...]


def find_probe(probe_uid: str, place: Place) -> Any:
    """The probe with exactly this id (``remote:host:port`` for one on another machine). Opens nothing."""
    helper = import_pyocd()
    try:
        found = helper.get_all_connected_probes(blocking=False, unique_id=probe_uid, print_wait_message=False)
    except Exception as exc:  # pyOCD's USB back ends raise many types
        raise translate(exc, place) from exc
    remote = probe_uid.startswith("remote:")
    exact = [probe for probe in found if remote or probe.unique_id.lower() == probe_uid.lower()]
    if len(exact) != 1:
        raise ProbeError(
            f"rig {place.rig}: probe {probe_uid} is not plugged in",
            remedy="harness lab discover lists the probes that are; check the cable",
            code="probe.absent",
        )
    if remote:
        bound_waits(exact[0])
    return exact[0]


def open_session(
    board: HardwareBoard, probe_uid: str, rig: str, deadline: Deadline, operation_timeout_s: float = 10.0
) -> OpenSession:
    """Raises ProbeError that names each way that was tried. A protected chip is not opened by force."""
    if board.pyocd.target.lower() == "cortex_m":
        raise ProbeError(
            f"{board.name}: pyOCD's generic target cortex_m can debug, but not program flash",
            remedy="name the chip's own target in the board file (pyocd: target)",
            code="probe.generic_target",
        )
    import_pyocd()
    if not board.pyocd.pack and not register_target(board):
        raise ProbeError(
            f"pyOCD has no built-in target {board.pyocd.target}",
            remedy="download the CMSIS-Pack with pyocd pack, and name its path in the board file (pyocd: pack)",
            code="probe.unknown_target",
        )
    return _climb(board, probe_uid, Place(rig, "connecting"), deadline, operation_timeout_s)


def _climb(
    board: HardwareBoard, probe_uid: str, place: Place, deadline: Deadline, operation_timeout_s: float
) -> OpenSession:
    tried: list[str] = []
    last: ProbeError | None = None
    for rung in ladder(board):
        probe = find_probe(probe_uid, place)
        try:
            session = _open(probe, session_options(board, rung, operation_timeout_s))
        except ProbeError:
            raise
        except Exception as exc:  # whatever pyOCD and its USB back ends raise
            last = with_limits(translate(exc, place), board, _description(probe))
            tried.append(f"{rung}: {last.code.partition('.')[2]}")
            log.info("%s: %s failed: %s", place.rig, rung, exc)
            if last.code not in ("probe.no_target", "probe.transfer_fault", "probe.timeout", "probe.failed"):
                raise last from exc
            if deadline.passed:
                break
        else:
            try:
                refuse_other_kind(session.probe, board, place.rig)
            except BaseException:
                close_session(session)
                raise
            return OpenSession(session, rung, (*tried, f"{rung}: connected"))
    assert last is not None
    raise ProbeError(f"{last.message}; tried {', '.join(tried)}", remedy=last.remedy, code=last.code) from last


def _open(probe: Any, options: dict[str, Any]) -> Any:
    from pyocd.core.session import Session

    session = Session(probe, auto_open=False, options=options)
    try:
        session.open()
    except BaseException as exc:
        # pyOCD stumbles over a closed chip, which shows no core; the debug port is open all the same.
        if isinstance(exc, Exception) and _shows_lock(session):
            return session
        close_session(session)
        raise
    if not is_locked(session) and not session.target.cores:
        close_session(session)
        raise RuntimeError("No cores were discovered!")
    return session


def _description(probe: Any) -> str:
    """ "" where the probe does not tell any more: a remote one is asked through its connection."""
    try:
        return str(probe.description)
    except Exception as exc:  # the first error counts
        log.debug("asking for the probe's description: %s", exc)
        return ""


def _shows_lock(session: Any) -> bool:
    try:
        return is_locked(session)
    except Exception as exc:  # the first error counts
        log.debug("asking for the lock: %s", exc)
        return False


def close_session(session: Any) -> None:
    """Whatever state it is in; a probe that is gone cannot be told goodbye. Ctrl-C meanwhile is raised at the end."""
    interrupted = False
    try:
        session.close()
    except Exception as exc:
        log.debug("closing the session: %s", exc)
        interrupted = was_interrupted(exc)
    probe = session.probe
    if probe is not None and probe.is_open:
        try:
            probe.close()
        except Exception as exc:
            log.debug("closing the probe: %s", exc)
            interrupted = interrupted or was_interrupted(exc)
    if interrupted:
        raise KeyboardInterrupt


def import_pyocd() -> Any:
    """pyOCD's ConnectHelper. Raises MissingDependencyError."""
    try:
        from pyocd.core.helpers import ConnectHelper
    except ImportError as exc:
        raise MissingDependencyError(
            "flashing boards needs pyOCD, which is not installed",
            remedy='install the extra: pip install "tflm-harness[pyocd]"',
            code="environment.pyocd",
        ) from exc
    return ConnectHelper
