"""`souvenir agents`: the agents of the service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from souvenir_client.cli.options import client_of
from souvenir_client.cli.output import Column, answer, confirm, counted, draw_table, minute_of, note_of_page, say, wire
from souvenir_client.cli.parameters import limit_option, metadata_option, offset_option, yes_option

if TYPE_CHECKING:
    from souvenir_client.records import AgentPage, AgentRecord, AgentStatsResponse

name_argument = click.argument("name", help="Name of the agent.")


@click.group()
def agents() -> None:
    """List, create, show and delete agents, and set their access levels."""


@agents.command("list")
@limit_option(100, 1_000)
@offset_option()
def list_(limit: int, offset: int) -> None:
    """List agents."""
    with client_of() as client:
        page = client.agents.list(limit=limit, offset=offset)
    answer(wire(page), lambda: _draw_page(page))


def _draw_page(page: AgentPage) -> None:
    columns = [Column("NAME"), Column("CREATED (UTC)")]
    draw_table(columns, ([agent.name, minute_of(agent.created_at)] for agent in page.agents))
    note_of_page(len(page.agents), page.offset, page.total)


@agents.command()
@name_argument
@metadata_option("Metadata of the agent.")
def create(name: str, metadata: Mapping[str, Any]) -> None:
    """Create an agent; an existing one is not changed."""
    with client_of() as client:
        agent = client.agents.create(name=name, metadata=metadata or None)
    answer(wire(agent), lambda: say(f"Agent {agent.name}, created {minute_of(agent.created_at)} UTC."))


@agents.command()
@name_argument
def show(name: str) -> None:
    """Show an agent and its statistics."""
    with client_of() as client:
        agent, stats = client.agents.get(name), client.agents.stats(name)
    answer({**wire(agent), "stats": wire(stats)}, lambda: _draw(agent, stats))


def _draw(agent: AgentRecord, stats: AgentStatsResponse) -> None:
    say(f"{agent.name}, created {minute_of(agent.created_at)} UTC")
    talk = f"{_messages(stats.messages)} of {counted(stats.sessions, 'session', 'sessions')}"
    people = counted(stats.users, "user", "users")
    say(f"{talk} with {people}, {counted(stats.blocks, 'block', 'blocks')}, {_memories(stats.memories)}")
    if stats.last_message_at is not None:
        say(f"messages from {minute_of(stats.first_message_at)} to {minute_of(stats.last_message_at)} UTC")


@agents.command()
@name_argument
@click.option("--quick/--no-quick", "quick_memory", default=None, help="Allow searches, with at most 5 results.")
@click.option("--full/--no-full", "full_memory", default=None, help="Allow reading all memories.")
@click.option("--logs/--no-logs", default=None, help="Allow reading messages, sessions and users.")
def access(name: str, quick_memory: bool | None, full_memory: bool | None, logs: bool | None) -> None:
    """Show or set an agent's access levels for keys without the admin role."""
    with client_of() as client:
        if quick_memory is full_memory is logs is None:
            levels = client.agents.access(name)
        else:
            levels = client.agents.set_access(name, quick_memory=quick_memory, full_memory=full_memory, logs=logs)
    given = [level for level, is_given in wire(levels).items() if is_given]
    answer(wire(levels), lambda: say(f"Access levels of {name}: {', '.join(given) or 'none'}."))


@agents.command()
@name_argument
@yes_option
def delete(name: str, yes: bool) -> None:
    """Delete an agent with all its data."""
    with client_of() as client:
        if not yes:
            stats = client.agents.stats(name)
            confirm(f"Delete {name} with {_messages(stats.messages)} and {_memories(stats.memories)}?", yes=False)
        removed = client.agents.delete(name)
    counts = removed.removed
    answer(
        wire(removed), lambda: say(f"Deleted {name}: {_messages(counts.messages)} and {_memories(counts.memories)}.")
    )


def _messages(count: int) -> str:
    return counted(count, "message", "messages")


def _memories(count: int) -> str:
    return counted(count, "memory", "memories")
