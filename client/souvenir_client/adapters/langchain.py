"""Chat history and retriever of LangChain over the memory of an agent; needs `souvenir-client[langchain]`.

history = SouvenirChatMessageHistory("chat-42", souvenir, agent="my_agent")
retriever = SouvenirRetriever(souvenir, agent="my_agent", k=5)
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict
from langchain_core.retrievers import BaseRetriever
from pydantic import PrivateAttr

from souvenir_client.adapters.history_messages import message
from souvenir_client.aio.adapters.history import AsyncHistory
from souvenir_client.aio.adapters.retrieval import AsyncRetrieval
from souvenir_client.aio.client import AsyncSouvenir
from souvenir_client.records.common import MessageRecord, SearchHit
from souvenir_client.sync.adapters.history import History
from souvenir_client.sync.adapters.retrieval import Retrieval
from souvenir_client.sync.client import Souvenir

__all__ = [
    "AsyncSouvenirChatMessageHistory",
    "AsyncSouvenirRetriever",
    "SouvenirChatMessageHistory",
    "SouvenirRetriever",
]

FIELD = "langchain_message"
ROLES = {"human": "user", "system": "system"}
"""Roles of types; every other message is stored as said by the assistant, so that no tool speaks with authority."""
TYPES = {"user": "human", "assistant": "ai", "system": "system"}


class SouvenirChatMessageHistory(BaseChatMessageHistory):
    """The messages of one conversation over `Souvenir`; the asynchronous methods run in a thread.

    :param souvenir: The client; it is not closed.
    :param agent: The agent that the session belongs to.
    :param user: The user that the agent talks with.
    """

    def __init__(self, session_id: str, souvenir: Souvenir, *, agent: str, user: str | None = None) -> None:
        self._history = History(souvenir, agent=agent, session_id=session_id, user=user)

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]  # the base allows a property and types a variable
        return _read(self._history.all())

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        self._history.add([_written(one) for one in messages])

    def clear(self) -> None:
        """Erase the session."""
        self._history.clear()


class AsyncSouvenirChatMessageHistory(BaseChatMessageHistory):
    """The messages of one conversation over `AsyncSouvenir`; the parameters are those of the synchronous class."""

    def __init__(self, session_id: str, souvenir: AsyncSouvenir, *, agent: str, user: str | None = None) -> None:
        self._history = AsyncHistory(souvenir, agent=agent, session_id=session_id, user=user)

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]  # the base allows a property and types a variable
        """:raises NotImplementedError: Always; use `aget_messages`."""
        raise NotImplementedError(_ASYNCHRONOUS)

    async def aget_messages(self) -> list[BaseMessage]:
        return _read(await self._history.all())

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """:raises NotImplementedError: Always; use `aadd_messages`."""
        raise NotImplementedError(_ASYNCHRONOUS)

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        await self._history.add([_written(one) for one in messages])

    def clear(self) -> None:
        """:raises NotImplementedError: Always; use `aclear`."""
        raise NotImplementedError(_ASYNCHRONOUS)

    async def aclear(self) -> None:
        """Erase the session."""
        await self._history.clear()


class SouvenirRetriever(BaseRetriever):
    """The memories of an agent as documents, over `Souvenir`; the asynchronous methods run in a thread.

    :param souvenir: The client; it is not closed.
    :param options: `k`, `source` for the memories at and below a path, and `min_score`.
    """

    _retrieval: Retrieval = PrivateAttr()

    def __init__(self, souvenir: Souvenir, *, agent: str, **options: Any) -> None:
        super().__init__()
        self._retrieval = Retrieval(souvenir, agent=agent, **options)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        return [_document(hit) for hit in self._retrieval.search(query, k)]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        return [_document(hit) for hit in await asyncio.to_thread(self._retrieval.search, query, k)]


class AsyncSouvenirRetriever(BaseRetriever):
    """The memories of an agent as documents, over `AsyncSouvenir`; the parameters are those of `SouvenirRetriever`."""

    _retrieval: AsyncRetrieval = PrivateAttr()

    def __init__(self, souvenir: AsyncSouvenir, *, agent: str, **options: Any) -> None:
        super().__init__()
        self._retrieval = AsyncRetrieval(souvenir, agent=agent, **options)

    # LangChain reads from this signature which arguments the asynchronous method takes.
    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        raise NotImplementedError(_ASYNCHRONOUS)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        return [_document(hit) for hit in await self._retrieval.search(query, k)]


_ASYNCHRONOUS = "This class has asynchronous methods only; use those, or the class without Async"


def _written(one: BaseMessage) -> dict[str, Any]:
    return message(ROLES.get(one.type, "assistant"), _text(one), one.type, field=FIELD, whole=message_to_dict(one))


def _text(one: BaseMessage) -> str:
    calls = [
        f"{call['name']}({json.dumps(call['args'], ensure_ascii=False)})" for call in getattr(one, "tool_calls", ())
    ]
    return "\n\n".join(part for part in [str(one.text), *calls] if part.strip())


def _read(stored: list[MessageRecord]) -> list[BaseMessage]:
    """The messages; one that another program stored has a type and a text."""
    return messages_from_dict([(one.metadata or {}).get(FIELD) or _plain(one) for one in stored])


def _plain(stored: MessageRecord) -> dict[str, Any]:
    return {"type": TYPES[str(stored.role)], "data": {"content": stored.content, "id": stored.id}}


def _document(hit: SearchHit) -> Document:
    fields = {name: value for name, value in dataclasses.asdict(hit).items() if value is not None}
    text, extra = fields.pop("text"), fields.pop("extra")
    return Document(page_content=text, metadata={**extra, **fields, "id": hit.id}, id=str(hit.id))
