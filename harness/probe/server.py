"""pyOCD's own probe server for one probe: what ``remote:host:port`` in a lab file speaks to.

pyOCD 0.46.0's leaves a probe locked and open for ever when the client that did it is gone, waits for all of its
connections when the process ends, and keeps its port until then.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
from collections.abc import Callable
from typing import Any

from harness.deadline import Deadline
from harness.errors import ProbeError, cannot_serve
from harness.probe.session import find_probe, import_pyocd
from harness.probe.trouble import Place, translate

log = logging.getLogger(__name__)

#: How long the end waits for requests that are at work.
_END_S = 5.0
#: A computer that vanished without a word is missed after 30 + 3 × 10 s, where the system lets us say so.
_KEEP_ALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
#: A request, and the one that takes it back: what a connection leaves behind is taken back in this order.
_TAKEN_BACK = (("lock", "unlock"), ("connect", "disconnect"), ("open", "close"))


class ProbeServer:
    """Serves one of pyOCD's probes from construction to `close`, to this computer only unless told otherwise.
    ``port`` 0: any. Raises OSError for a port that cannot be had."""

    def __init__(self, probe: Any, port: int = 0, *, local_only: bool = True) -> None:
        from pyocd.core.session import Session
        from pyocd.probe.tcp_probe_server import DebugProbeServer

        session = Session(probe=None, options={"no_config": True, "project_dir": "."})
        probe.session = session
        self._connections: dict[Any, threading.Thread] = {}
        self._server: Any = DebugProbeServer(session, probe, port, local_only)
        self._listener: Any = self._server._server
        self._listener.RequestHandlerClass = _handler(self._connections)
        self._listener.daemon_threads = True
        self._listener.block_on_close = False
        self._server.start()
        # the server notes its port only some time after it started; the socket knows it already
        self.port: int = self._listener.server_address[1]

    def close(self) -> None:
        """Hang up on every client. Bounded: who waits for another's lock, or in a driver, is not waited for."""
        self._server.stop()
        self._listener.server_close()
        deadline = Deadline.after(_END_S)
        for connection, thread in list(self._connections.items()):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            thread.join(deadline.remaining_s)


def serve_attached(uid: str, port: int = 0, *, local_only: bool = True) -> ProbeServer:
    """The attached probe of this id. Raises ProbeError."""
    import_pyocd()
    place = Place(uid, "serving the probe")
    probe = find_probe(uid, place)
    try:
        return ProbeServer(probe, port, local_only=local_only)
    except OSError as exc:
        raise cannot_serve(ProbeError, exc, "lab.port_taken", port=port) from exc
    except Exception as exc:  # pyOCD raises many types
        raise translate(exc, place) from exc


def _handler(connections: dict[Any, threading.Thread]) -> type:
    """pyOCD's handler of one connection, which takes back what it leaves behind."""
    from pyocd.probe.tcp_probe_server import DebugProbeRequestHandler

    class Handler(DebugProbeRequestHandler):  # type: ignore[misc]
        def setup(self) -> None:
            super().setup()
            _keep_alive(self.request)
            connections[self.request] = threading.current_thread()
            self._held = {request: 0 for request, _ in _TAKEN_BACK}
            for request, back in _TAKEN_BACK:
                self._count(request, request, +1)
                self._count(back, request, -1)

        def _count(self, name: str, held: str, by: int) -> None:
            handler, arguments = self._REQUEST_HANDLERS[name]

            def counted(*given: Any) -> Any:
                result = handler(*given)
                self._held[held] += by
                return result

            self._REQUEST_HANDLERS[name] = counted, arguments

        def finish(self) -> None:
            try:
                super().finish()
            finally:
                for request, back in _TAKEN_BACK:
                    self._take_back(self._held[request], self._REQUEST_HANDLERS[back][0])
                connections.pop(self.request, None)

        def _take_back(self, times: int, back: Callable[[], Any]) -> None:
            try:
                for _ in range(times):
                    back()
            except Exception as exc:  # a probe that is gone cannot be told goodbye
                log.debug("taking back what a connection left behind: %s", exc)

    return Handler


def _keep_alive(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE:
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
