"""The console on stdout: as wide as the terminal, or as wide as its lines where nobody has a terminal."""

from __future__ import annotations

import shutil

from rich.console import Console

#: Into a file or a pipe a table's row stays one line, so that grep and cut can read it; COLUMNS decides otherwise.
_WIDTH_WITHOUT_TERMINAL = 240
#: Narrower than this (``COLUMNS=0`` or 1), rich leaves numbers out.
_LEAST_WIDTH = 40


def stdout_console() -> Console:
    """For plain data: no markup is read and no numbers are coloured, since names from models are hostile."""
    asked = shutil.get_terminal_size((_WIDTH_WITHOUT_TERMINAL, 0)).columns
    width = max(asked, _LEAST_WIDTH)
    return Console(highlight=False, markup=False, emoji=False, width=width)
