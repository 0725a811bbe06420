from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli.main import main

LAB = """
rigs:
  - {name: t7, board: "sim:nucleo-f746zg"}
  - {name: here, board: host}
  - {name: attic, board: nucleo-f746zg, probe: "remote:pc:5555", port: "socket://pc:2217"}
"""


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("t7", "t7 is a twin: harness sim serve --board nucleo-f746zg does that"),
        ("here", "here is the host board"),
        ("attic", "attic is a rig of another computer (remote:pc:5555): serve it there"),
    ],
)
def test_what_cannot_be_served_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, told: str
) -> None:
    path = tmp_path / "lab.yaml"
    path.write_text(LAB)
    assert main(["lab", "serve", name, "--lab", str(path)]) == 2
    assert told in " ".join(capsys.readouterr().err.split())
    assert main(["lab", "serve", "--lab", str(path)]) == 2
    everything = " ".join(capsys.readouterr().err.split())
    assert f"left out: {told}" in everything
    assert "no rig that could be served" in everything
