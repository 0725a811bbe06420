from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli.main import main
from harness.cli.rig_choice import chosen_rig


@pytest.mark.parametrize("option", [("--sim-fault", "drop=300"), ("--pace",)])
@pytest.mark.parametrize("rig", [(), ("--rig", "far")])
def test_a_remote_twin_is_not_reached_by_faults(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    option: tuple[str, ...],
    rig: tuple[str, ...],
) -> None:
    (tmp_path / "lab.yaml").write_text(
        "rigs: [{name: far, board: 'sim:nucleo-f446re', probe: 'remote:pc:5555', port: 'socket://pc:2217'}]"
    )
    monkeypatch.chdir(tmp_path)
    model = Path(__file__).resolve().parents[2] / "examples" / "hello.tflite"
    for command in ("sweep", "flash"):
        assert main([command, "--board", "sim:nucleo-f446re", *rig, *option, str(model)]) == 2
        told = capsys.readouterr().err
        assert "do not reach far: its twin runs at pc:5555" in told
        assert "harness sim serve" in told


def test_a_fault_does_not_rename_the_rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = {"rig_name": None, "faults": ("drop=300",), "pace": False, "boards_dirs": ()}
    rig = chosen_rig("sim:nrf52840dk", options)
    assert rig is not None
    assert (rig.name, rig.faults) == ("sim:nrf52840dk", ("drop=300",))
