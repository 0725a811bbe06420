"""A rig of this computer served to others: pyOCD's probe server, and its serial port by RFC 2217."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from harness.board.catalogue import SIM_PREFIX, load_hardware_board
from harness.board.lab_file import RigEntry
from harness.deadline import Deadline
from harness.errors import HarnessError, LinkError, cannot_serve
from harness.link.serial_link import SerialLink
from harness.link.serial_server import SerialServer
from harness.probe.server import serve_attached
from harness.rig.hardware import port_finder, probe_uid, serial_url
from harness.rig.lock import RigLock

logger = logging.getLogger(__name__)

_POLL_S = 0.05
#: A port that went away (the board was unplugged) is looked for so often.
_REOPEN_S = 1.0


@dataclass(frozen=True, slots=True)
class ServeRequest:
    """``host`` is the address to listen on: the loopback unless told otherwise, as neither protocol asks for a
    password. Ports 0: any that is free."""

    host: str = "127.0.0.1"
    probe_port: int = 0
    serial_port: int = 0


def not_served(rig: RigEntry) -> str:
    """Why ``harness lab serve`` does not serve the rig; "" where it does."""
    if rig.board == "host":
        return f"{rig.name} is the host board, which every computer has: there is nothing to serve"
    if rig.is_remote:
        return f"{rig.name} is a rig of another computer ({rig.probe}): serve it there"
    if rig.board.startswith(SIM_PREFIX):
        return f"{rig.name} is a twin: harness sim serve --board {rig.board.removeprefix(SIM_PREFIX)} does that"
    return ""


class ServedRig:
    """Held (no sweep of this computer gets it) and served until `close`. ``entry`` is for the others' lab file."""

    def __init__(self, rig: RigEntry, request: ServeRequest) -> None:
        board = load_hardware_board(rig.board)
        uid = probe_uid(board, rig)
        self._lock = RigLock(f"rig {rig.name} (probe {uid})")
        try:
            self._bridge = SerialBridge(serial_url(uid, rig), board.uart.baud, request, port_finder(uid, rig))
            try:
                local = request.host in {"127.0.0.1", "localhost"}
                self._probe = serve_attached(uid, request.probe_port, local_only=local)
            except BaseException:
                self._bridge.close()
                raise
        except BaseException:
            self._lock.release()
            raise
        probe = f"remote:{request.host}:{self._probe.port}"
        self.entry = RigEntry(name=rig.name, board=rig.board, probe=probe, port=self._bridge.url)

    def close(self) -> None:
        self._probe.close()
        self._bridge.close()
        self._lock.release()


class SerialBridge:
    """A serial port of this computer on a TCP port, both ways, at the rate that the client sets.

    ``find`` names the port anew after it was unplugged; without it, it keeps its name.
    """

    def __init__(self, port: str, baud: int, request: ServeRequest, find: Callable[[], str] | None = None) -> None:
        self._port, self._baud = port, baud
        self._find = find or (lambda: port)
        self._link = SerialLink(port, baud)
        try:
            self._server = SerialServer(request.serial_port, host=request.host)
        except OSError as exc:
            self._link.close()
            raise cannot_serve(LinkError, exc, "lab.port_taken", port=request.serial_port, host=request.host) from exc
        self.url = self._server.url
        self._closed = threading.Event()
        self._threads = [threading.Thread(target=turn, daemon=True) for turn in (self._to_client, self._to_board)]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        self._closed.set()
        self._server.wake()
        for thread in self._threads:
            thread.join(timeout=5)
        self._server.close()
        self._link.close()

    def _to_client(self) -> None:
        while not self._closed.is_set():
            try:
                data = self._link.read(Deadline.after(_POLL_S))
            except LinkError as exc:
                self._reopen(exc)
                continue
            if data:
                self._server.write(data)

    def _to_board(self) -> None:
        while not self._closed.is_set():
            self._server.wait(_POLL_S)
            data, baud = self._server.read(), self._server.host_baud()
            try:
                if baud and baud != self._baud:
                    self._baud = baud
                    self._link.set_baud(baud)
                if data:
                    self._link.write(data, Deadline.after(5.0))
            except LinkError as exc:
                logger.warning("%s: %s", self._port, exc.message)

    def _reopen(self, why: LinkError) -> None:
        """Until the port is there again; what is sent meanwhile is lost, as on an unplugged cable."""
        logger.warning("%s: %s", self._port, why.message)
        self._link.close()
        while not self._closed.wait(_REOPEN_S):
            with contextlib.suppress(HarnessError):
                self._link = SerialLink(self._find(), self._baud)
                return
