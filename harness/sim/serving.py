"""A twin as a lab of its own process: pyOCD's probe server on one TCP port, the serial line on another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness.board.record import HardwareBoard
from harness.errors import ProbeError, cannot_serve
from harness.link.serial_server import SerialServer
from harness.sim import desk
from harness.sim.injection import inject
from harness.sim.twin import Twin


@dataclass(frozen=True, slots=True)
class ServeRequest:
    """``probe_port`` and ``serial_port`` 0: any that is free."""

    board: HardwareBoard
    probe_port: int = 0
    serial_port: int = 0
    host: str = "127.0.0.1"
    rfc2217: bool = True
    pace: bool = False
    faults: tuple[str, ...] = ()


class ServedTwin:
    """Runs until `close`. ``probe`` and ``serial_url`` are what a lab entry names."""

    def __init__(self, request: ServeRequest) -> None:
        from harness.probe.session import import_pyocd

        import_pyocd()
        self._local = request.host in ("127.0.0.1", "localhost")
        try:
            line = SerialServer(request.serial_port, host=request.host, rfc2217=request.rfc2217)
        except OSError as exc:
            raise cannot_serve(ProbeError, exc, "sim.port_taken", port=request.serial_port, host=request.host) from exc
        self.serial_url = line.url
        twin = Twin(request.board, endpoint=line, pace=request.pace)
        self._uid = desk.plug(request.board, twin=twin)
        try:
            for fault in request.faults:
                inject(fault, twin)
            self._server: Any = self._serve_probe(request)
        except BaseException:
            desk.unplug(self._uid)
            raise
        # pyOCD's thread notes the port only after it has said that it started; the socket knows it already
        port = self._server._server.server_address[1]
        self.probe = f"remote:{request.host}:{port}"

    def _serve_probe(self, request: ServeRequest) -> Any:
        from pyocd.core.session import Session
        from pyocd.probe.tcp_probe_server import DebugProbeServer

        from harness.sim.pyocd_plugin import TwinProbe

        probe = TwinProbe(self._uid, request.board)
        session = Session(probe=None, options={"no_config": True, "project_dir": "."})
        probe.session = session
        try:
            server = DebugProbeServer(session, probe, request.probe_port, self._local)
        except OSError as exc:
            raise cannot_serve(ProbeError, exc, "sim.port_taken", port=request.probe_port) from exc
        server.start()
        return server

    def close(self) -> None:
        self._server.stop()
        desk.unplug(self._uid)
