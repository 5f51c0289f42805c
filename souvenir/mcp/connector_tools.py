"""The tier `connector`: `search` and `fetch`, the two tools that hosted assistants ask of a source of knowledge.

Both take one text. `search` finds memories and messages in one ranking; `fetch` returns one of them as a document, a
message with those around it. An id is `memory-` and a short id, or `message-` and the id of a message.
"""

from __future__ import annotations

from typing import Annotated, Any, Self
from urllib.parse import urlencode

from pydantic import Field

from souvenir.api.fields import Clean, wire_time
from souvenir.conversations.agent_search import AgentQuery, AnyHit
from souvenir.conversations.message_search import MessageHit
from souvenir.core.errors import AgentNotFound, InvalidRequest, NotFound
from souvenir.core.settings import Settings
from souvenir.core.types import Memory, Role, Scope, SearchQuery
from souvenir.mcp.memory_models import MAX_QUERY_CHARS
from souvenir.mcp.tools import MAX_SHOWN_CHARS, Arguments, Call, Result, Tool
from souvenir.memories.short_ids import Kind, id_of, short_id
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import REMEMBERED, SAID, SEARCHING
from souvenir.store.messages.messages import Message

MAX_RESULTS = 10
MAX_TITLE_CHARS = 100
MESSAGES_AROUND = 5
"""Number of messages before a fetched one, and after it, that its document contains."""

_MEMORY, _MESSAGE = "memory-", "message-"


class SearchArguments(Arguments):
    query: Annotated[str, Field(min_length=1, max_length=MAX_QUERY_CHARS), Clean] = Field(
        description="The question in plain words."
    )


class Found(Result):
    id: str = Field(description="For `fetch`.")
    title: str = Field(description="The beginning of the text.")
    url: str = Field(description="Its address on the web page of the service, to cite it.")


class SearchResult(Result):
    results: list[Found] = Field(description="Best first.")


class FetchArguments(Arguments):
    id: Annotated[str, Field(min_length=1, max_length=200)] = Field(description="An id that `search` returned.")


class Document(Found):
    text: str
    metadata: dict[str, str] = Field(description="What kind of record it is, when it is from, and its source.")

    @classmethod
    def of_memory(cls, settings: Settings, scope: Scope, memory: Memory) -> Self:
        about = {"kind": "memory", "created_at": wire_time(memory.created_at), "source": memory.source}
        return cls(**_shown_memory(settings, scope, memory), text=memory.text, metadata=about)

    @classmethod
    def of_message(cls, settings: Settings, scope: Scope, message: Message, around: list[Message]) -> Self:
        lines = [f"[{wire_time(one.created_at)}] {_speaker(one)}: {one.content}" for one in around]
        about = {"kind": "message", "created_at": wire_time(message.created_at), "session_id": message.session_id}
        return cls(**_shown_message(settings, scope, message), text="\n".join(lines), metadata=about)


def _search(call: Call, asked: SearchArguments) -> SearchResult:
    settings, limit = call.service.settings, call.result_limit(MAX_RESULTS)
    hits = _hits(call, asked.query, limit)
    return SearchResult(results=[Found(**_shown(settings, call.scope, hit)) for hit in hits])


def _hits(call: Call, query: str, limit: int) -> list[AnyHit]:
    """Memories only, if the key is for some sources, or nothing was said in the namespace yet."""
    if call.scope.sources is None:
        try:
            return list(call.service.agent_search.search(call.scope, AgentQuery(query, limit)).hits)
        except AgentNotFound:
            pass
    return list(call.service.engine.search(call.scope, SearchQuery(query, limit)).hits)


def _fetch(call: Call, asked: FetchArguments) -> Document:
    try:
        if asked.id.startswith(_MEMORY):
            number = id_of(Kind.MEMORY, asked.id.removeprefix(_MEMORY))
            memory = call.service.engine.get(call.scope, [number])[number]
            return Document.of_memory(call.service.settings, call.scope, memory)
        if asked.id.startswith(_MESSAGE) and call.scope.sources is None:
            message = call.service.conversations.get(call.scope, asked.id.removeprefix(_MESSAGE))
            around = call.service.conversations.neighbours(
                call.scope, [message], before=MESSAGES_AROUND, after=MESSAGES_AROUND
            )
            return Document.of_message(call.service.settings, call.scope, message, list(around))
    except (KeyError, NotFound) as error:
        raise _missing(asked.id) from error
    raise _missing(asked.id)


def _missing(id_: str) -> InvalidRequest:
    return InvalidRequest(f"There is no record {id_[:MAX_SHOWN_CHARS]!r}; `search` returns the ids of those there are")


def _shown(settings: Settings, scope: Scope, hit: AnyHit) -> dict[str, Any]:
    if isinstance(hit, MessageHit):
        return _shown_message(settings, scope, hit.message)
    return _shown_memory(settings, scope, hit.memory)


def _shown_memory(settings: Settings, scope: Scope, memory: Memory) -> dict[str, Any]:
    address = _address(settings, "memories", {"in": scope.namespace, "memory": memory.id})
    return {"id": f"{_MEMORY}{short_id(Kind.MEMORY, memory.id)}", "title": _title(memory.text), "url": address}


def _shown_message(settings: Settings, scope: Scope, message: Message) -> dict[str, Any]:
    place = {"in": scope.namespace, "show": "conversations", "session": message.session_id, "message": message.uid}
    title = _title(f"{_speaker(message)}: {message.content}")
    return {"id": f"{_MESSAGE}{message.uid}", "title": title, "url": _address(settings, "agents", place)}


def _speaker(message: Message) -> str:
    return message.speaker or message.role.value


def _title(text: str) -> str:
    line = " ".join(text[: 2 * MAX_TITLE_CHARS].split())
    return line if len(line) <= MAX_TITLE_CHARS else f"{line[: MAX_TITLE_CHARS - 1]}…"


def _address(settings: Settings, view: str, place: dict[str, Any]) -> str:
    return f"{settings.public_address}/#/{view}?{urlencode(place)}"


TOOLS = (
    Tool(
        "search",
        "Search what is remembered",
        "Find memories and messages of earlier conversations relevant to a question, by meaning and by words, best "
        "first. Ask in plain words, one subject at a time; `fetch` returns the full text of a result.",
        SearchArguments,
        SearchResult,
        _search,
        CostClass.SEARCH,
        role=Role.READ_ONLY,
        of_agent=False,
        needs=SEARCHING,
    ),
    Tool(
        "fetch",
        "Fetch a result",
        "Get the full text of a memory, or of a message with those before and after it, by an id that `search` "
        "returned.",
        FetchArguments,
        Document,
        _fetch,
        CostClass.LIGHT,
        role=Role.READ_ONLY,
        of_agent=False,
        needs=REMEMBERED | SAID,
    ),
)
