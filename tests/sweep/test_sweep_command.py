"""``harness sweep --board host``: the contract, and that nothing that was finished is ever lost."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.cli.main import main
from harness.record.store import read_record
from tests.host_board.presence import needs_host_board
from tests.patience import PATIENCE_S
from tests.processes import Signalled

pytestmark = needs_host_board

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
HELLO = str(EXAMPLES / "hello.tflite")


class Sweep:
    """Runs the command in this process, records in ``results``."""

    def __init__(self, results: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.results = results
        self._capsys = capsys

    def __call__(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        code = main(["sweep", "--board", "host", "--json", "--results", str(self.results), *arguments])
        out, self.err = self._capsys.readouterr()
        assert "Traceback" not in self.err
        return code, json.loads(out)

    def one(self, *arguments: str) -> dict[str, Any]:
        code, document = self(*arguments)
        (result,) = document["results"]
        assert (code == 0) == (result["status"] == "ok")
        return result


@pytest.fixture
def sweep(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Sweep:
    return Sweep(tmp_path / "results", capsys)


def test_the_json_contract(sweep: Sweep) -> None:
    code, document = sweep(HELLO)
    assert code == 0
    assert (document["schema"], document["schema_version"]) == ("harness.sweep", 1)
    (result,) = document["results"]
    assert result["model"].keys() == {"path", "sha256", "bytes"}
    assert (result["board"], result["kernels"], result["status"], result["error"]) == ("host", "reference", "ok", None)
    assert result["plan"]["schema"] == "harness.plan"
    assert result["measured"]["used_bytes"] == result["plan"]["arena"]["used_bytes"]
    search = result["search"]
    assert (search["step_bytes"], search["flashes"]) == (16, 1)
    assert search["min_bytes"] - search["largest_failing_bytes"] == 16
    assert [trial["outcome"] for trial in search["trials"]] == ["works", "works", "too_small"]
    assert search["trials"][-1]["reason"] == "alloc_failed"
    assert search["trials"][-1]["arena_bytes"] == search["largest_failing_bytes"]
    assert result["reconciliation"]["unexplained_bytes"] == 0
    assert {"name", "planned_bytes", "measured_bytes"} <= result["reconciliation"]["terms"][0].keys()
    assert result["reference"]["agreement"] == "bit_exact"


def test_used_is_not_the_minimum(sweep: Sweep) -> None:
    """The number that users copy from arena_used_bytes() is too small: 1,504 are used and 1,936 needed."""
    result = sweep.one(HELLO)
    assert result["measured"]["used_bytes"] < result["search"]["min_bytes"]


def test_each_run_leaves_one_record_and_no_journal(sweep: Sweep) -> None:
    first, second = sweep.one(HELLO), sweep.one(HELLO)
    paths = sorted(sweep.results.glob("*.json"))
    assert len(paths) == 2
    assert {first["record_path"], second["record_path"]} == {path.as_posix() for path in paths}
    record = read_record(paths[0])
    assert record.search is not None
    assert record.search.min_bytes == first["search"]["min_bytes"]
    assert list((sweep.results / "journal").glob("*.jsonl")) == []


def test_to_the_byte(sweep: Sweep) -> None:
    result = sweep.one("--step", "1", HELLO)
    assert result["search"]["min_bytes"] == result["plan"]["arena"]["min_exact_bytes"]
    assert result["search"]["largest_failing_bytes"] == result["search"]["min_bytes"] - 1


def test_many_models_go_on_after_a_bad_one_and_the_highest_code_is_the_end(sweep: Sweep, tmp_path: Path) -> None:
    bad = tmp_path / "bad.tflite"
    bad.write_bytes(b"no model")
    code, document = sweep(HELLO, str(bad), str(EXAMPLES / "kws.tflite"))
    assert code == 2
    assert [result["status"] for result in document["results"]] == ["ok", "failed", "ok"]
    assert document["results"][1]["error"]["message"]
    assert document["results"][1]["search"] is None


def test_an_unknown_board_is_exit_5(sweep: Sweep) -> None:
    code, document = sweep("--board", "nucleo-f999", HELLO)
    assert code == 5
    assert document["results"][0]["error"]["code"] == "board.unknown"
    assert document["results"][0]["record_path"] is None
    assert not sweep.results.exists(), "a name that nobody has is no run of a board"


def test_kernels_that_the_host_does_not_have_are_exit_2(sweep: Sweep) -> None:
    code, document = sweep("--kernels", "cmsis_nn", HELLO)
    assert code == 2
    assert "reference kernels" in document["results"][0]["error"]["message"]


def test_the_plain_interpreter_is_not_on_the_host_and_that_is_exit_2(sweep: Sweep) -> None:
    code, document = sweep("--interpreter", "plain", HELLO)
    assert code == 2
    assert document["results"][0]["error"]["code"] == "interpreter.not_on_board"


def test_bad_usage_is_one_document_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "--board", "host", "--json", "--step", "none", HELLO]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "usage"


def test_inputs_from_a_file_are_the_reference_s_too(sweep: Sweep, tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.full((1, 1), 64, np.int8))
    result = sweep.one("--input", str(path), HELLO)
    filled = sweep.one("--fill", "64", HELLO)
    assert result["measured"]["output_digest"] == filled["measured"]["output_digest"]
    assert result["reference"]["agreement"] == "bit_exact"
    assert result["inputs"].startswith("file sha256")


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((1, 1), np.float32), "holds float32[1, 1], input"),
        (np.zeros((1, 2), np.int8), "takes int8[1, 1]"),
        (np.array([object()]), "no plain .npy array"),
    ],
)
def test_an_input_that_does_not_fit_is_exit_2(sweep: Sweep, tmp_path: Path, array: Any, words: str) -> None:
    path = tmp_path / "x.npy"
    np.save(path, array, allow_pickle=True)
    code, document = sweep("--input", str(path), HELLO)
    assert code == 2
    assert words in document["results"][0]["error"]["message"]


def test_a_fill_out_of_range_is_exit_2(sweep: Sweep) -> None:
    code, document = sweep("--fill", "300", HELLO)
    assert code == 2
    assert "outside the range" in document["results"][0]["error"]["message"]


def test_a_transcript_replays(sweep: Sweep, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.jsonl"
    sweep.one("--transcript", str(path), HELLO)
    assert main(["replay", str(path)]) == 0
    out = capsys.readouterr().out
    assert "→ TrialRequest" in out
    assert "← TrialReport" in out
    assert "text: tflm-harness 1.2 board=host" in out


def test_all_tensors_preserved_needs_another_arena(sweep: Sweep) -> None:
    kws = str(EXAMPLES / "kws.tflite")
    preserved, reused = sweep.one("--interpreter", "preserve_all", kws), sweep.one(kws)
    assert preserved["search"]["min_bytes"] > reused["search"]["min_bytes"]
    assert preserved["measured"]["used_bytes"] is None
    assert preserved["measured"]["output_digest"] == reused["measured"]["output_digest"]


def test_results_that_cannot_be_written_are_said_so_and_the_numbers_are_not_lost(sweep: Sweep, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    sweep.results = tmp_path / "file" / "results"
    code, document = sweep(HELLO)
    assert code == 3
    assert document["results"][0]["error"]["code"] == "results.unwritable"


def test_the_time_of_a_sweep_is_bounded(sweep: Sweep) -> None:
    code, document = sweep("--timeout", "0.1", HELLO)
    assert code in {5, 6}
    assert document["results"][0]["status"] == "error"


COMMAND = [sys.executable, "-m", "harness", "sweep", "--board", "host", "--json"]


def _command(results: Path, *arguments: str, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, "--results", str(results), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def _journal_lines(results: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in (results / "journal").glob("*.jsonl"))


@pytest.mark.parametrize("after", [1, 2, 3])
def test_kill_9_loses_no_finished_trial_and_the_next_run_goes_on(tmp_path: Path, after: int) -> None:
    """Killed as soon as ``after`` trials stand in the journal; only the rest is tried by the next run."""
    results = tmp_path / "results"
    arguments = [*COMMAND[3:], "--results", str(results), "--step", "1", str(EXAMPLES / "kws.tflite")]
    killed = Signalled(signal.SIGKILL, ".jsonl", "\n", after, tmp_path / "children", *arguments, timeout=PATIENCE_S)
    assert killed.done.returncode == -signal.SIGKILL, killed.done.stderr
    assert _journal_lines(results) == after
    assert list(results.glob("*.json")) == []
    again = _command(results, "--step", "1", str(EXAMPLES / "kws.tflite"))
    out, err = again.communicate(timeout=PATIENCE_S)
    assert again.returncode == 0, err
    (result,) = json.loads(out)["results"]
    assert result["search"]["resumed_trials"] == after
    assert result["search"]["min_bytes"] == result["plan"]["arena"]["min_exact_bytes"]
    assert len(result["search"]["trials"]) == 3
    assert result["measured"]["used_bytes"] == result["plan"]["arena"]["used_bytes"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("name", "needle", "count", "finished"),
    [
        (".jsonl", "\n", 1, 0),
        (".jsonl", '"arena_bytes":24272', 1, 1),
        (".tmp", "harness", 1, 1),
    ],
    ids=["in the first model", "in the second model", "while a record is written"],
)
def test_an_interruption_is_130_and_every_record_that_is_on_disk_is_in_the_document(
    tmp_path: Path, name: str, needle: str, count: int, finished: int, number: signal.Signals
) -> None:
    results = tmp_path / "results"
    models = [HELLO, *[str(EXAMPLES / "kws.tflite")] * 3]
    arguments = [*COMMAND[3:], "--results", str(results), *models]
    done = Signalled(number, name, needle, count, tmp_path / "children", *arguments, timeout=PATIENCE_S).done
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr
    document = json.loads(done.stdout)
    assert document["interrupted"] is True
    assert [result["status"] for result in document["results"]] == ["ok"] * finished
    assert {Path(result["record_path"]) for result in document["results"]} == set(results.glob("*.json"))


def _one_kilobyte() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))


def test_a_full_disk_is_said_so_without_half_a_record(tmp_path: Path) -> None:
    """Files may not grow beyond 1 KiB: the journal's or the record's write fails as on a full disk."""
    results = tmp_path / "results"
    process = _command(results, HELLO, preexec_fn=_one_kilobyte)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 3, err
    assert json.loads(out)["results"][0]["error"]["code"] == "results.unwritable"
    assert list(results.glob("*.json")) == []
    assert list(results.rglob("*.tmp")) == []


def _room_for_a_journal_only() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (6 * 1024, 6 * 1024))


def test_where_the_record_does_not_fit_the_trials_stay_for_the_next_run(tmp_path: Path) -> None:
    results = tmp_path / "results"
    full = _command(results, HELLO, preexec_fn=_room_for_a_journal_only)
    out, err = full.communicate(timeout=PATIENCE_S)
    assert (full.returncode, json.loads(out)["results"][0]["error"]["code"]) == (3, "results.unwritable"), err
    kept = _journal_lines(results)
    again = _command(results, HELLO)
    out, err = again.communicate(timeout=PATIENCE_S)
    assert again.returncode == 0, err
    assert json.loads(out)["results"][0]["search"]["resumed_trials"] == kept == 3
    assert _journal_lines(results) == 0


def test_for_a_person_the_numbers_stand_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "--board", "host", "--results", str(tmp_path), HELLO]) == 0
    out, err = capsys.readouterr()
    assert "minimum that works: 1,936 B" in out
    assert "constexpr size_t kTensorArenaMinimum = 1936;  // fails with 1920" in out
    assert "constexpr size_t kTensorArenaSize = 2144;" in out  # 1936 × 1.1 = 2129.6, up to a multiple of 16
    assert "trial 1" in err


def test_a_hostile_name_cannot_steer_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a\x1b[31m[bold]\n.tflite"
    path.write_bytes(Path(HELLO).read_bytes())
    assert main(["sweep", "--board", "host", "--results", str(tmp_path), str(path)]) == 0
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err
    assert "a\\x1b[31m[bold]\\x0a.tflite on host" in out


def test_a_file_name_that_is_no_unicode_is_swept_too(sweep: Sweep, tmp_path: Path) -> None:
    name = os.fsencode(str(tmp_path)) + b"/\xff\xfe.tflite"
    Path(os.fsdecode(name)).write_bytes(Path(HELLO).read_bytes())
    result = sweep.one(os.fsdecode(name))
    assert result["model"]["path"].endswith("/\ufffd\ufffd.tflite")


def test_without_the_interpreter_package_it_is_exit_3(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['tflite_micro'] = None\n"
        "from harness.cli.main import main\n"
        f"sys.exit(main(['sweep', '--board', 'host', '--json', '--results', {str(tmp_path)!r}, {HELLO!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 3, done.stderr
    (result,) = json.loads(done.stdout)["results"]
    assert result["error"]["code"] == "environment.missing"
    assert "pip install tflite-micro" in result["error"]["remedy"]


def test_a_model_with_state_is_compared_over_a_sequence_and_after_resets(sweep: Sweep) -> None:
    reference = sweep.one(str(EXAMPLES / "svdf.tflite"), "--tolerance", "0")["reference"]
    assert (reference["agreement"], reference["vectors"]) == ("bit_exact", 7)
    stateless = sweep.one(HELLO, "--tolerance", "0")["reference"]
    assert (stateless["agreement"], stateless["vectors"], stateless["tolerance_steps"]) == ("bit_exact", 1, 0)


def test_a_hostile_board_name_is_an_error_like_any_other(tmp_path: Path) -> None:
    process = _command(tmp_path / "results", HELLO, "--board", "no\udcff\x1b[31m")
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 5, err
    assert json.loads(out)["results"][0]["error"]["code"] == "board.unknown"
