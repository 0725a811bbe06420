"""``harness sim``: emulated boards."""

from __future__ import annotations

import json
import sys
import threading

import click

from harness.units import safe_text


@click.group()
def sim() -> None:
    """Emulated boards (digital twins), for trying rigs without hardware."""


@sim.command()
@click.option("--board", "board_name", required=True, metavar="NAME", help="Board to emulate, as nucleo-f746zg.")
@click.option("--probe-port", type=click.IntRange(0, 65535), default=0, help="TCP port of the probe; 0: any.")
@click.option("--serial-port", type=click.IntRange(0, 65535), default=0, help="TCP port of the UART; 0: any.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--raw", is_flag=True, help="Serve the UART as a plain socket instead of RFC 2217.")
@click.option("--pace", is_flag=True, help="Take the time that a real board would.")
@click.option("--sim-fault", "faults", multiple=True, metavar="NAME[=N]", help="A defect to put into it.")
@click.option("--json", "as_json", is_flag=True, help="Tell the addresses as one JSON line.")
def serve(
    board_name: str,
    probe_port: int,
    serial_port: int,
    host: str,
    raw: bool,
    pace: bool,
    faults: tuple[str, ...],
    as_json: bool,
) -> None:
    """Run a twin in this process, with pyOCD's probe server and a serial port on TCP, until interrupted."""
    from harness.board.catalogue import load_hardware_board
    from harness.board.lab_file import RigEntry, lab_yaml
    from harness.rig.twin import twin_locks
    from harness.sim import desk
    from harness.sim.serving import ServedTwin, ServeRequest

    board = load_hardware_board("sim:" + board_name.removeprefix("sim:"))
    locks = list(twin_locks(None, desk.kept_flash(board)))
    served = ServedTwin(ServeRequest(board, probe_port, serial_port, host, not raw, pace, faults))
    try:
        if as_json:
            print(json.dumps({"board": board.name, "probe": served.probe, "port": served.serial_url}), flush=True)
        else:
            entry = RigEntry(name=board.base_name, board=board.name, probe=served.probe, port=served.serial_url)
            print(f"{board.name} runs; for lab.yaml:\n", file=sys.stderr)
            print(lab_yaml((entry,)), flush=True)
        threading.Event().wait()
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
    finally:
        served.close()
        for lock in locks:
            lock.release()


@sim.command("faults")
def list_faults() -> None:
    """List what --sim-fault can do."""
    from harness.board.twin_faults import FAULTS

    for name, fault in FAULTS.items():
        label = f"{name}=N" if fault.value else name
        print(safe_text(f"{label:<22}{fault.text}{f' (N: {fault.value})' if fault.value else ''}"))
