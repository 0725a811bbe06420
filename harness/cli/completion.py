"""``harness completion SHELL``: the script that a shell sources to complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of SHELL.

    \b
    bash: source <(harness completion bash)        in ~/.bashrc
    zsh:  source <(harness completion zsh)         in ~/.zshrc
    fish: harness completion fish > ~/.config/fish/completions/harness.fish
    """
    completion_class = get_completion_class(shell)
    assert completion_class is not None  # click has all of SHELLS
    script = completion_class(ctx.find_root().command, {}, "harness", "_HARNESS_COMPLETE")
    click.echo(script.source())
