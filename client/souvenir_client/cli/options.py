"""The options of every command, accepted before and after its name, and the client that they configure.

They are added to each command when it is loaded; the last value wins. The client reads a missing address or key from
the environment, so that the variables mean the same everywhere.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import click

from souvenir_client.errors import Forbidden

if TYPE_CHECKING:
    from souvenir_client import Souvenir

DEFAULT_TIMEOUT_S = 30.0
MAX_TIMEOUT_S = 86_400.0


@dataclass(frozen=True, slots=True)
class GlobalOptions:
    """The options of the service and of the output format."""

    server: str | None = None
    api_key: str | None = field(default=None, repr=False)
    namespace: str | None = None
    as_json: bool = False
    timeout_s: float = DEFAULT_TIMEOUT_S


def global_options() -> GlobalOptions:
    """The options of the running command."""
    return _of(click.get_current_context())


def client_of(agent: str | None = None) -> Souvenir:
    """A client for the running command; close it.

    :param agent: The agent's namespace, as with `--namespace`.
    """
    from souvenir_client import Souvenir

    said = global_options()
    if agent is not None and said.namespace is not None:
        raise click.UsageError("--agent and --namespace both set the namespace: give one of them.")
    try:
        return Souvenir(said.server, api_key=said.api_key, namespace=agent or said.namespace, timeout_s=said.timeout_s)
    except ValueError as error:
        raise click.UsageError(f"{error}.") from error


def make_agent(client: Souvenir, agent: str | None) -> None:
    """Create the agent of a command, if it sets one.

    A key that is limited to sources cannot create agents, but can store; a key that cannot store gets an error then.
    """
    if agent is not None:
        with suppress(Forbidden):
            client.agents.create(name=agent)


def with_global_options(command: click.Command) -> click.Command:
    """Add these options to the command, after its own, and to its subcommands."""
    command.params += _new_options()
    if isinstance(command, click.Group):
        for below in command.commands.values():
            with_global_options(below)
    return command


def _new_options() -> list[click.Parameter]:
    return [
        click.Option(
            ["--server"],
            metavar="URL",
            callback=_keep,
            expose_value=False,
            help="Address of the service. Default: SOUVENIR_URL, then the saved address, then http://127.0.0.1:8900.",
        ),
        click.Option(
            ["--api-key"],
            metavar="KEY",
            callback=_keep,
            expose_value=False,
            help="API key. Default: SOUVENIR_API_KEY, which other users of the machine cannot see, then the saved key.",
        ),
        click.Option(
            ["--namespace"],
            metavar="NAME",
            callback=_keep,
            expose_value=False,
            help="Namespace; that of an agent is its name. Default: the namespace of the key, then default.",
        ),
        click.Option(
            ["--json", "as_json"],
            is_flag=True,
            callback=_keep,
            expose_value=False,
            help="Print JSON only on stdout.",
        ),
        click.Option(
            ["--timeout", "timeout_s"],
            metavar="SECONDS",
            type=float,
            callback=_keep_timeout,
            expose_value=False,
            help=f"Timeout of a request. Default: {DEFAULT_TIMEOUT_S:g}.",
        ),
    ]


def _keep(context: click.Context, option: click.Parameter, value: Any) -> None:
    if value not in (None, False):
        changes: dict[str, Any] = {option.name: value}
        context.find_root().obj = replace(_of(context), **changes)


def _keep_timeout(context: click.Context, option: click.Parameter, value: float | None) -> None:
    if value is not None and not 0.0 < value <= MAX_TIMEOUT_S:
        raise click.BadParameter(f"It must be above 0 and at most {MAX_TIMEOUT_S:g} s.", context, option)
    _keep(context, option, value)


def _of(context: click.Context) -> GlobalOptions:
    said = context.find_root().obj
    return said if isinstance(said, GlobalOptions) else GlobalOptions()
