"""The README holds: its commands run, its tables are those of the code."""

from __future__ import annotations

import importlib.util
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli.main import COMMANDS
from harness.errors import ExitCode
from tests.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def console_commands(text: str) -> list[str]:
    """What stands behind ``$ harness`` in the console blocks, without comments."""
    blocks = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("$ harness ")]
    return [line.removeprefix("$ ") for line in lines]


@pytest.mark.parametrize("line", console_commands(README))
def test_every_command_of_the_readme_runs(line: str, tmp_path: Path) -> None:
    arguments = shlex.split(line, comments=True)[1:]
    if "host" in arguments and importlib.util.find_spec("tflite_micro") is None:
        pytest.skip("the tflite-micro wheel is Linux x86-64 only")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    arguments = [
        name
        for argument in arguments
        for name in (
            sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob(argument))
            if "*" in argument
            else [argument]
        )
    ]
    argv = [sys.executable, "-m", "harness", *arguments]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr


def test_the_readme_shows_a_sweep_and_more() -> None:
    commands = console_commands(README)
    assert any(command.startswith("harness sweep --board host") for command in commands)
    assert len(commands) >= 5


@pytest.mark.parametrize("name", COMMANDS)
def test_the_readme_names_every_command(name: str) -> None:
    assert re.search(rf"`harness {name}\b", README), f"README.md says nothing of harness {name}"


def test_the_exit_codes_are_those_of_the_code() -> None:
    table = README.split("## Exit codes")[1].split("##")[0]
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)] == [int(code) for code in ExitCode]


@pytest.mark.parametrize("page", sorted(path.name for path in (ROOT / "docs").glob("*.md")))
def test_every_page_of_the_documentation_is_in_its_index(page: str) -> None:
    assert page == "index.md" or f"]({page})" in (ROOT / "docs" / "index.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "document", ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
)
def test_links_between_documents_lead_somewhere(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    targets = [target for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text) if "://" not in target]
    missing = [target for target in targets if not ((ROOT / document).parent / target).exists()]
    assert missing == []
