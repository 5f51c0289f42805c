"""`souvenir context` and `souvenir chat`: the context of a prompt, and the messages of an agent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from souvenir_client.cli.failures import Negative
from souvenir_client.cli.options import client_of
from souvenir_client.cli.output import (
    Column,
    answer,
    day,
    draw_table,
    heading,
    minute_of,
    note,
    note_of_answer,
    note_of_page,
    said_by,
    say,
    wire,
)
from souvenir_client.cli.parameters import limit_option, min_score_option, offset_option, verify_option

if TYPE_CHECKING:
    from souvenir_client.records import MessageRecord, SessionPage, SessionRecord

MIN_MAX_TOKENS = 64
"""Minimum budget that the service accepts."""

agent_argument = click.argument("agent", help="Name of the agent.")


@click.command()
@agent_argument
@click.argument("query", help="The prompt, or its subject.")
@click.option("--session", metavar="ID", help="Id of the active session; its messages are left out.")
@click.option("--max-tokens", metavar="N", type=click.IntRange(min=MIN_MAX_TOKENS), help="Token budget of the context.")
@min_score_option
@verify_option
def context(
    agent: str, query: str, session: str | None, max_tokens: int | None, min_score: float | None, verify: bool
) -> None:
    """Print the context that an agent's memory gives to a prompt."""
    from souvenir_client import NOT_SENT

    with client_of() as client:
        built = client.context.build(
            agent,
            query=query,
            session_id=session,
            max_tokens=NOT_SENT if max_tokens is None else max_tokens,
            min_score=min_score,
            verify=verify,
        )
    answer(wire(built), lambda: say(built.text.rstrip("\n")) if built.text else None)
    if built.degraded:
        note(f"The search is incomplete: {', '.join(built.degraded)} is missing.")
    note_of_answer(built)
    if not built.text:
        raise Negative("The context is empty.")
    note(f"{built.tokens} tokens; evidence: {built.evidence} (relevance {built.relevance:.2f})")


@click.group()
def chat() -> None:
    """Read the messages and sessions of an agent."""


@chat.command()
@agent_argument
@click.option("--session", metavar="ID", help="Only messages of this session.")
@limit_option(20, 1_000)
@offset_option()
def history(agent: str, session: str | None, limit: int, offset: int) -> None:
    """Print the last messages, oldest first."""
    with client_of() as client:
        newest_first = client.messages.list(agent, session_id=session, limit=limit, offset=offset)
    messages = newest_first[::-1]
    total = newest_first.total
    answer({"messages": wire(messages), "total": total}, lambda: _draw_messages(messages))
    if total is not None:
        note_of_page(len(messages), offset, total)


def _draw_messages(messages: Sequence[MessageRecord]) -> None:
    session = None
    for message in messages:
        if message.session_id != session:
            session = message.session_id
            heading(f"— {session}")
        heading(f"{minute_of(message.created_at)} {said_by(message.role, message.name, message.user)}")
        say(message.content)
        click.echo()


@chat.command()
@agent_argument
@limit_option(20, 1_000)
@offset_option()
def sessions(agent: str, limit: int, offset: int) -> None:
    """List an agent's sessions, newest first."""
    with client_of() as client:
        page = client.sessions.list(agent, limit=limit, offset=offset)
    answer(wire(page), lambda: _draw_sessions(page))


def _draw_sessions(page: SessionPage) -> None:
    columns = [
        *(Column("SESSION"), Column("STARTED"), Column("ENDED"), Column("MESSAGES", right=True)),
        *(Column("USER", cut=True), Column("TITLE", cut=True)),
    ]
    draw_table(columns, (_row(session) for session in page.sessions))
    note_of_page(len(page.sessions), page.offset, page.total)


def _row(session: SessionRecord) -> list[str]:
    days = [day(session.started_at), day(session.ended_at)]
    return [session.session_id, *days, str(session.messages), session.user or "", session.title or ""]
