"""Rigs of a labgrid lab: places of a coordinator (LG_COORDINATOR), acquired for a run and released after it.

A place is a rig where it has the tag ``harness-board=NAME``. Its serial port is the NetworkSerialPort resource that the
place matches; its probe is the tag ``harness-probe=remote:host:port``, pyOCD's probe server, as labgrid has no such
resource. Owner of ``import labgrid``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from harness.board.lab_file import RigEntry
from harness.errors import ConfigError, LinkError, MissingDependencyError
from harness.units import quoted, safe_text

logger = logging.getLogger(__name__)
T = TypeVar("T")

BOARD_TAG = "harness-board"
PROBE_TAG = "harness-probe"
_ANSWER_TIMEOUT_S = 20.0
_DEFAULT_PORT = 20408


class LabgridError(LinkError):
    """The coordinator does not answer, or does not give a place."""

    default_code = "labgrid.failed"


@dataclass(frozen=True, slots=True)
class PlaceRigs:
    """``rigs`` are acquired; ``notes`` say which places were left out, and why."""

    rigs: tuple[RigEntry, ...]
    notes: tuple[str, ...]


def list_places(coordinator: str) -> tuple[RigEntry, ...]:
    """The places with a board, without acquiring any; what only an acquired place tells is left empty."""

    def look(session: Any, _loop: Any) -> tuple[RigEntry, ...]:
        return tuple(
            RigEntry(name=name, board=place.tags[BOARD_TAG])
            for name, place in sorted(session.places.items())
            if BOARD_TAG in place.tags
        )

    return _with_session(coordinator, look)


@contextmanager
def acquired_rigs(coordinator: str, wanted: Callable[[RigEntry], bool]) -> Iterator[PlaceRigs]:
    """Every free place that is wanted, acquired until the context ends. A place of somebody else is left to them."""
    taken: list[str] = []
    rigs: list[RigEntry] = []
    notes: list[str] = []

    def acquire(session: Any, loop: Any) -> None:
        for _, place in sorted(session.places.items()):
            if BOARD_TAG not in place.tags or not wanted(RigEntry(name=place.name, board=place.tags[BOARD_TAG])):
                continue
            if place.acquired:
                notes.append(f"place {place.name} is held by {safe_text(place.acquired)}")
                continue
            _call(session, loop, "AcquirePlace", place.name)
            taken.append(place.name)
            rigs.append(_entry(session, session.places[place.name]))

    try:
        _with_session(coordinator, acquire)
        yield PlaceRigs(tuple(rigs), tuple(notes))
    finally:
        _release(coordinator, taken)


def _release(coordinator: str, names: list[str]) -> None:
    """A coordinator that is away keeps the places: that is said, and hides no other error."""

    def release(session: Any, loop: Any) -> None:
        for name in names:
            _call(session, loop, "ReleasePlace", name)

    if not names:
        return
    try:
        _with_session(coordinator, release)
    except LabgridError as exc:
        logger.warning("places %s stay acquired: %s; labgrid-client release", ", ".join(names), exc.message)


def _entry(session: Any, place: Any) -> RigEntry:
    """An acquired place as a rig."""
    ports = [
        resource for (_, cls), resource in session.get_target_resources(place).items() if cls == "NetworkSerialPort"
    ]
    if len(ports) != 1:
        raise LabgridError(
            f"place {place.name} has {len(ports)} NetworkSerialPort resources, not one",
            remedy=f"labgrid-client -p {place.name} add-match: match the port of the board's UART",
        )
    values = ports[0].args
    scheme = "socket" if values.get("protocol") == "raw" else "rfc2217"
    fields = {
        "name": place.name,
        "board": place.tags[BOARD_TAG],
        "probe": place.tags.get(PROBE_TAG, ""),
        "port": f"{scheme}://{values['host']}:{values['port']}",
    }
    try:
        return msgspec.convert(fields, RigEntry)
    except msgspec.ValidationError as exc:
        raise ConfigError(f"place {place.name}: {exc}", remedy="labgrid-client set-tags corrects it") from exc


def _call(session: Any, loop: Any, method: str, name: str) -> None:
    """One request about a place, and its effect seen."""
    import grpc
    from labgrid.remote.generated import labgrid_coordinator_pb2 as messages

    request = getattr(messages, f"{method}Request")(placename=name)

    async def ask() -> None:
        await getattr(session.stub, method)(request)
        await session.sync_with_coordinator()

    try:
        loop.run_until_complete(asyncio.wait_for(ask(), _ANSWER_TIMEOUT_S))
    except grpc.aio.AioRpcError as exc:
        raise LabgridError(
            f"labgrid: {method} of {quoted(name)}: {safe_text(exc.details())}", remedy="labgrid-client places"
        ) from exc


def _with_session(coordinator: str, act: Callable[[Any, Any], T]) -> T:
    """Connect, let ``act`` use the session and its loop, disconnect. Nothing stays open during a run: places are kept
    by the coordinator."""
    try:
        from labgrid.remote.client import ClientSession, ServerError
    except ImportError as exc:
        raise MissingDependencyError(
            "LG_COORDINATOR is set, but labgrid is not installed", remedy="pip install 'tflm-harness[labgrid]'"
        ) from exc
    address = coordinator if ":" in coordinator else f"{coordinator}:{_DEFAULT_PORT}"
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        session = loop.run_until_complete(_connect(ClientSession, address, loop))
        try:
            return act(session, loop)
        finally:
            loop.run_until_complete(_disconnect(session))
    except (ServerError, asyncio.TimeoutError, OSError) as exc:
        raise LabgridError(
            f"the labgrid coordinator {safe_text(address)} does not answer",
            remedy="check LG_COORDINATOR (host:port) and that labgrid-coordinator runs",
        ) from exc
    finally:
        asyncio.set_event_loop(None)
        loop.close()


async def _connect(session_class: Any, address: str, loop: Any) -> Any:
    session = session_class(address, loop)
    await asyncio.wait_for(session.start(), _ANSWER_TIMEOUT_S)
    return session


async def _disconnect(session: Any) -> None:
    session.stopping.set()
    await session.stop()
    await session.close()
