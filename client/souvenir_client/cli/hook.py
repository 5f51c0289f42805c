"""`souvenir hook`: what Claude Code runs, with JSON on the standard input; `souvenir install` sets it up.

Whatever happens, the exit status is not 2: to Claude Code that would mean to stop what it was about to do.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from souvenir_client.cli.failures import Negative
from souvenir_client.cli.options import DEFAULT_TIMEOUT_S, global_options
from souvenir_client.hooks.events import Hook
from souvenir_client.hooks.running import BUDGET_VARIABLE, main

HELP = {
    Hook.SESSION_START: "Give a session what is known of its project.",
    Hook.PROMPT: "Give Claude what bears on a prompt.",
    Hook.STOP: "Store what was said since the last time.",
    Hook.PRE_COMPACT: "Store all that was said before a conversation is compacted.",
}


class _Harmless(click.Group):
    """Wrong use ends with 1."""

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
    """Run a hook of an editor; its input is the editor's JSON.

    The namespace is the agent that remembers: SOUVENIR_AGENT without it, else one for the project's folder. The timeout
    is that of the whole hook: SOUVENIR_HOOK_BUDGET_S without it, else 2 s for what gives context and 10 s for others.
    """


def _command(which: Hook) -> click.Command:
    def run() -> None:
        if sys.stdin.isatty():
            raise Negative("This command reads the JSON of a hook of Claude Code; see `souvenir install claude-code`.")
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
