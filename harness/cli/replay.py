"""``harness replay``: a transcript of a link session, decoded for a person."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("transcript", type=click.Path(path_type=Path))
def replay(transcript: Path) -> None:
    """Decode a TRANSCRIPT that ``harness sweep --transcript`` wrote: → to the device, ← from it."""
    from harness.link.transcript import read_transcript
    from harness.wire.frame import FrameReader
    from harness.wire.prose import tell

    readers = {"out": FrameReader(), "in": FrameReader()}
    arrows = {"out": "→", "in": "←"}
    for passage in read_transcript(transcript):
        for piece in readers[passage.direction].feed(passage.data):
            print(f"{passage.seconds:9.3f} {arrows[passage.direction]} {tell(piece)}")
