"""Files that a user names, read with a bound: a device without an end must not eat the computer's memory."""

from __future__ import annotations

import errno
import os
from pathlib import Path

#: Far above any record, suite, table or transcript.
LIMIT_BYTES = 256 * 1024 * 1024


def read_bounded(path: Path, limit_bytes: int = LIMIT_BYTES) -> bytes:
    """The whole file, or pipe. Raises OSError, with EFBIG where it holds more than ``limit_bytes``."""
    with path.open("rb") as file:
        data = file.read(limit_bytes + 1)
    if len(data) > limit_bytes:
        raise OSError(errno.EFBIG, f"{os.strerror(errno.EFBIG)}: more than {limit_bytes:,} bytes", str(path))
    return data
