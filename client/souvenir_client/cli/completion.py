"""`souvenir completion`: the script that lets a shell complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from souvenir_client.cli.output import answer

INSTALLED_BY = {
    "bash": "souvenir completion bash > ~/.local/share/bash-completion/completions/souvenir",
    "zsh": 'souvenir completion zsh > "${fpath[1]}/_souvenir"',
    "fish": "souvenir completion fish > ~/.config/fish/completions/souvenir.fish",
}


@click.command()
@click.argument("shell", type=click.Choice(list(INSTALLED_BY)), help="The shell.")
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell; its last lines say how to install it."""
    made_by = get_completion_class(shell)
    if made_by is None:
        raise click.UsageError(f"There is no completion for {shell}.")
    root = context.find_root()
    script = made_by(root.command, {}, str(root.info_name), "_SOUVENIR_COMPLETE").source()
    install = INSTALLED_BY[shell]
    document = {"shell": shell, "install": install, "script": script}
    # After the script, because zsh requires its own first line.
    answer(document, lambda: click.echo(f"{script.rstrip()}\n\n# Install it for new shells with:\n#   {install}"))
