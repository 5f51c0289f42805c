"""A session of the OpenAI Agents SDK over the messages of an agent; needs `souvenir-client[openai-agents]`.

session = SouvenirSession("chat-42", souvenir, agent="my_agent")
await Runner.run(agent, "Hello", session=session)
"""

from __future__ import annotations

import json
from typing import Any, cast

from agents.items import TResponseInputItem
from agents.memory import SessionABC, SessionSettings

from souvenir_client.adapters.history_messages import message
from souvenir_client.aio.adapters.history import AsyncHistory
from souvenir_client.aio.client import AsyncSouvenir
from souvenir_client.records.common import MessageRecord

__all__ = ["SouvenirSession"]

FIELD = "openai_item"
OTHER_ROLES = {"user": "user", "system": "system", "developer": "system"}
"""Roles of items; every other item is stored as said by the assistant, so that no tool speaks with authority."""


class SouvenirSession(SessionABC):
    """The items of one conversation, each as it is and as a message that searches and contexts of the agent find.

    :param souvenir: The client; it is not closed.
    :param agent: The agent that the session belongs to.
    :param user: The user that the agent talks with.
    """

    def __init__(
        self,
        session_id: str,
        souvenir: AsyncSouvenir,
        *,
        agent: str,
        user: str | None = None,
        session_settings: SessionSettings | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings or SessionSettings()
        self._history = AsyncHistory(souvenir, agent=agent, session_id=session_id, user=user)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The items, oldest first; with a limit, the newest ones. Without one, that of the settings applies."""
        count = limit if limit is not None or self.session_settings is None else self.session_settings.limit
        # As in the SDK's own sessions, a negative limit is none.
        found = await (self._history.all() if count is None or count < 0 else self._history.last(count))
        return [_item(one) for one in found]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        await self._history.add([_message(cast(dict[str, Any], item)) for item in items])

    async def pop_item(self) -> TResponseInputItem | None:
        """Erase the newest item and return it; None if there is none."""
        found = await self._history.pop()
        return None if found is None else _item(found)

    async def clear_session(self) -> None:
        """Erase the session."""
        await self._history.clear()


def _item(stored: MessageRecord) -> TResponseInputItem:
    """The item of a message; one that another program stored has a role and a text."""
    whole = (stored.metadata or {}).get(FIELD, {"role": stored.role, "content": stored.content})
    return cast(TResponseInputItem, whole)


def _message(item: dict[str, Any]) -> dict[str, Any]:
    role = OTHER_ROLES.get(item.get("role", ""), "assistant")
    return message(role, _text(item), str(item.get("type") or "message"), field=FIELD, whole=item)


def _text(item: dict[str, Any]) -> str:
    """The words of an item: its content, its summary, or the call of a tool or what it returned."""
    if item.get("type") == "function_call":
        return f"{item.get('name')}({item.get('arguments')})"
    for name in ("content", "output", "summary"):
        found = item.get(name)
        if isinstance(found, list):
            found = "\n".join(
                str(part.get("text") or part.get("refusal") or "") for part in found if isinstance(part, dict)
            )
        elif found is not None and not isinstance(found, str):
            found = json.dumps(found, ensure_ascii=False)
        if found and found.strip():
            return found
    return ""
