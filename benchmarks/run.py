"""Runs every benchmark of this folder, each in a process of its own: ``make bench``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
TIMEOUT_S = 600


def main() -> int:
    """The exit code: 1 when one failed or missed its limit."""
    failed = []
    for path in sorted(FOLDER.glob("bench_*.py")):
        print(f"== {path.name}", flush=True)
        try:
            code = subprocess.run([sys.executable, str(path)], timeout=TIMEOUT_S, check=False).returncode
        except subprocess.TimeoutExpired:
            print(f"did not end within {TIMEOUT_S} s")
            code = 1
        if code:
            failed.append(path.name)
    print("all limits kept" if not failed else f"missed or failed: {', '.join(failed)}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
