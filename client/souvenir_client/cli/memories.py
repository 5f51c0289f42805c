"""`souvenir add`, `search`, `list`, `tags`, `get` and `delete`: the memories of a namespace."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from souvenir_client.cli.failures import Negative
from souvenir_client.cli.options import client_of, make_agent
from souvenir_client.cli.output import (
    Column,
    answer,
    confirm,
    draw_table,
    heading,
    minute_of,
    note,
    note_of_answer,
    note_of_page,
    one_line,
    said_by,
    say,
    wire,
)
from souvenir_client.cli.parameters import (
    agent_option,
    limit_option,
    metadata_option,
    min_score_option,
    offset_option,
    source_option,
    tag_option,
    text_of,
    verify_option,
    yes_option,
)

if TYPE_CHECKING:
    from souvenir_client.records import (
        AddMemoryResponse,
        AgentSearchItem,
        AgentSearchResponse,
        MemoryPage,
        MemoryRecord,
        SearchHit,
        SearchResponse,
        TagsResponse,
    )
    from souvenir_client.records.enums import SearchStrategy

DEFAULT_SOURCE = "cli"
MAX_IDS = 1_000
QUESTION_CHARS = 60


@click.command()
@click.argument("text", help="Text of the memory; - is stdin.")
@click.option("--source", metavar="PATH", default=DEFAULT_SOURCE, show_default=True, help="Source path of the memory.")
@metadata_option("Metadata of the memory.")
@tag_option("Tag of the memory.")
@click.option("--fact", "facts", metavar="TEXT", multiple=True, help="Fact of the memory. Repeatable.")
@click.option("--split", is_flag=True, help="Split the text into facts, by the language model or else by sentences.")
@click.option(
    "--on-duplicate",
    type=click.Choice(["add", "skip", "supersede"]),
    default="add",
    show_default=True,
    help="Action if a near duplicate is stored.",
)
@agent_option
def add(
    text: str,
    source: str,
    metadata: Mapping[str, Any],
    tags: tuple[str, ...],
    facts: tuple[str, ...],
    split: bool,
    on_duplicate: str,
    agent: str | None,
) -> None:
    """Store a memory; --agent creates the agent if it is new."""
    said = text_of(text)
    with client_of(agent) as client:
        make_agent(client, agent)
        stored = client.memories.add(
            text=said,
            source=source,
            metadata=metadata or None,
            tags=tags,
            facts=facts or None,
            split=split,
            on_duplicate=on_duplicate,  # type: ignore[arg-type]  # click has checked the choice
        )
    answer(wire(stored), lambda: say(_stored(stored)))


def _stored(said: AddMemoryResponse) -> str:
    if said.id is None:
        return f"Not stored: it duplicates memory {said.blocked_by}. {said.hint or ''}".rstrip()
    instead = "" if said.superseded is None else f", superseding memory {said.superseded}"
    stored = f"Stored memory {said.id}{instead}."
    if said.facts_by is None:
        return stored
    later = ", until the language model splits it" if said.split_pending else ""
    return f"{stored} It has {said.facts_created} facts (by {said.facts_by}){later}."


@click.command()
@click.argument("query", help="The query.")
@click.option(
    "-k", "k", metavar="N", type=click.IntRange(1, 100), default=5, show_default=True, help="Number of results."
)
@source_option("Only this source path and below.")
@metadata_option("Only memories with this metadata.")
@tag_option("Only memories with one of these tags.")
@click.option("--since", metavar="DATE", help="Only results from this date on, such as 2025-04-02.")
@click.option("--until", metavar="DATE", help="Only results until this date.")
@click.option("--archived", is_flag=True, help="Include archived and superseded memories.")
@click.option("--agent", metavar="NAME", help="Search the messages and memories of this agent.")
@click.option(
    "--by",
    "strategy",
    type=click.Choice(["auto", "semantic", "keyword", "concept", "time"]),
    default="auto",
    show_default=True,
    help="Search strategy, with --agent.",
)
@min_score_option
@verify_option
def search(
    query: str,
    k: int,
    source: str | None,
    metadata: Mapping[str, Any],
    tags: tuple[str, ...],
    since: str | None,
    until: str | None,
    archived: bool,
    agent: str | None,
    strategy: SearchStrategy,
    min_score: float | None,
    verify: bool,
) -> None:
    """Search memories by meaning and by words."""
    with client_of(agent) as client:
        found: SearchResponse | AgentSearchResponse
        if agent is None:
            if strategy != "auto":
                raise click.UsageError("--by requires --agent.")
            found = client.memories.search(
                query=query,
                k=k,
                source_prefix=source,
                source_boundary=True,
                metadata=metadata or None,
                tags=tags,
                since=since,
                until=until,
                include_archived=archived,
                min_score=min_score,
                verify=verify,
            )
        else:
            if source is not None or metadata or tags or archived:
                raise click.UsageError(
                    "--source, --metadata, --tag and --archived search memories only: "
                    "use --namespace instead of --agent."
                )
            found = client.agents.search(
                agent,
                query=query,
                limit=k,
                since=since,
                until=until,
                strategy=strategy,
                min_score=min_score,
                verify=verify,
            )
    answer(wire(found), lambda: _draw_found(found))
    if found.degraded:
        note(f"The search is incomplete: {', '.join(found.degraded)} is missing.")
    note_of_answer(found)
    if not found.results:
        raise Negative("No results.")


def _draw_found(found: SearchResponse | AgentSearchResponse) -> None:
    for hit in found.results:
        _draw_hit(hit)
        click.echo()
    if found.results:
        note(f"Evidence: {found.evidence} (relevance {found.relevance:.2f})")


def _draw_hit(hit: SearchHit | AgentSearchItem) -> None:
    from souvenir_client.records import AgentSearchItem

    memory, message = (hit.memory, hit.message) if isinstance(hit, AgentSearchItem) else (hit, None)
    if message is not None:
        speaker = said_by(message.role, message.name, message.user)
        heading(speaker, message.session_id, minute_of(message.created_at))
        say(message.content)
    elif memory is not None:
        heading(str(memory.id), memory.source, minute_of(memory.document_at or memory.created_at))
        say(memory.text)


@click.command("list")
@source_option("Only this source path and below.")
@tag_option("Only memories with one of these tags.")
@click.option("--archived", is_flag=True, help="Include archived and superseded memories.")
@limit_option(20, 5_000)
@offset_option()
def list_(source: str | None, tags: tuple[str, ...], archived: bool, limit: int, offset: int) -> None:
    """List memories, oldest first."""
    with client_of() as client:
        page = client.memories.list(
            source=source,
            source_boundary=True,
            tag=tags or None,
            include_archived=archived,
            limit=limit,
            offset=offset,
        )
    answer(wire(page), lambda: _draw_page(page))


def _draw_page(page: MemoryPage) -> None:
    columns = [Column("ID", right=True), Column("CREATED (UTC)"), Column("SOURCE", cut=True), Column("TEXT", cut=True)]
    draw_table(columns, ([str(one.id), minute_of(one.created_at), one.source, one.text] for one in page.memories))
    note_of_page(len(page.memories), page.offset, page.total)


@click.command("tags")
@click.option("--regex", metavar="PATTERN", help="Only tags that match this regular expression (RE2), ignoring case.")
@limit_option(100, 1_000)
@offset_option()
def tags_(regex: str | None, limit: int, offset: int) -> None:
    """List tags, most used first."""
    with client_of() as client:
        page = client.tags.list(regex=regex, limit=limit, offset=offset)
    answer(wire(page), lambda: _draw_tags(page))


def _draw_tags(page: TagsResponse) -> None:
    columns = [Column("TAG", cut=True), Column("MEMORIES", right=True), Column("LAST USED (UTC)")]
    draw_table(columns, ([one.tag, str(one.count), minute_of(one.last_used_at)] for one in page.tags))
    note_of_page(len(page.tags), page.offset, page.total)


@click.command()
@click.argument("memory_id", metavar="ID", type=click.IntRange(min=0), help="Id of the memory.")
def get(memory_id: int) -> None:
    """Show a memory with all its fields."""
    with client_of() as client:
        memory = client.memories.get(memory_id)
    answer(wire(memory), lambda: _draw_memory(memory))


def _draw_memory(memory: MemoryRecord) -> None:
    fields = wire(memory)
    text = fields.pop("text")
    for name, said in fields.items():
        shown = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
        click.echo(f"{click.style(one_line(name), bold=True)}: {one_line(shown)}")
    click.echo()
    say(text)


@click.command()
@click.argument(
    "ids", metavar="ID...", type=click.IntRange(min=0), nargs=-1, required=True, help="Ids of the memories."
)
@yes_option
def delete(ids: tuple[int, ...], yes: bool) -> None:
    """Delete memories, except pinned ones."""
    wanted = list(dict.fromkeys(ids))
    if len(wanted) > MAX_IDS:
        raise click.UsageError(f"At most {MAX_IDS} memories can be deleted at once.")
    with client_of() as client:
        if not yes:
            confirm(_question([memory.text for memory in client.memories.get_batch(ids=wanted).memories]), yes=False)
        done = client.memories.delete_batch(ids=wanted)
    answer(wire(done), lambda: say(f"Deleted {done.deleted_count} of {len(wanted)}."))
    reasons = [("not found", done.missing_ids), ("pinned", done.skipped_pinned or [])]
    if said := "; ".join(f"{', '.join(map(str, those))} {reason}" for reason, those in reasons if those):
        raise Negative(f"Not deleted: {said}.")


def _question(texts: list[str]) -> str:
    if len(texts) == 1:
        line = one_line(texts[0])
        return f'Delete "{line if len(line) <= QUESTION_CHARS else line[:QUESTION_CHARS] + "…"}"?'
    return f"Delete {len(texts)} memories?"
