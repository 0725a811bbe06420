"""The TFLM libraries that the user has registered: firmware links one."""

from __future__ import annotations

from pathlib import Path

from harness.environment.part import Kind, Part, Status
from harness.errors import HarnessError
from harness.firmware.library import inspect_tree
from harness.firmware.registry import Registry

NEEDED_FOR = "building firmware"
_ADD = "harness tflm add DIR, where DIR is a TFLM tree that was built for the board's core"


def tflm_library_parts(registry: Registry | None = None) -> list[Part]:
    """A part for each library; one that is missing where none is usable, one that is wrong for each unreadable tree."""
    registry = registry or Registry()
    try:
        entries = registry.entries()
    except HarnessError as exc:
        return [Part(Kind.LIBRARY, "TFLM library", Status.WRONG, NEEDED_FOR, "", exc.message, exc.remedy)]
    parts: list[Part] = []
    wrong: list[Part] = []
    for entry in entries:
        try:
            libraries = inspect_tree(
                Path(entry.folder),
                commit=entry.commit,
                kernels=entry.kernels,
                strip_error_strings=entry.strip_error_strings,
            )
        except HarnessError as exc:
            # Told, but no gap by itself: the others may be all that is needed.
            wrong.append(Part(Kind.LIBRARY, entry.folder, Status.WRONG, "", "", exc.message, exc.remedy))
            continue
        parts += [
            Part(
                Kind.LIBRARY,
                "TFLM library",
                Status.OK,
                NEEDED_FOR,
                library.commit[:12],
                f"{library.title}, {library.root}",
            )
            for library in libraries
        ]
    if not parts:
        parts = [Part(Kind.LIBRARY, "TFLM library", Status.MISSING, NEEDED_FOR, remedy=_ADD)]
    return parts + wrong
