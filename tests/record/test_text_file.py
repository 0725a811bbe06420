from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from harness.record.text_file import UnwritableError, write_whole
from tests.patience import PATIENCE_S


def test_a_file_is_replaced_whole_and_a_link_stays_one(tmp_path: Path) -> None:
    real, link = tmp_path / "real.md", tmp_path / "link.md"
    real.write_bytes(b"old")
    link.symlink_to(real)
    write_whole(link, b"new")
    assert (link.is_symlink(), real.read_bytes()) == (True, b"new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.md", "real.md"]


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_whole(pipe, b"junit")
    reader.join(PATIENCE_S)
    assert read == [b"junit"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_device_stays_one() -> None:
    """As root its folder can be written: a rename would put a file in its place for every program."""
    with pytest.raises(UnwritableError, match="No space left"):
        write_whole(Path("/dev/full"), b"junit")
    write_whole(Path("/dev/null"), b"junit")
    assert stat.S_ISCHR(Path("/dev/full").stat().st_mode)
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_a_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(UnwritableError, match="Is a directory"):
        write_whole(tmp_path, b"junit")
