"""``harness lab``: the rigs on the desk."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from harness.units import counted, safe_text


@click.group()
def lab() -> None:
    """The rigs of a lab: one entry per board on the desk, in lab.yaml."""


@lab.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def discover(as_json: bool) -> None:
    """Propose lab.yaml entries for the probes and ports that are plugged in. Opens and changes nothing."""
    import msgspec

    from harness.board.lab_file import lab_yaml
    from harness.errors import ProbeError
    from harness.rig.discover import discover as look

    found = look()
    if as_json:
        print(json.dumps({"schema": "harness.discovery", "schema_version": 1, **msgspec.to_builtins(found)}, indent=1))
    else:
        for question in found.questions:
            print(safe_text(question, 500), file=sys.stderr)
        if found.entries:
            print(lab_yaml(found.entries), end="")
    if not found.probes:
        raise ProbeError(
            "no debug probe is plugged in, or none that this user may open",
            remedy="harness doctor tells the two apart; twins: set HARNESS_SIM_BOARDS=nucleo-f746zg",
            code="probe.absent",
        )


@lab.command("list")
@click.option("--lab", "path", type=click.Path(path_type=Path), help="Lab file; default: lab.yaml here, else your own.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def list_rigs(path: Path | None, as_json: bool) -> None:
    """Show the rigs of the lab file."""
    import msgspec

    from harness.board.lab_file import find_lab, redacted_url
    from harness.errors import UsageError

    found = find_lab(path)
    if found is None:
        raise UsageError("there is no lab.yaml", remedy="harness lab discover proposes one", code="lab.missing")
    rigs = [msgspec.structs.replace(entry, port=redacted_url(entry.port)) for entry in found.rigs]
    if as_json:
        document = {"schema": "harness.lab", "schema_version": 1, "rigs": msgspec.to_builtins(rigs)}
        print(json.dumps(document, indent=1))
        return
    for entry in rigs:
        more = ", ".join(filter(None, (entry.probe, entry.port, *entry.faults, entry.notes)))
        print(safe_text(f"{entry.name}: {entry.board}{f' ({more})' if more else ''}", 500))


@lab.command()
@click.argument("names", nargs=-1, metavar="RIG...")
@click.option("--lab", "path", type=click.Path(path_type=Path), help="Lab file; default: lab.yaml here, else your own.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; mind who can reach it.")
@click.option("--probe-port", type=click.IntRange(0, 65535), default=0, help="TCP port of the probe; 0: any. One rig.")
@click.option("--serial-port", type=click.IntRange(0, 65535), default=0, help="TCP port of the UART; 0: any. One rig.")
@click.option("--json", "as_json", is_flag=True, help="Tell the addresses as one JSON line.")
def serve(
    names: tuple[str, ...], path: Path | None, host: str, probe_port: int, serial_port: int, as_json: bool
) -> None:
    """Serve rigs of this computer (default: all of its lab file) to other computers, until interrupted.

    pyOCD's probe server and RFC 2217, as entries for the other side's lab.yaml. Neither asks for a password: stay on
    the loopback and come through SSH (docs/lab.md), or listen in a network that you trust.
    """
    import threading
    from contextlib import ExitStack, closing

    import msgspec

    from harness.board.lab_file import find_lab, lab_yaml
    from harness.errors import UsageError
    from harness.rig.serving import ServedRig, ServeRequest, not_served

    found = find_lab(path, boards_dirs=())
    if found is None:
        raise UsageError("there is no lab.yaml", remedy="harness lab discover proposes one", code="lab.missing")
    rigs = [found.rig(name) for name in names] or list(found.rigs)
    unserved = {rig.name: why for rig in rigs if (why := not_served(rig))}
    for name in names:
        if name in unserved:
            raise UsageError(unserved[name], remedy="name a rig with a real board: harness lab list shows them")
    for why in unserved.values():
        print(f"left out: {safe_text(why)}", file=sys.stderr)
    rigs = [rig for rig in rigs if rig.name not in unserved]
    if not rigs:
        raise UsageError("the lab file has no rig that could be served", remedy="harness lab list shows them")
    if len(rigs) != 1 and (probe_port or serial_port):
        raise UsageError(f"{len(rigs)} rigs cannot share one port", remedy="name one rig, or leave the ports away")
    try:
        with ExitStack() as stack:
            request = ServeRequest(host, probe_port, serial_port)
            served = [stack.enter_context(closing(ServedRig(rig, request))) for rig in rigs]
            entries = tuple(one.entry for one in served)
            if as_json:
                print(json.dumps({"rigs": msgspec.to_builtins(entries)}), flush=True)
            else:
                print(f"{counted(len(entries), 'rig')} served; for lab.yaml on the other side:\n", file=sys.stderr)
                print(lab_yaml(entries), end="", flush=True)
            threading.Event().wait()
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
