"""The command frame: help, version, suggestions, completion."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from harness import __version__
from harness.cli.main import COMMANDS, cli
from tests.patience import PATIENCE_S


def run(*args: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "harness", *args]
    return subprocess.run(
        argv, capture_output=True, text=True, timeout=PATIENCE_S, env=os.environ | (env or {}), check=False
    )


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_version(option: str) -> None:
    done = run(option)
    assert (done.returncode, done.stdout) == (0, f"harness, version {__version__}\n")


def test_help_lists_every_command_with_its_line() -> None:
    text = " ".join(CliRunner().invoke(cli, ["--help"]).output.split())
    for name, (_, _, line) in COMMANDS.items():
        assert f"{name} {line}" in text


def test_help_imports_none_of_the_commands() -> None:
    """``harness --help`` must start in a blink: it may import click and the table, nothing else of ours."""
    program = (
        "import sys; from harness.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'pandas', 'rich', 'msgspec', 'tflite', 'jinja2', 'serial', 'pyocd', 'asyncio', 'yaml'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    assert done.stderr.strip() == "[]"


def test_ctrl_c_during_the_imports_is_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("raise KeyboardInterrupt")  # as if it came there
    done = run("boards", env={"PYTHONPATH": str(tmp_path)})
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_table_can_be_loaded_and_helps(name: str) -> None:
    module, attribute, line = COMMANDS[name]
    command = getattr(importlib.import_module(module), attribute)
    assert isinstance(command, click.Command)
    assert line.endswith(".")
    result = CliRunner().invoke(cli, [name, "--help"])
    assert (result.exit_code, result.output.startswith("Usage: ")) == (0, True)


def test_a_mistyped_command_gets_a_suggestion() -> None:
    done = run("docter")
    assert done.returncode == 2
    assert "No such command 'docter'. Did you mean doctor?" in done.stderr
    assert done.stdout == ""


def test_an_unknown_command_points_to_help() -> None:
    done = run("zzzz")
    assert done.returncode == 2
    assert "harness --help lists the commands." in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_the_shells_script(shell: str) -> None:
    done = run("completion", shell)
    assert done.returncode == 0
    assert f"_HARNESS_COMPLETE={shell}_complete" in done.stdout


def test_completion_offers_commands_without_importing_them() -> None:
    done = run(env={"_HARNESS_COMPLETE": "bash_complete", "COMP_WORDS": "harness doc", "COMP_CWORD": "1"})
    assert done.stdout == "plain,doctor\n"


def test_completion_offers_the_options_of_a_command() -> None:
    done = run(env={"_HARNESS_COMPLETE": "bash_complete", "COMP_WORDS": "harness doctor --js", "COMP_CWORD": "2"})
    assert done.stdout == "plain,--json\n"


def test_an_unknown_shell_is_bad_usage() -> None:
    assert run("completion", "tcsh").returncode == 2
