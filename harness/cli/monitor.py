"""``harness monitor``: what a device says on its port, decoded for a person."""

from __future__ import annotations

import sys
import time

import click

from harness.cli.finite import FiniteRange
from harness.deadline import Deadline

#: Text that no zero byte has ended is shown after so much silence.
_QUIET_S = 0.3


@click.command()
@click.argument("port")
@click.option("--baud", type=click.IntRange(1), default=115200, show_default=True)
@click.option("--for", "seconds", type=FiniteRange(min=0), help="End after so many seconds (default: Ctrl-C).")
def monitor(port: str, baud: int, seconds: float | None) -> None:
    """Show what arrives at PORT (a device name or a pyserial URL): text as text, frames decoded, damage as such."""
    from harness.link.serial_link import SerialLink
    from harness.wire.frame import FrameReader
    from harness.wire.prose import tell

    link = SerialLink(port, baud)
    reader = FrameReader()
    start = time.monotonic()
    deadline = Deadline.never() if seconds is None else Deadline.after(seconds)
    try:
        while not deadline.passed:
            data = link.read(deadline.sooner(_QUIET_S))
            pieces = list(reader.feed(data)) if data else [piece for piece in [reader.flush()] if piece]
            for piece in pieces:
                print(f"{time.monotonic() - start:9.3f}  {tell(piece)}")
            sys.stdout.flush()
    finally:
        link.close()
