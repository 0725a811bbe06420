"""Two ``harness flash --rig t1`` at once both ended with 0; with HARNESS_SIM_STATE the second kept a half-programmed
image. A twin that a lab file names is used by one process at a time."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from harness.board.catalogue import load_board
from harness.board.lab_file import LabFileError, RigEntry, lab_yaml, read_lab
from harness.errors import ProbeError
from harness.rig.opening import open_rig
from harness.rig.options import RigOptions
from harness.rig.twin import twin_locks

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("unicorn") is None, reason="the extra [sim] is not installed"),
    pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals"),
]
BOARD = "sim:nucleo-f446re"


@contextmanager
def held(entry: RigEntry | None) -> Iterator[None]:
    with open_rig(load_board(BOARD), RigOptions(rig=entry)):
        yield


def lab(folder: Path, *names: str) -> tuple[RigEntry, ...]:
    folder.mkdir(exist_ok=True)
    path = folder / "lab.yaml"
    path.write_text("rigs:\n" + "".join(f"  - {{name: {name}, board: '{BOARD}'}}\n" for name in names))
    return read_lab(path).rigs


def test_a_named_twin_is_held_by_one_process_at_a_time(tmp_path: Path) -> None:
    first, _ = lab(tmp_path / "a", "t1", "t2")
    with held(first), pytest.raises(ProbeError) as caught, held(first):
        pass
    assert caught.value.code == "rig.busy"
    assert caught.value.message.startswith("rig t1 (twin) is in use by process ")
    with held(first):
        pass


def test_other_twins_are_not_kept_out(tmp_path: Path) -> None:
    first, second = lab(tmp_path / "a", "t1", "t2")
    (elsewhere,) = lab(tmp_path / "b", "t1")
    with ExitStack() as stack:
        for entry in (first, second, elsewhere):
            for lock in twin_locks(entry, None):
                stack.enter_context(lock)
        with pytest.raises(ProbeError):
            list(twin_locks(second, None))
        for on_demand in (None, RigEntry(name="t1", board=BOARD)):
            assert not list(twin_locks(on_demand, None))


def test_flash_that_is_kept_is_used_by_one_twin_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_SIM_STATE", str(tmp_path))
    with held(None), pytest.raises(ProbeError) as caught, held(None):
        pass
    assert caught.value.code == "rig.busy"
    assert f"the flash in {tmp_path}" in caught.value.message
    monkeypatch.setenv("HARNESS_SIM_STATE", str(tmp_path / "other"))
    with held(None):
        pass


def test_which_file_an_entry_is_from_is_no_key_of_it(tmp_path: Path) -> None:
    (entry,) = lab(tmp_path, "t1")
    assert entry.lab == str(tmp_path / "lab.yaml")
    assert "lab:" not in lab_yaml((entry,))
    (tmp_path / "lab.yaml").write_text("rigs: [{name: t1, board: host, lab: x}]")
    with pytest.raises(LabFileError, match=r"unknown field `lab` - `\$.rigs\[0\]`"):
        read_lab(tmp_path / "lab.yaml")
