"""The twin as a debug probe of pyOCD, found by pyOCD itself through the entry point group ``pyocd.probe``.

Nothing of pyOCD is changed: its own target classes, flash algorithms and debug sequences run against the emulated debug
port. Defects that a test puts into the probe are in `desk` and `faults`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from pyocd.board.board import Board as PyocdBoard
from pyocd.board.board_ids import BOARD_ID_TO_INFO, BoardInfo
from pyocd.core import exceptions
from pyocd.core.plugin import Plugin
from pyocd.probe.debug_probe import DebugProbe

from harness.board.record import HardwareBoard
from harness.probe.kind import TWIN_VENDOR
from harness.probe.targets import register_all
from harness.sim import desk
from harness.sim.dap import DebugPort
from harness.sim.device import NoAnswerError, TransferFaultError
from harness.sim.faults import ProbeFaultError
from harness.sim.twin import Twin


class TwinProbe(DebugProbe):  # type: ignore[misc]
    """One twin's on-board probe."""

    @classmethod
    def get_all_connected_probes(cls, unique_id: str | None = None, is_explicit: bool = False) -> Sequence[DebugProbe]:  # noqa: ARG003
        return [cls(uid, board) for uid, board in desk.plugged().items()]

    @classmethod
    def get_probe_with_id(cls, unique_id: str, is_explicit: bool = False) -> DebugProbe | None:  # noqa: ARG003
        board = desk.plugged().get(unique_id)
        return cls(unique_id, board) if board is not None else None

    def __init__(self, uid: str, board: HardwareBoard) -> None:
        super().__init__()
        self._uid = uid
        self._board = board
        self._is_open = False
        self._protocol: Any = None
        self._reset_asserted = False
        self._twin: Twin | None = None
        self._port: DebugPort | None = None

    # --- what it is -------------------------------------------------------------------------------------------

    @property
    def vendor_name(self) -> str:
        return TWIN_VENDOR

    @property
    def product_name(self) -> str:
        return f"{self._board.title} (emulated)"

    @property
    def unique_id(self) -> str:
        return self._uid

    @property
    def supported_wire_protocols(self) -> Collection[Any]:
        return [DebugProbe.Protocol.DEFAULT, DebugProbe.Protocol.SWD]

    @property
    def wire_protocol(self) -> Any:
        return self._protocol

    @property
    def is_open(self) -> bool:
        return self._is_open

    @property
    def capabilities(self) -> set[Any]:
        return {DebugProbe.Capability.SWJ_SEQUENCE, DebugProbe.Capability.BANKED_DP_REGISTERS}

    @property
    def associated_board_info(self) -> BoardInfo:
        for board_id in self._board.pyocd.board_ids:
            if board_id in BOARD_ID_TO_INFO:
                return BoardInfo(BOARD_ID_TO_INFO[board_id].name, self._board.pyocd.target)
        return BoardInfo(self._board.title, self._board.pyocd.target)

    def create_associated_board(self) -> PyocdBoard:
        return PyocdBoard(self.session, board_info=self.associated_board_info)

    # --- the cable --------------------------------------------------------------------------------------------

    def open(self) -> None:
        try:
            self._twin = desk.twin(self._uid)
        except KeyError as exc:
            raise exceptions.ProbeDisconnected(f"probe {self._uid} is not plugged in") from exc
        self._do(lambda twin: twin.faults.on_open())
        self._port = DebugPort(self._twin)
        self._is_open = True

    def close(self) -> None:
        self._is_open = False
        self._port = None

    def connect(self, protocol: Any = None) -> None:
        self._protocol = DebugProbe.Protocol.SWD if protocol in (None, DebugProbe.Protocol.DEFAULT) else protocol

    def disconnect(self) -> None:
        self._protocol = None

    def swj_sequence(self, length: int, bits: int) -> None:
        """The emulated port listens at once."""

    def set_clock(self, frequency: float) -> None:
        self._do(lambda twin: twin.faults.on_clock(frequency))

    def reset(self) -> None:
        self.assert_reset(True)
        self.assert_reset(False)

    def assert_reset(self, asserted: bool) -> None:
        self._reset_asserted = asserted

        def drive(twin: Twin) -> None:
            if twin.faults.drives_reset(asserted):
                twin.assert_reset(asserted)

        self._do(drive)

    def is_reset_asserted(self) -> bool:
        return self._reset_asserted

    # --- DP and AP --------------------------------------------------------------------------------------------

    def read_dp(self, addr: int, now: bool = True) -> Any:
        return self._transfer(lambda port: port.read_dp(addr), now)

    def write_dp(self, addr: int, data: int) -> None:
        self._transfer(lambda port: port.write_dp(addr, data))

    def read_ap(self, addr: int, now: bool = True) -> Any:
        return self._transfer(lambda port: port.read_ap(addr), now)

    def write_ap(self, addr: int, data: int) -> None:
        self._transfer(lambda port: port.write_ap(addr, data))

    def read_ap_multiple(self, addr: int, count: int = 1, now: bool = True) -> Any:
        return self._transfer(lambda port: port.read_ap_multiple(addr, count), now)

    def write_ap_multiple(self, addr: int, values: Sequence[int]) -> None:
        self._transfer(lambda port: port.write_ap_multiple(addr, list(values)))

    def _transfer(self, action: Callable[[DebugPort], Any], now: bool = True) -> Any:
        """With ``now`` false pyOCD wants a callable, in which errors are raised."""

        def perform() -> Any:
            port = self._port
            if port is None:
                raise exceptions.ProbeError(f"probe {self._uid} is not open")

            def transfer(twin: Twin) -> Any:
                twin.faults.on_transfer()
                return action(port)

            return self._do(transfer)

        return perform() if now else _delayed(perform)

    def _do(self, action: Callable[[Twin], Any]) -> Any:
        twin = self._twin
        if twin is None:
            return None
        try:
            return action(twin)
        except ProbeFaultError as exc:
            kind = exceptions.ProbeDisconnected if exc.is_unplugged else exceptions.ProbeError
            raise kind(str(exc)) from exc
        except NoAnswerError as exc:
            raise exceptions.TransferError(str(exc)) from exc
        except TransferFaultError as exc:
            raise exceptions.TransferFaultError(str(exc)) from exc


def _delayed(perform: Callable[[], Any]) -> Callable[[], Any]:
    """Perform at once, as a real probe's queue does; hand out the result, or raise the error, when asked."""
    try:
        value = perform()
    except exceptions.TransferError as exc:
        error = exc

        def fail() -> Any:
            raise error

        return fail
    return lambda: value


class TwinProbePlugin(Plugin):  # type: ignore[misc]
    """What the entry point names."""

    def should_load(self) -> bool:
        return True

    def load(self) -> type[TwinProbe]:
        register_all()
        return TwinProbe

    @property
    def name(self) -> str:
        return "twin"

    @property
    def description(self) -> str:
        return "Emulated boards of tflm-harness"
