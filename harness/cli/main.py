"""The ``harness`` command: a table of lazily loaded commands and the error boundary."""

from __future__ import annotations

import importlib
import sys

import click

from harness import __version__
from harness.cli.boundary import run

#: name → (module, attribute, one line of help). The module is imported only when its command runs, so that
#: ``harness --help`` stays fast.
COMMANDS: dict[str, tuple[str, str, str]] = {}


class LazyGroup(click.Group):
    """A click group that imports a command's module only when that command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[cmd_name]
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        if COMMANDS:
            with formatter.section("Commands"):
                formatter.write_dl([(name, text) for name, (_, _, text) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="harness")
@click.option("-v", "--verbose", count=True, help="Log what the library does; -vv for more. Anywhere on the line.")
@click.option("--debug", is_flag=True, help="Show the traceback of an error. Anywhere on the line.")
def cli(verbose: int, debug: bool) -> None:
    """Plan, measure and explain the tensor arena of TensorFlow Lite Micro models."""


def main(argv: list[str] | None = None) -> int:
    """Entry point of the ``harness`` script: the exit code."""
    return run(cli, argv)


if __name__ == "__main__":
    sys.exit(main())
