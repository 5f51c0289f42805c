"""`souvenir mcp`: an MCP server on stdio, with the tools of the service's `/mcp` endpoint."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import click

from souvenir_client.cli.failures import Unusable
from souvenir_client.cli.options import DEFAULT_TIMEOUT_S, global_options
from souvenir_client.cli.serve import HOME_VARIABLE, command_in, named_folder, service_folder

if TYPE_CHECKING:
    from souvenir_client.mcp.embedded import Program

ANSWER_S = 120.0
"""Maximum wait between two parts of an answer: twice the request limit of the service."""

DEFAULT_PORT = 8900


@click.command()
@click.option(
    "--agent",
    metavar="NAME",
    help="Name of the agent. Default: SOUVENIR_AGENT, then MCP_NAMESPACE or USER_ID, then the saved agent.",
)
@click.option(
    "--home",
    type=click.Path(path_type=Path),
    help=f"Folder of the service, to start it. Default: {HOME_VARIABLE}, then the saved folder.",
)
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    help="Port of the service on this machine, if no address is set.",
)
def mcp(agent: str | None, home: Path | None, port: int) -> None:
    """Serve MCP on standard input and output.

    Editors start this command, see docs/mcp-clients.md. With an address (--server, SOUVENIR_URL or the saved address)
    it forwards messages to that service. Without one it uses the service on this machine and starts it if none runs;
    several editors share it, and it stops with the last of them.
    """
    if find_spec("mcp") is None:
        raise click.UsageError('`souvenir mcp` needs the MCP SDK: pip install "souvenir-client[mcp]"')
    # If possible, httpx loads its command line, including rich.
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # None is how an import is refused
    asyncio.run(_serve(agent, home, port))


async def _serve(agent: str | None, home: Path | None, port: int) -> None:
    import httpx

    from souvenir_client.calls import AGENT_SAVED, AGENT_VARIABLE, Address, named_url, trusted
    from souvenir_client.hooks.state import state_dir
    from souvenir_client.mcp.bridge import serve
    from souvenir_client.mcp.service import Named, Target
    from souvenir_client.saved import saved

    said = global_options()
    if agent is not None and said.namespace is not None:
        raise click.UsageError("--agent and --namespace both set the namespace: give one of them.")
    timeout_s = ANSWER_S if said.timeout_s == DEFAULT_TIMEOUT_S else said.timeout_s
    try:
        url = said.server or named_url()
        namespace = said.namespace
        if namespace is None:
            agent = agent or os.environ.get(AGENT_VARIABLE, "").strip()
            namespace = None if agent else _namespace_in(os.environ)
        if namespace is None:
            agent = agent or saved(AGENT_SAVED)
        if agent and "/" in agent:
            raise click.UsageError(f"{agent!r} is not a valid agent: use a name without a slash.")
        address = Address.of(url or f"http://127.0.0.1:{port}", said.api_key, namespace, timeout_s, 0)
    except ValueError as error:
        raise click.UsageError(f"{error}.") from error
    http = httpx.AsyncClient(
        verify=trusted(address.url),
        timeout=httpx.Timeout(timeout_s, pool=None),
        limits=httpx.Limits(max_connections=None),
        # Traffic between two programs of this machine must not use a proxy.
        trust_env=url is not None,
    )
    target: Target = Named(address)
    if url is None:
        from souvenir_client.mcp.embedded import Embedded
        from souvenir_client.mcp.keeper import named_database

        database = named_database(os.environ)
        target = Embedded(address, port, state_dir(os.environ), lambda: _program(home), http, database)
    path = "/mcp" if not agent else f"/mcp/{quote(agent, safe='')}"
    async with http:
        await serve(http, target, path)


def _namespace_in(variables: Mapping[str, str]) -> str | None:
    """The namespace in the variables that other memory servers use."""
    from souvenir_client.mcp.keeper import NAMESPACE_VARIABLES

    return next((said for name in NAMESPACE_VARIABLES if (said := variables.get(name, "").strip())), None)


def _program(home: Path | None) -> Program:
    """The program that runs the service, never one in the folder that an editor has open.

    :raises NotStarted: If there is none.
    """
    from souvenir_client.mcp.embedded import NotStarted, Program

    try:
        named = named_folder(home)
        if named is None:
            raise NotStarted(
                f"No Souvenir runs on this machine: start it, set SOUVENIR_URL to its address, or set --home or "
                f"{HOME_VARIABLE} to the folder of the service, to start it from there."
            )
        folder = service_folder(named)
        return Program(folder, command_in(folder))
    except Unusable as error:
        raise NotStarted(error.format_message()) from error
