"""The tier `memory`: the tools of a local memory server, with its names."""

from __future__ import annotations

from dataclasses import replace

from souvenir.conversations.verification import passages_of
from souvenir.core.errors import InvalidRequest, MemoryNotFound, MemoryPinned
from souvenir.core.labels import clean_tags
from souvenir.core.types import (
    Filters,
    Listing,
    Memory,
    MemoryDraft,
    MemoryPatch,
    Page,
    Role,
    SearchQuery,
    SourceFilter,
)
from souvenir.mcp.memory_models import (
    MAX_TAGS_SHOWN,
    MIN_SHOWN_CHARS,
    AddMemoryArguments,
    ContextTags,
    DeleteAllArguments,
    DeletedAll,
    DeletedMemory,
    GetContextTagsArguments,
    ListMemoriesArguments,
    ListMemoriesResult,
    OfMemory,
    SearchMemoryArguments,
    SearchMemoryResult,
    StoredMemory,
    UpdateMemoryArguments,
    WholeMemory,
)
from souvenir.mcp.tools import Call, Tool
from souvenir.memories.fact_splitting import given
from souvenir.memories.short_ids import Kind, short_id
from souvenir.retrieval.recall import LEXICAL, VECTOR
from souvenir.retrieval.reranking import RERANK
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import NOTHING, REMEMBERED, SEARCHING
from souvenir.store.memories.memories import last_memory_id

MCP_SOURCE = "mcp"
"""Source of memories that are added without one by a key for the whole namespace."""

MAX_TAGS_NAMED = 3
"""Maximum number of characters of a text in an error message."""

_EVERYTHING = SourceFilter("")

_LEFT_OUT = {
    VECTOR: "The search by meaning could not run, so this is by words only; try again later",
    LEXICAL: "The search by words could not run, so this is by meaning only; try again later",
    RERANK: "The results could not be reranked, so their order is rougher; try again later",
}
"""Notes on degraded searches, the most serious first."""


def _add(call: Call, asked: AddMemoryArguments) -> StoredMemory:
    source = asked.source or (call.scope.sources[0] if call.scope.sources else MCP_SOURCE)
    facts = () if asked.facts is None else given(asked.facts).facts
    split = asked.facts is None
    draft = MemoryDraft(asked.text, source, tags=clean_tags(asked.context_tags), facts=facts, split=split)
    _require_short_id(call)
    call.progress(0, 1, "Splitting the text into facts")
    outcome = call.service.engine.add(call.scope, draft)
    stored = None
    if outcome.id is not None:
        stored = call.service.engine.facts.outcome(call.scope, outcome.id, outcome.split_failure)
    if stored is None:
        raise InvalidRequest("The memory was deleted concurrently; use search_memory to see the current memories")
    return StoredMemory.of_stored(stored)


def _require_short_id(call: Call) -> None:
    """:raises Unavailable: If the next memory would have no short id, so that an agent could not refer to it."""
    with call.service.engine.namespace(call.scope) as (connection, _):
        short_id(Kind.MEMORY, last_memory_id(connection) + 1)


def _update(call: Call, asked: UpdateMemoryArguments) -> StoredMemory:
    before = found(call, asked)
    tags = None if asked.context_tags is None else clean_tags(asked.context_tags)
    add, remove = clean_tags(asked.add_tags), clean_tags(asked.remove_tags)
    patch = MemoryPatch(asked.text, tags=tags, add_tags=add, remove_tags=remove)
    if asked.facts is not None:
        patch = replace(patch, facts=given(asked.facts).facts)
    if patch == MemoryPatch():
        raise InvalidRequest("Nothing to change; give text, facts, context_tags, add_tags or remove_tags")
    call.progress(0, 1, "Splitting the text into facts" if asked.text else "Changing the memory")
    try:
        stored = call.service.engine.update(call.scope, before.id, replace(patch, split=True))
    except MemoryNotFound as error:
        raise no_such_memory(asked.memory_id) from error
    return StoredMemory.of_stored(stored, before)


def _search(call: Call, asked: SearchMemoryArguments) -> SearchMemoryResult:
    tags = clean_tags(asked.context_tags)
    query = SearchQuery(asked.query, call.result_limit(asked.limit), filters=Filters(tags=tags))
    result = call.service.engine.search(call.scope, query)
    call.service.searches.note(call.scope, query, result)
    note = next((sentence for arm, sentence in _LEFT_OUT.items() if arm in result.degraded), None)
    if tags and not result.hits and not _page(call, tags, 0, 1).total:
        note = _nothing_has(tags)
    verdict = None
    if asked.verify:
        passages = passages_of(result.hits)
        verdict = call.service.verification.read(call.scope, asked.query, passages, degraded=result.degraded)
    return SearchMemoryResult.of(result, note, verdict)


def _list(call: Call, asked: ListMemoriesArguments) -> ListMemoriesResult:
    tags = clean_tags(asked.context_tags)
    page = _page(call, tags, asked.offset, asked.limit)
    return ListMemoriesResult.of(page, asked, _nothing_has(tags) if tags and not page.total else None)


def _page(call: Call, tags: tuple[str, ...], offset: int, limit: int) -> Page:
    listing = Listing(archived=False, tags=tags, newest_first=True)
    return call.service.engine.page(call.scope, listing, offset=offset, limit=limit)


def _nothing_has(tags: tuple[str, ...]) -> str:
    named = f"the tag {' or '.join(map(repr, tags))}" if len(tags) <= MAX_TAGS_NAMED else "any of these tags"
    return f"No memory has {named}; get_context_tags lists those in use"


def _tags(call: Call, asked: GetContextTagsArguments) -> ContextTags:
    return ContextTags.of(call.service.tags.list(call.scope, regex=asked.regex, limit=MAX_TAGS_SHOWN))


def _get(call: Call, asked: OfMemory) -> WholeMemory:
    return WholeMemory.of(found(call, asked))


def _delete(call: Call, asked: OfMemory) -> DeletedMemory:
    number = found(call, asked).id
    try:
        gone = call.service.engine.delete(call.scope, number)
    except MemoryNotFound as error:
        raise no_such_memory(asked.memory_id) from error
    except MemoryPinned as error:
        raise InvalidRequest(
            f"The memory {asked.memory_id} is pinned, so it stays; the user can unpin or delete it over HTTP"
        ) from error
    return DeletedMemory(memory_id=asked.memory_id, deleted=True, memory=gone[:MIN_SHOWN_CHARS])


def _delete_all(call: Call, asked: DeleteAllArguments) -> DeletedAll:
    if not asked.confirm:
        raise InvalidRequest("Nothing was deleted; send confirm true if the user asked to forget everything")
    outcome = call.service.engine.delete_by_source(call.scope, _EVERYTHING)
    kept = call.service.engine.page(call.scope, Listing(pinned=True), offset=0, limit=1).total
    return DeletedAll(deleted=len(outcome.deleted_ids), kept_pinned=kept, backed_up=bool(outcome.deleted_ids))


def found(call: Call, asked: OfMemory) -> Memory:
    """Return the memory that the arguments identify.

    :raises InvalidRequest: If no visible memory matches.
    """
    try:
        number = asked.number
        return call.service.engine.get(call.scope, [number])[number]
    except (KeyError, MemoryNotFound) as error:
        raise no_such_memory(asked.memory_id) from error


def no_such_memory(memory_id: str) -> InvalidRequest:
    return InvalidRequest(
        f"There is no memory {memory_id[:32]!r}; search_memory and list_memories give the memory_id of those there are"
    )


TOOLS = (
    Tool(
        "add_memory",
        "Add a memory",
        "Remember something for good: a fact about a person, a preference, a decision with its reason, how something "
        "works. Use it when you learn what will matter in later conversations, with one self-contained text for each "
        "topic. Do not store what only this conversation needs, or secrets; to correct what is stored, use "
        "update_memory.",
        AddMemoryArguments,
        StoredMemory,
        _add,
        CostClass.WRITE,
        role=Role.READ_WRITE,
        of_agent=False,
        needs=NOTHING,
    ),
    Tool(
        "update_memory",
        "Update a memory",
        "Change a stored memory: its text when it is wrong or out of date, its facts or its tags. Omitted fields are "
        "kept. Find its memory_id with search_memory first.",
        UpdateMemoryArguments,
        StoredMemory,
        _update,
        CostClass.WRITE,
        role=Role.READ_WRITE,
        of_agent=False,
        needs=NOTHING,
        destructive=True,
        idempotent=True,
    ),
    Tool(
        "search_memory",
        "Search memories",
        "Find stored memories relevant to a question, by meaning and by words, best first. Use it before answering "
        "anything that may depend on what the user said, prefers or decided earlier. Ask in plain words and read the "
        "texts: `evidence` tells only whether the subject is mentioned (`strong`) or nothing stored seems to be about "
        "it (`none`), not whether your question is answered. If there is a `note`, follow it.",
        SearchMemoryArguments,
        SearchMemoryResult,
        _search,
        CostClass.SEARCH,
        role=Role.READ_ONLY,
        of_agent=False,
        needs=SEARCHING,
    ),
    Tool(
        "list_memories",
        "List memories",
        "List stored memories, newest first, page by page. Use it to review or clean up; to find something, "
        "search_memory is better.",
        ListMemoriesArguments,
        ListMemoriesResult,
        _list,
        CostClass.LIGHT,
        role=Role.READ_ONLY,
        of_agent=False,
        needs=REMEMBERED,
    ),
    Tool(
        "get_context_tags",
        "Get context tags",
        "List the tags in use, with the number of memories and the first use. Use it before you tag a memory, so "
        "that one topic has one tag, or before you search by tags.",
        GetContextTagsArguments,
        ContextTags,
        _tags,
        CostClass.LIGHT,
        role=Role.READ_ONLY,
        of_agent=False,
        needs=REMEMBERED,
    ),
    Tool(
        "get_memory",
        "Get a memory",
        "Get the full text of one memory by its memory_id. Use it when a search shows a text as truncated.",
        OfMemory,
        WholeMemory,
        _get,
        CostClass.LIGHT,
        role=Role.READ_ONLY,
        of_agent=False,
        needs=REMEMBERED,
    ),
    Tool(
        "delete_memory",
        "Delete a memory",
        "Forget one memory for good. Use it when the user asks to forget something; if a memory is merely out of "
        "date, update_memory is better.",
        OfMemory,
        DeletedMemory,
        _delete,
        CostClass.WRITE,
        role=Role.READ_WRITE,
        of_agent=False,
        needs=NOTHING,
        destructive=True,
    ),
    Tool(
        "delete_all_memories",
        "Delete all memories",
        "Forget every memory except pinned ones, after a backup. Use it only if the user explicitly asks to forget "
        "everything, and never to tidy up.",
        DeleteAllArguments,
        DeletedAll,
        _delete_all,
        CostClass.LONG,
        role=Role.READ_WRITE,
        of_agent=False,
        needs=NOTHING,
        destructive=True,
        idempotent=True,
    ),
)
