from __future__ import annotations

from pathlib import Path

import pytest

from harness.board.lab_file import LabFileError, RigEntry, find_lab, lab_yaml, read_lab, redacted_url

FULL = """
rigs:
  - name: left
    board: nucleo-f746zg
    probe: 066AFF495087
    port: usb:066AFF495087
  - name: attic
    board: nrf52840dk
    probe: remote:attic.lan:5555
    port: rfc2217://attic.lan:2217
  - {name: twin, board: "sim:nucleo-f446re", pace: true, faults: ["drop=500"]}
  - {name: here, board: host}
"""


def _lab(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "lab.yaml"
    path.write_text(text)
    return path


def test_a_lab_is_read_and_written_back_the_same(tmp_path: Path) -> None:
    path = _lab(tmp_path, FULL)
    lab = read_lab(path)
    assert [rig.name for rig in lab.rigs] == ["left", "attic", "twin", "here"]
    assert lab.rig("attic") == RigEntry(
        name="attic",
        board="nrf52840dk",
        probe="remote:attic.lan:5555",
        port="rfc2217://attic.lan:2217",
        lab=str(path),
    )
    assert lab.rig("twin").pace and lab.rig("twin").faults == ("drop=500",)
    path.write_text(lab_yaml(lab.rigs))
    assert read_lab(path) == lab


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rigs: []", "length >= 1"),
        ("rigs: [{name: a, board: host, prot: x}]", "prot"),
        ("rigs: [{name: a}]", "board"),
        ("rigs: [{name: a, board: host}, {name: a, board: host}]", '2 rigs are called "a"'),
        ("rigs: [{name: a, board: x, probe: p}, {name: b, board: x, probe: p}]", 'share the probe "p"'),
        ("rigs: [{name: a, board: x, probe: 'remote:h'}]", "is not remote:host:port"),
        ("rigs: [{name: a, board: x, probe: 'remote:h:1', port: /dev/ttyACM0}]", "needs a serial URL"),
        ("rigs: [{name: a, board: x, probe: 'remote:h:99999', port: 'socket://h:1'}]", "is not remote:host:port"),
        ("rigs: [{name: a, board: x, probe: 'remote:h:0', port: 'socket://h:1'}]", "$.rigs[0].probe"),
        ("rigs: [{name: a, board: x, port: 'socket://h:99999'}]", '"socket://h:99999" has a port that is none'),
        ("rigs: [{name: a, board: 'sim:x', probe: p}]", "a twin on this computer has its own"),
        ("rigs: [{name: a, board: 'sim:x', port: /dev/ttyACM0}]", "$.rigs[0].port"),
        ("rigs: [{name: a, board: host, pace: true}]", "for twins"),
        ("rigs: [{name: a, board: host, port: COM3}]", "has no probe and no port"),
        ("rigs: [{name: a, name: b, board: host}]", "'name' stands twice"),
        ("rigs: [", "not YAML"),
        ("", "the file is empty"),
        ("# rigs:\n", "the file is empty"),
        ("[]", "Expected `object`"),
        ("rigs: [{name: a, board: 'sim:x', faults: [bogus]}]", 'no fault "bogus" (faults: brownout-flashing'),
        ("rigs: [{name: a, board: 'sim:x', faults: [echo, drop]}]", "fault drop needs a number: every Nth"),
        ("rigs: [{name: a, board: 'sim:x', faults: [clock=0]}]", "$.rigs[0].faults[0]"),
        (
            "rigs: [{name: a, board: 'sim:x', probe: 'remote:h:1', port: 'socket://h:2', faults: [echo]}]",
            "given where it runs, to harness sim serve",
        ),
        (
            "rigs: [{name: a, board: 'sim:x', probe: 'remote:h:1', port: 'socket://h:2', pace: true}]",
            "given where it runs, to harness sim serve",
        ),
    ],
)
def test_what_a_lab_file_must_not_say_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = _lab(tmp_path, text)
    with pytest.raises(LabFileError) as error:
        read_lab(path)
    assert str(path) in error.value.message and message in error.value.message
    assert error.value.remedy


def test_an_unknown_rig_is_answered_with_the_names(tmp_path: Path) -> None:
    with pytest.raises(LabFileError, match='no rig "right"; it has left, attic, twin, here'):
        read_lab(_lab(tmp_path, FULL)).rig("right")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("rfc2217://lab:s3cret@attic:2217", "rfc2217://lab:***@attic:2217"),
        ("postgresql://u:p%40ss@db/history", "postgresql://u:***@db/history"),
        ("postgresql://u:p@ss:w@db:5432/history", "postgresql://u:***@db:5432/history"),
        ("socket://attic:4000", "socket://attic:4000"),
        ("/dev/ttyACM0", "/dev/ttyACM0"),
        ("rfc2217://u:pw@[broken", "rfc2217://***@[broken"),
    ],
)
def test_no_password_is_shown(url: str, shown: str) -> None:
    assert redacted_url(url) == shown


def test_a_board_that_nobody_has_is_refused_where_the_boards_are_known(tmp_path: Path) -> None:
    path = _lab(tmp_path, "rigs: [{name: a, board: host}, {name: b, board: nucleo-f746zgg}]")
    assert read_lab(path).rig("b").board == "nucleo-f746zgg"
    with pytest.raises(LabFileError) as caught:
        read_lab(path, ())
    assert '"nucleo-f746zgg"; near: nucleo-f746zg' in caught.value.message
    assert caught.value.message.endswith("`$.rigs[1].board`")
    own = tmp_path / "boards"
    own.mkdir()
    known = (Path(__file__).resolve().parents[2] / "boards" / "nucleo-f746zg.yaml").read_text()
    (own / "nucleo-f746zgg.yaml").write_text(known.replace("name: nucleo-f746zg\n", "name: nucleo-f746zgg\n"))
    assert read_lab(path, (own,)).rig("b")


def test_a_folder_called_lab_yaml_is_told_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_lab() is None
    (tmp_path / "lab.yaml").mkdir()
    with pytest.raises(LabFileError, match=r"lab\.yaml: Is a directory"):
        find_lab()
    (tmp_path / "lab.yaml").rmdir()
    (tmp_path / "lab.yaml").symlink_to("gone.yaml")
    with pytest.raises(LabFileError, match=r"lab\.yaml: No such file"):
        find_lab()
