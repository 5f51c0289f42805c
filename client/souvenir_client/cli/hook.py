"""`souvenir hook`: the hooks that Claude Code runs, with JSON on standard input; `souvenir install` sets them up.

The exit status is never 2, which would make Claude Code block the action.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from souvenir_client.cli.failures import Negative
from souvenir_client.cli.options import DEFAULT_TIMEOUT_S, global_options
from souvenir_client.hooks.events import Hook
from souvenir_client.hooks.runner import BUDGET_VARIABLE, main

HELP = {
    Hook.SESSION_START: "Print the context of the project for a new session.",
    Hook.PROMPT: "Print the memories that are relevant to a prompt.",
    Hook.STOP: "Store the messages since the last run.",
    Hook.PRE_COMPACT: "Store all messages before a conversation is compacted.",
}


class _Harmless(click.Group):
    """Wrong usage exits with 1."""

    def make_context(self, *arguments: Any, **extra: Any) -> click.Context:
        try:
            return super().make_context(*arguments, **extra)
        except click.UsageError as error:
            raise Negative(error.format_message()) from error

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            raise Negative(error.format_message()) from error


@click.group(cls=_Harmless)
def hook() -> None:
    """Run a hook of an editor; its input is the JSON of the editor.

    --namespace sets the agent. Default: SOUVENIR_AGENT, then an agent for the project's folder. --timeout limits the
    whole hook. Default: SOUVENIR_HOOK_BUDGET_S, then 2 s for hooks that print context and 10 s for the others.
    """


def _command(which: Hook) -> click.Command:
    def run() -> None:
        if sys.stdin.isatty():
            raise Negative(
                "This command is run by Claude Code with JSON on standard input; see `souvenir install claude-code`."
            )
        said = global_options()
        budget_s = None if said.timeout_s == DEFAULT_TIMEOUT_S else str(said.timeout_s)
        named = {
            "SOUVENIR_URL": said.server,
            "SOUVENIR_API_KEY": said.api_key,
            "SOUVENIR_AGENT": said.namespace,
            BUDGET_VARIABLE: budget_s,
        }
        environment = {**os.environ, **{name: value for name, value in named.items() if value is not None}}
        main(which, environment, sys.stdin.buffer, sys.stdout, sys.stderr)

    return click.command(which.value, help=HELP[which])(run)


for _which in Hook:
    hook.add_command(_command(_which))
