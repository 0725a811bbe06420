"""The console on stdout: as wide as the terminal, or as wide as its lines where nobody has a terminal."""

from __future__ import annotations

import os
import sys

from rich.console import Console

#: Into a file or a pipe a table's row stays one line, so that grep and cut can read it; COLUMNS decides otherwise.
_WIDTH_WITHOUT_TERMINAL = 240


def stdout_console() -> Console:
    """For plain data: no markup is read and no numbers are coloured, since names from models are hostile."""
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else _WIDTH_WITHOUT_TERMINAL
    return Console(highlight=False, markup=False, emoji=False, width=width)
