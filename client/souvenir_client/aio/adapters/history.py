"""The history of a session as a framework stores it: each of its messages is kept whole in the metadata of ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from souvenir_client.adapters.batches import batches
from souvenir_client.aio.client import AsyncSouvenir
from souvenir_client.errors import NotFound, SouvenirError
from souvenir_client.records.common import JobAccepted, MessageRecord

PAGE_SIZE = 1000


class AsyncHistory:
    """The messages of one session of an agent.

    :param souvenir: The client; it is not closed.
    :param user: The user that the agent talks with.
    """

    def __init__(self, souvenir: AsyncSouvenir, *, agent: str, session_id: str, user: str | None) -> None:
        self._souvenir = souvenir
        self._agent = agent
        self._session_id = session_id
        self._user = user

    async def all(self) -> list[MessageRecord]:
        """All messages, oldest first; none if the session does not exist."""
        found: list[MessageRecord] = []
        while True:
            try:
                page = await self._souvenir.sessions.messages(
                    self._agent, self._session_id, offset=len(found), limit=PAGE_SIZE
                )
            except NotFound:
                return found
            found += page
            if len(page) < PAGE_SIZE:
                return found

    async def last(self, count: int) -> list[MessageRecord]:
        """The newest messages, oldest first."""
        found: list[MessageRecord] = []
        while len(found) < count:
            limit = min(PAGE_SIZE, count - len(found))
            try:
                page = await self._souvenir.messages.list(
                    self._agent, session_id=self._session_id, offset=len(found), limit=limit
                )
            except NotFound:
                break
            found += page
            if len(page) < limit:
                break
        return found[::-1]

    async def add(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Add messages in this order, as `messages.add_batch` takes them."""
        user = {} if self._user is None else {"user": self._user}
        for batch in batches([{**user, **message} for message in messages], text="content"):
            await self._souvenir.messages.add_batch(agent_name=self._agent, session_id=self._session_id, messages=batch)

    async def pop(self) -> MessageRecord | None:
        """Erase the newest message and return it; of several callers, each gets another one."""
        while found := await self.last(1):
            if await self._erase(message_ids=[found[0].id]):
                return found[0]
        return None

    async def clear(self) -> None:
        """Erase the session with its messages and what was learned from it."""
        await self._erase(session_id=self._session_id)

    async def _erase(self, **selected: object) -> bool:
        """Return whether this call erased messages, and not another one before it."""
        try:
            answer = await self._souvenir.privacy.erase(selector={"agent_name": self._agent, **selected}, confirm=True)
        except NotFound:
            return False
        if not isinstance(answer, JobAccepted):
            return answer.removed.messages > 0
        job = await self._souvenir.jobs.wait(answer.job_id)
        if job.result is None:
            raise SouvenirError(f"The erasure {job.id} is {job.status}: {job.error}")
        return bool(job.result["removed"]["messages"])
