"""A memory block of LlamaIndex over the conversations and memories of an agent; needs `souvenir-client[llamaindex]`.

block = SouvenirMemoryBlock(souvenir, agent="my_agent")
memory = Memory.from_defaults(session_id="chat-42", memory_blocks=[block])
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import BaseMemoryBlock
from pydantic import PrivateAttr

from souvenir_client.adapters.batches import batches
from souvenir_client.adapters.texts import MAX_TEXT_CHARACTERS, is_blank
from souvenir_client.calls import NOT_SENT
from souvenir_client.errors import NotFound
from souvenir_client.interception.messages import storable
from souvenir_client.sync.client import Souvenir

__all__ = ["SouvenirMemoryBlock"]

ROLES = {"user": "user", "system": "system", "developer": "system"}
"""Every other message is stored as said by the assistant, so that no tool speaks with authority."""
SESSION = "session_id"


class SouvenirMemoryBlock(BaseMemoryBlock[str]):
    """The context of an agent for the user's last message, and a store of messages that leave the short-term memory.

    The calls run in a thread, because LlamaIndex's synchronous methods start an event loop for each call.

    :param souvenir: The client; it is not closed.
    :param agent: The agent whose memory it is; it is created if it does not exist.
    :param user: The user that the agent talks with.
    :param max_tokens: Token budget of the context.
    :param fields: Those of LlamaIndex, such as `name`, `priority` and `accept_short_term_memory`.
    """

    name: str = "souvenir"
    _souvenir: Souvenir = PrivateAttr()
    _agent: str = PrivateAttr()
    _user: str | None = PrivateAttr()
    _max_tokens: int = PrivateAttr()

    def __init__(
        self, souvenir: Souvenir, *, agent: str, user: str | None = None, max_tokens: int = 2000, **fields: Any
    ) -> None:
        super().__init__(**fields)
        self._souvenir = souvenir
        self._agent = agent
        self._user = user
        self._max_tokens = max_tokens

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        asked = [text for one in messages or () if one.role.value == "user" and (text := _text(one))]
        return await asyncio.to_thread(self._context, asked[-1]) if asked else ""

    async def _aput(self, messages: list[ChatMessage]) -> None:
        await asyncio.to_thread(self._store, messages)

    def _context(self, query: str) -> str:
        user = NOT_SENT if self._user is None else self._user
        build = partial(self._souvenir.context.build, self._agent, query=query, user=user, max_tokens=self._max_tokens)
        try:
            return build().text
        except NotFound:
            # Memories may have been stored in its namespace before the agent exists.
            self._souvenir.agents.create(name=self._agent)
            return build().text

    def _store(self, messages: list[ChatMessage]) -> None:
        sessions: dict[str | None, list[dict[str, Any]]] = {}
        for one in messages:
            if text := _text(one):
                stored = {"role": ROLES.get(one.role.value, "assistant"), "content": text}
                if self._user is not None:
                    stored["user"] = self._user
                sessions.setdefault(one.additional_kwargs.get(SESSION), []).append(stored)
        for session_id, said in sessions.items():
            for batch in batches(said, text="content"):
                self._souvenir.messages.add_batch(
                    agent_name=self._agent,
                    session_id=NOT_SENT if session_id is None else session_id,
                    messages=batch,
                )


def _text(one: ChatMessage) -> str:
    """The text of a message as it can be stored; "" if it has none."""
    text = storable((one.content or "")[:MAX_TEXT_CHARACTERS])
    return "" if is_blank(text) else text
