"""The tier `memory`: the tools of a local memory server, with its names."""

from __future__ import annotations

from souvenir.api.admission import CostClass
from souvenir.errors import InvalidRequest, MemoryNotFound, MemoryPinned
from souvenir.mcp.memory_models import (
    MIN_SHOWN_CHARS,
    DeleteAllArguments,
    DeletedAll,
    DeletedMemory,
    ListMemoriesArguments,
    ListMemoriesResult,
    OfMemory,
    SearchMemoryArguments,
    SearchMemoryResult,
    WholeMemory,
)
from souvenir.mcp.tools import Call, Tool
from souvenir.types import Listing, Memory, Role, SearchQuery, SourceFilter

_EVERYTHING = SourceFilter("")


def _search(call: Call, asked: SearchMemoryArguments) -> SearchMemoryResult:
    query = SearchQuery(asked.query, asked.limit)
    return SearchMemoryResult.of(call.service.engine.search(call.scope, query))


def _list(call: Call, asked: ListMemoriesArguments) -> ListMemoriesResult:
    page = call.service.engine.page(call.scope, offset=asked.offset, limit=asked.limit)
    return ListMemoriesResult.of(page, asked)


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
    return DeletedMemory(memory_id=asked.memory_id, deleted=True, memory=gone.text[:MIN_SHOWN_CHARS])


def _delete_all(call: Call, asked: DeleteAllArguments) -> DeletedAll:
    if not asked.confirm:
        raise InvalidRequest("Nothing was deleted; send confirm true if the user asked to forget everything")
    outcome = call.service.engine.delete_by_source(call.scope, _EVERYTHING)
    kept = call.service.engine.page(call.scope, Listing(pinned=True), offset=0, limit=1).total
    return DeletedAll(deleted=len(outcome.deleted_ids), kept_pinned=kept, backed_up=bool(outcome.deleted_ids))


def found(call: Call, asked: OfMemory) -> Memory:
    """The memory that arguments name.

    :raises InvalidRequest: If there is none that the caller may see.
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
        "search_memory",
        "Search memories",
        "Find what is stored that bears on a question, by meaning and by words, best first. Use it before answering "
        "anything that may depend on what the user said, prefers or decided earlier. Ask in plain words; if `evidence` "
        "is `none`, say that you do not know instead of guessing from weak results.",
        SearchMemoryArguments,
        SearchMemoryResult,
        _search,
        CostClass.SEARCH,
    ),
    Tool(
        "list_memories",
        "List memories",
        "Go through what is stored, page by page, in the order in which it was stored. Use it to review or "
        "clean up; to find something, search_memory is better.",
        ListMemoriesArguments,
        ListMemoriesResult,
        _list,
        CostClass.LIGHT,
    ),
    Tool(
        "get_memory",
        "Get a memory",
        "Get one memory whole by its memory_id. Use it when a search shows a text as truncated.",
        OfMemory,
        WholeMemory,
        _get,
        CostClass.LIGHT,
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
        destructive=True,
        idempotent=True,
    ),
)
