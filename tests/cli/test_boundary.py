"""The error boundary: a sentence, a remedy, an exit code; with --json a document."""

from __future__ import annotations

import errno
import json
import logging

import click
import pytest

from harness.cli.boundary import run
from harness.errors import LinkError


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


def test_a_full_disk_names_the_file_and_the_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    full = OSError(errno.ENOSPC, "No space left on device", "results/x.json")
    assert run(_command(full), []) == 3
    assert "results/x.json: No space left on device" in capsys.readouterr().err


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
