"""pyOCD's own probe server for one attached probe: what ``remote:host:port`` in a lab file speaks to."""

from __future__ import annotations

from typing import Any

from harness.errors import ProbeError, cannot_serve
from harness.probe.session import find_probe, import_pyocd
from harness.probe.trouble import Place, translate


class ProbeServer:
    """Serves from construction to `close`, to this computer only unless told otherwise. ``port`` 0: any."""

    def __init__(self, uid: str, port: int = 0, *, local_only: bool = True) -> None:
        import_pyocd()
        from pyocd.core.session import Session
        from pyocd.probe.tcp_probe_server import DebugProbeServer

        place = Place(uid, "serving the probe")
        probe = find_probe(uid, place)
        session = Session(probe=None, options={"no_config": True, "project_dir": "."})
        probe.session = session
        try:
            self._server: Any = DebugProbeServer(session, probe, port, local_only)
        except OSError as exc:
            raise cannot_serve(ProbeError, exc, "lab.port_taken", port=port) from exc
        except Exception as exc:  # pyOCD raises many types
            raise translate(exc, place) from exc
        self._server.start()
        # the server notes its port only some time after it started; the socket knows it already
        self.port: int = self._server._server.server_address[1]

    def close(self) -> None:
        self._server.stop()
