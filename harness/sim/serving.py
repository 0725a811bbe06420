"""A twin as a lab of its own process: pyOCD's probe server on one TCP port, the serial line on another."""

from __future__ import annotations

from dataclasses import dataclass

from harness.board.record import HardwareBoard
from harness.errors import ProbeError, cannot_serve
from harness.link.serial_server import SerialServer
from harness.probe.server import ProbeServer
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
            self._server = self._serve_probe(request)
        except BaseException:
            desk.unplug(self._uid)
            raise
        self.probe = f"remote:{request.host}:{self._server.port}"

    def _serve_probe(self, request: ServeRequest) -> ProbeServer:
        from harness.sim.pyocd_plugin import TwinProbe

        try:
            return ProbeServer(TwinProbe(self._uid, request.board), request.probe_port, local_only=self._local)
        except OSError as exc:
            raise cannot_serve(ProbeError, exc, "sim.port_taken", port=request.probe_port) from exc

    def close(self) -> None:
        self._server.close()
        desk.unplug(self._uid)
