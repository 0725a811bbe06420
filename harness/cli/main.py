"""The ``harness`` command: a table of lazily loaded commands and the error boundary."""

from __future__ import annotations

import difflib
import importlib
import sys

import click
from click.shell_completion import CompletionItem

from harness import __version__
from harness.cli.boundary import run

#: name → (module, attribute, one line of help). The module is imported only when its command runs, so that
#: ``harness --help`` stays fast.
COMMANDS: dict[str, tuple[str, str, str]] = {
    "sweep": ("harness.cli.sweep", "sweep", "Find the smallest tensor arena that works, on a board."),
    "measure": ("harness.cli.measure", "measure", "Time models on a board, by run and by operator."),
    "soak": ("harness.cli.soak", "soak", "Run a model very often over fresh boots: nothing may change."),
    "qualify": ("harness.cli.qualify", "qualify", "Check a board before it is trusted, and leave evidence."),
    "plan": ("harness.cli.plan", "plan", "Predict the arena of a model from its file alone."),
    "check": ("harness.cli.check", "check", "Check models against what TFLM can run."),
    "inspect": ("harness.cli.inspect", "inspect", "Show the tables of model files."),
    "build": ("harness.cli.build", "build", "Build a checked firmware image for a board."),
    "flash": ("harness.cli.flash", "flash", "Flash a board, read back, and restore what was there."),
    "reconcile": (
        "harness.cli.reconcile",
        "reconcile",
        "Hold a plan, or other tools' estimates, against measurements.",
    ),
    "regress": ("harness.cli.regress", "regress", "Run a suite of models over the rigs of a lab, against baselines."),
    "baseline": ("harness.cli.baseline", "baseline", "Show and update the baselines of a suite."),
    "history": ("harness.cli.history", "history", "What a lab has measured over time."),
    "boards": ("harness.cli.boards", "boards", "List the boards, or show one."),
    "lab": ("harness.cli.lab", "lab", "The rigs of lab.yaml: list them, and propose entries for what is plugged in."),
    "sim": ("harness.cli.sim", "sim", "Emulated boards: serve one to other programs, list the faults."),
    "tflm": ("harness.cli.tflm", "tflm", "Register and list TFLM libraries that firmware is linked with."),
    "monitor": ("harness.cli.monitor", "monitor", "Show what a device says on its port, decoded."),
    "replay": ("harness.cli.replay", "replay", "Decode the transcript of a link session."),
    "doctor": ("harness.cli.doctor", "doctor", "What is installed and plugged in, and what is missing for what."),
    "completion": ("harness.cli.completion", "completion", "Print the completion script of a shell."),
}


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

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            near = difflib.get_close_matches(name, COMMANDS, n=3)
            hint = f"Did you mean {' or '.join(near)}?" if near else "harness --help lists the commands."
            ctx.fail(f"No such command {name!r}. {hint}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The names from the table: completing must not import every command."""
        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        return [
            CompletionItem(name, help=text) for name, (_, _, text) in COMMANDS.items() if name.startswith(incomplete)
        ]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, _, text) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="harness")
@click.option("-v", "--verbose", count=True, help="Log what the library does; -vv for more. Anywhere on the line.")
@click.option("--debug", is_flag=True, help="Show the traceback of an error. Anywhere on the line.")
def cli(verbose: int, debug: bool) -> None:
    """Plan, measure and explain the tensor arena of TensorFlow Lite Micro models."""


def main(argv: list[str] | None = None) -> int:
    """Entry point of the ``harness`` script: the exit code."""
    return run(cli, argv)


if __name__ == "__main__":
    sys.exit(main())
