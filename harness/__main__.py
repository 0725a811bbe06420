"""``python -m harness``, and the ``harness`` script: Ctrl-C while modules are still being imported is no traceback."""

from __future__ import annotations

import sys


def main() -> int:
    """The exit code."""
    try:
        from harness.cli.main import main as run

        return run()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
