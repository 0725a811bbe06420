from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.cli.main import main
from harness.lab.history.store import HistoryStore
from tests.lab import samples


@pytest.fixture
def place(tmp_path: Path) -> str:
    """Twelve nights of one model, a TFLM commit each; the minimum grows with the last one."""
    where = str(tmp_path / "history.sqlite")
    store = HistoryStore.open(where)
    for night in range(12):
        commit = f"{night:040x}"
        store.add_run(samples.run(run_id=f"run-{night}"))
        sweep = samples.sweep(night, min_bytes=12936 + 64 * (night == 11), commit=commit)
        store.add_result(f"run-{night}", samples.job(number=night, commit=commit), sweep)
    store.close()
    return where


def _run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = main(["history", *arguments])
    return code, capsys.readouterr().out


def test_a_model_is_followed(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = _run(capsys, "kws", "--history", place, "--plot", "--metric", "arena_min_bytes")
    assert code == 0
    assert "2026-01-01T00:11:00Z: 12,936 -> 13,000 B (+0.49 %)" in out
    assert "4 earlier TFLM commits: --json" in out
    assert out.count("median of 1") == 8
    assert "▁▁▁▁▁▁▁▁▁▁▁█" in out
    assert out.count("harness plan on nucleo-f746zg") == 1  # with the newest commit
    assert "1 of 1 too small" in out


def test_the_document_has_everything(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, out = _run(capsys, "kws", "--history", place, "--json")
    document: Any = json.loads(out)
    assert document["schema"] == "harness.history"
    arena = document["series"][0]
    assert (arena["metric"], arena["unit"], arena["board"]) == ("arena_min_bytes", "B", "nucleo-f746zg")
    assert len(arena["points"]) == len(arena["by_commit"]) == len(document["estimates"]) == 12
    assert [(change["before"], change["after"]) for change in arena["changes"]] == [(12936, 13000)]


def test_models_are_listed_and_pictures_drawn(place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(capsys, "--history", place)[1].split()[:5] == ["kws", "nucleo-f746zg", "cmsis_nn", "12", "results,"]
    picture = tmp_path / "kws.svg"
    assert _run(capsys, "kws", "--history", place, "--plot-file", str(picture))[0] == 0
    titles = [f"kws, nucleo-f746zg, cmsis_nn: {name}" for name in ("arena_min_bytes", "invoke_cycles")]
    titles[1] = titles[1].replace("zg,", "zg on left,")  # times are a rig's own
    assert all(picture.read_text().count(f">{title}<") == 1 for title in titles)


def test_what_is_not_there_is_told(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "cat", "--history", place]) == 2
    assert "it holds kws" in capsys.readouterr().err
    assert main(["history", "kws", "--metric", "arena_size", "--history", place]) == 2
    assert "metrics are arena_min_bytes" in capsys.readouterr().err


def test_a_change_with_the_same_tflm_is_told_as_such(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = str(tmp_path / "history.sqlite")
    store = HistoryStore.open(where)
    for night, min_bytes in enumerate((12936, 13000)):
        store.add_run(samples.run(run_id=f"run-{night}"))
        store.add_result(f"run-{night}", samples.job(number=night), samples.sweep(night, min_bytes=min_bytes))
    store.close()
    out = _run(capsys, "kws", "--history", where, "--metric", "arena_min_bytes")[1]
    assert "12,936 -> 13,000 B (+0.49 %), the same TFLM" in out
    assert "aaa -> aaa" not in out


def test_a_commit_that_is_not_known_is_told_as_such(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``TFLM  -> 90b983c`` and ``TFLM : error`` named nothing."""
    where = str(tmp_path / "history.sqlite")
    store = HistoryStore.open(where)
    for night, (min_bytes, commit) in enumerate(((12936, "9" * 40), (13000, ""))):
        store.add_run(samples.run(run_id=f"run-{night}"))
        sweep = samples.sweep(night, min_bytes=min_bytes, commit=commit)
        store.add_result(f"run-{night}", samples.job(number=night, commit=commit), sweep)
    store.close()
    picture = tmp_path / "k.svg"
    _, out = _run(capsys, "kws", "--history", where, "--metric", "arena_min_bytes", "--plot-file", str(picture))
    assert "TFLM 999999999999 -> not known\n" in out
    assert "harness plan on nucleo-f746zg, cmsis_nn, TFLM not known: error" in out
    assert "TFLM not known: 13,000" in picture.read_text()


def test_estimates_without_a_result_are_told(place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A misspelt model was ignored without a word."""
    table = tmp_path / "e.csv"
    table.write_text("tool,model,bytes,board\na,kws.tflite,12000,\na,kvs.tflite,12000,\nb,kws,1,host\n")
    assert main(["history", "kws", "--history", place, "--estimates", str(table)]) == 0
    told = capsys.readouterr()
    assert told.err == (
        f"{table}: 1 of 3 estimates held against 12 results\n  no result of kvs.tflite\n  no result of kws on host\n"
    )
    assert "  a on nucleo-f746zg, cmsis_nn, TFLM " in told.out


def test_an_export_is_of_the_model_that_was_named(
    place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "k.csv"
    for more, rows in (((), 12), (("--last", "3"), 3), (("--board", "nucleo-f746zg"), 12)):
        code, out = _run(capsys, "kws", "--history", place, "--export", str(target), *more)
        assert (code, out) == (0, f"{rows} rows in {target}\n")
        assert len(target.read_text().splitlines()) == rows + 1
    assert main(["history", "cat", "--history", place, "--export", str(target)]) == 2
    assert "the history holds no result of cat" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("kws", "--export", "k.csv", "--plot"), "--plot has no effect on --export"),
        (("kws", "--export", "k.csv", "--metric", "arena_min_bytes"), "--metric has no effect on --export"),
        (("--plot",), "--plot is for one model"),
        (("--last", "3"), "--last is for one model"),
    ],
)
def test_an_option_without_effect_is_refused(
    place: str, arguments: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["history", *arguments, "--history", place]) == 2
    assert told in capsys.readouterr().err
    assert not Path("k.csv").exists()


def test_the_list_is_of_the_board_that_was_named(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(capsys, "--history", place, "--board", "nucleo-f746zg")[1].startswith("kws ")
    assert _run(capsys, "--history", place, "--board", "host")[1] == "the history holds nothing of that\n"
