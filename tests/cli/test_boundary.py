"""The error boundary: a sentence, a remedy, an exit code; with --json a document."""

from __future__ import annotations

import errno
import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from harness.cli.boundary import run
from harness.cli.main import main
from harness.errors import LinkError
from tests.patience import PATIENCE_S


def _command(raises: BaseException | None = None, result: int | None = None) -> click.Command:
    @click.command()
    @click.option("--json", "as_json", is_flag=True)
    @click.option("--count", type=int)
    def command(as_json: bool, count: int | None) -> int | None:  # noqa: ARG001
        if raises is not None:
            raise raises
        return result

    return command


def test_a_commands_return_value_is_the_exit_code() -> None:
    assert run(_command(), []) == 0
    assert run(_command(result=1), []) == 1


def test_an_error_says_what_and_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    error = LinkError("the port is gone", remedy="plug it in", code="link.gone")
    assert run(_command(error), []) == 6
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "error: the port is gone\n  plug it in\n"


def test_with_json_an_error_is_one_document_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    error = LinkError("the port is gone", remedy="plug it in", code="link.gone")
    assert run(_command(error), ["--json"]) == 6
    assert json.loads(capsys.readouterr().out) == {
        "schema": "harness.error",
        "schema_version": 1,
        "error": {"code": "link.gone", "message": "the port is gone", "remedy": "plug it in"},
    }


def test_bad_usage_is_exit_2_and_a_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(_command(), ["--json", "--count", "many"]) == 2
    out, err = capsys.readouterr()
    assert json.loads(out)["error"]["code"] == "usage"
    assert "'many' is not a valid integer" in err


def test_an_interrupt_is_130(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(_command(KeyboardInterrupt()), []) == 130
    assert capsys.readouterr().err.strip() == "interrupted"


def test_an_interrupt_is_130_also_when_closing_things_then_fails(capsys: pytest.CaptureFixture[str]) -> None:
    closing = LinkError("the port is gone")
    closing.__context__ = RuntimeError("goodbye")
    closing.__context__.__context__ = KeyboardInterrupt()
    assert run(_command(closing), []) == 130
    assert capsys.readouterr().err.strip() == "interrupted"


def test_an_interrupt_with_json_is_a_document_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(_command(KeyboardInterrupt()), ["--json"]) == 130
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "interrupted"


def test_a_full_disk_names_the_file_and_the_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    full = OSError(errno.ENOSPC, "No space left on device", "results/x.json")
    assert run(_command(full), []) == 3
    assert "results/x.json: No space left on device" in capsys.readouterr().err


@pytest.mark.parametrize("lost", [ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"), TimeoutError()])
def test_a_connection_that_is_lost_is_no_wrong_path(lost: OSError, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(_command(lost), []) == 6
    assert "path" not in capsys.readouterr().err


def test_an_unforeseen_error_is_a_sentence_and_with_debug_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(_command(ValueError("odd\x1b[31m")), []) == 1
    err = capsys.readouterr().err
    assert "a bug of harness: ValueError: odd\\x1b[31m" in err
    assert "Traceback" not in err
    assert run(_command(ValueError("odd")), ["--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_debug_and_verbose_are_taken_anywhere_but_not_behind_two_dashes() -> None:
    @click.command()
    @click.argument("names", nargs=-1)
    def command(names: tuple[str, ...]) -> int:
        return len(names)

    assert run(command, ["a", "-v", "--debug", "b"]) == 2
    assert run(command, ["a", "--", "-v"]) == 2


def test_what_pyocd_logs_is_shown_with_verbose_only(capsys: pytest.CaptureFixture[str]) -> None:
    @click.command()
    def command() -> None:
        logging.getLogger("pyocd.coresight.dap").error("no ACK")
        logging.getLogger("harness.probe").warning("programming once more")

    assert run(command, []) == 0
    assert capsys.readouterr().err == "WARNING harness.probe: programming once more\n"
    assert run(command, ["-v"]) == 0
    assert "ERROR pyocd.coresight.dap: no ACK" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "end"),
    [
        ("boards --json >/dev/full", 3),
        ("boards --show nothing --json >/dev/full", 5),
        ("boards >/dev/full", 3),
        ("boards >&-", 0),
        ("boards --json >&- 2>&-", 0),
        ("boards --show nothing <&- >&- 2>&-", 5),
    ],
)
def test_an_output_that_takes_nothing_is_no_traceback(command: str, end: int) -> None:
    shell = ["sh", "-c", f'"{sys.executable}" -m harness {command}']
    ended = subprocess.run(shell, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert ended.returncode == end, ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("number", ["nan", "inf", "-inf"])
@pytest.mark.parametrize(
    "command",
    [
        ["plan", "m", "--headroom"],
        ["sweep", "m", "--board", "host", "--timeout"],
        ["sweep", "m", "--board", "host", "--trial-timeout"],
        ["soak", "m", "--board", "host", "--minutes"],
        ["soak", "m", "--board", "host", "--spread"],
        ["monitor", "p", "--for"],
        ["flash", "m", "--board", "host", "--timeout"],
        ["regress", "s", "--max-minutes"],
    ],
    ids=" ".join,
)
def test_a_bound_is_a_finite_number(command: list[str], number: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, number]) == 2
    assert f"Invalid value for '{command[-1]}'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        ["replay", "/dev/zero"],
        ["reconcile", "/dev/zero"],
        ["plan", "examples/svdf.tflite", "--abi-from", "/dev/zero"],
        ["regress", "/dev/zero"],
    ],
    ids=lambda command: command[0],
)
def test_a_file_without_an_end_is_refused(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command) == 2
    assert "File too large" in capsys.readouterr().err


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_without_utf_8_gets_escapes(encoding: str) -> None:
    command = [sys.executable, "-m", "harness", "plan", "examples/svdf.tflite"]
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    ended = subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=False, env=environment)
    assert ended.returncode == 0, ended.stderr
    assert rb"0\u20131" in ended.stdout


@pytest.mark.parametrize("columns", ["0", "1", "40", "many"])
def test_any_width_that_the_environment_names_shows_the_numbers(columns: str) -> None:
    command = [sys.executable, "-m", "harness", "plan", "examples/svdf.tflite"]
    environment = {**os.environ, "COLUMNS": columns}
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False, env=environment)
    assert ended.returncode == 0, ended.stderr
    assert "1,716" in ended.stdout


@pytest.mark.parametrize(
    ("exc", "code"),
    [
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), 6),
        (ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"), 6),
        (OSError(errno.EPIPE, "Broken pipe"), 6),
    ],
)
def test_a_connection_that_breaks_is_no_reader_that_went_away(
    exc: OSError, code: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """click takes every EPIPE for the standard output's, and would end with 1 and without a word."""
    assert run(_command(raises=exc), ["--json"]) == code
    out, err = capfd.readouterr()
    assert json.loads(out)["error"]["code"] == "connection"
    assert exc.strerror in err


def test_a_reader_that_went_away_is_141_without_a_word(tmp_path: Path) -> None:
    """It reads nothing, and is gone before anything is written."""
    shell = f'{{ until test -e gone; do sleep 0.01; done; "{sys.executable}" -m harness boards --json; }} | touch gone'
    done = subprocess.run(
        ["bash", "-c", f"{shell}; echo ${{PIPESTATUS[0]}}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.stdout.strip(), done.stderr) == ("141", "")


def test_a_shell_is_given_completions() -> None:
    environment = os.environ | {"_HARNESS_COMPLETE": "bash_complete", "COMP_WORDS": "harness swe", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "harness"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.stdout.strip(), done.returncode) == ("plain,sweep", 0)
