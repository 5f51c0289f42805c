"""Sends conversations: each is a session, and messages that the session already has are skipped.

A message is identified by its key, whose digest is its `import_id` in the metadata. A conversation that has continued
since the last import gets its new messages, and an interrupted import resumes. Two concurrent imports of the same file
may store messages twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from souvenir_client.calls import NOT_SENT
from souvenir_client.errors import ApiError, InvalidRequest
from souvenir_client.importing import storable
from souvenir_client.importing.batches import batches, send_all
from souvenir_client.importing.exports import IMPORT_ID
from souvenir_client.importing.records import Altered, BlockRecord, Conversation, Skipped, Turn
from souvenir_client.importing.report import Tally
from souvenir_client.records.common import SessionRecord
from souvenir_client.sync.client import Souvenir

PAGE = 1_000
ENDED = "its session has ended on the service and accepts no more messages"
OTHER_BLOCK = "the agent has a different block with this label; it was not changed"


class SessionSender:
    """Sends the conversations of one import to one agent, which must exist."""

    def __init__(self, client: Souvenir, tally: Tally, agent: str) -> None:
        self._client = client
        self._tally = tally
        self._agent = agent
        self._held: dict[str, SessionRecord] | None = None

    def add(self, conversation: Conversation) -> None:
        if self._held is None:
            self._held = self._stored()
        held = self._held.get(conversation.session_id)
        there = self._keys(conversation.session_id) if held is not None and held.messages else set()
        turns = [turn for turn in conversation.turns if storable.name_by(turn.key) not in there]
        self._tally.messages.unchanged += len(conversation.turns) - len(turns)
        if not turns:
            self._tally.sessions.unchanged += 1
            self._end(conversation, held)
            return
        if held is not None and held.ended_at is not None:
            self._tally.note(Skipped(conversation.place, ENDED), len(turns))
            return
        if held is None:
            self._held[conversation.session_id] = self._start(conversation)
            self._tally.sessions.imported += 1
        else:
            self._tally.sessions.updated += 1
        self._send(conversation, turns)
        self._end(conversation, held)

    def _end(self, conversation: Conversation, held: SessionRecord | None) -> None:
        """End the session according to the file, once it has all of its messages."""
        if conversation.ended_at is not None and (held is None or held.ended_at is None):
            self._client.sessions.end(self._agent, conversation.session_id, ended_at=conversation.ended_at)

    def _send(self, conversation: Conversation, turns: Sequence[Turn]) -> None:
        def send(batch: Sequence[Turn]) -> None:
            answer = self._client.messages.add_batch(
                agent_name=self._agent,
                session_id=conversation.session_id,
                messages=[_body(turn) for turn in batch],
            )
            self._tally.messages.imported += answer.count

        def refused(turn: Turn, error: ApiError) -> None:
            where = f"{conversation.place}, message {turn.key}"
            self._tally.note(Skipped(where, f"the service refused it: {error.detail}"))

        for batch in batches(turns, lambda turn: len(turn.content)):
            send_all(batch, send, refused)

    def _start(self, conversation: Conversation) -> SessionRecord:
        start = partial(
            self._client.sessions.start,
            agent_name=self._agent,
            session_id=conversation.session_id,
            user=conversation.user,
            started_at=conversation.started_at or NOT_SENT,
        )
        try:
            return start(title=conversation.title, metadata=conversation.metadata or None)
        except InvalidRequest as error:  # a policy may let no personal data in
            self._tally.note(Altered(conversation.place, f"the service refused its title or metadata: {error.detail}"))
            return start()

    def _stored(self) -> dict[str, SessionRecord]:
        held: dict[str, SessionRecord] = {}
        offset, total = 0, 1
        while offset < total:
            page = self._client.sessions.list(self._agent, offset=offset, limit=PAGE)
            held.update({one.session_id: one for one in page.sessions})
            offset, total = offset + PAGE, page.total
        return held

    def _keys(self, session_id: str) -> set[str]:
        """Return the digests that identify the session's messages: of an import's key, or of their own id."""
        keys: set[str] = set()
        offset, total = 0, 1
        while offset < total:
            page = self._client.sessions.messages(self._agent, session_id, offset=offset, limit=PAGE)
            for message in page:
                imported = (message.metadata or {}).get(IMPORT_ID)
                keys |= {storable.digest(message.id), str(imported)}
            offset, total = offset + PAGE, page.total or 0
        return keys


class BlockSender:
    """Sends blocks to one agent, which must exist. An existing block is not changed."""

    def __init__(self, client: Souvenir, tally: Tally, agent: str) -> None:
        self._client = client
        self._tally = tally
        self._agent = agent
        self._held: dict[str, str] | None = None

    def add(self, block: BlockRecord) -> None:
        if self._held is None:
            self._held = {one.label: one.value for one in self._client.blocks.list(self._agent, limit=PAGE)}
        if block.label in self._held:
            if self._held[block.label] == block.value:
                self._tally.blocks.unchanged += 1
            else:
                self._tally.note(Skipped(block.place, OTHER_BLOCK))
            return
        send_all([block], self._send, self._refused)

    def _send(self, batch: Sequence[BlockRecord]) -> None:
        for block in batch:
            limit: dict[str, Any] = {} if block.limit_chars is None else {"limit": block.limit_chars}
            self._client.blocks.create(
                agent_name=self._agent,
                label=block.label,
                value=block.value,
                description=block.description,
                read_only=block.read_only,
                **limit,
            )
            self._tally.blocks.imported += 1

    def _refused(self, block: BlockRecord, error: ApiError) -> None:
        self._tally.note(Skipped(block.place, f"the service refused it: {error.detail}"))


def _body(turn: Turn) -> dict[str, Any]:
    said = {
        "role": turn.role,
        "content": turn.content,
        "metadata": {**turn.metadata, IMPORT_ID: storable.name_by(turn.key)},
    }
    also = {"created_at": turn.created_at, "user": turn.user, "name": turn.name}
    return {**said, **{name: value for name, value in also.items() if value is not None}}
