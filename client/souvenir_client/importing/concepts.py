"""Sends what somebody said of concepts, once the service has read everything that mentions them.

A concept is there as soon as a message or a memory that mentions it was read, which happens in the background. So the
service is asked how much waits to be read, and nothing is sent before that is nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from souvenir_client.errors import ApiError
from souvenir_client.importing.batches import batches, send_all
from souvenir_client.importing.records import ConceptRecord, ConceptRelationRecord, Skipped
from souvenir_client.importing.report import Tally
from souvenir_client.sync.client import Souvenir

Statement = ConceptRecord | ConceptRelationRecord

POLL_S, LONGEST_POLL_S = 0.5, 8.0
STALLED_S = 600.0
"""That nothing is read for, after which what is not there is no longer waited for."""

NOT_MENTIONED = "nothing that was imported mentions a concept of that name"


class Concepts:
    """Of one import into one agent, which has to be there.

    :param stepped: Called whenever the service has read more.
    """

    def __init__(self, client: Souvenir, tally: Tally, agent: str, stepped: Callable[[], None]) -> None:
        self._client = client
        self._tally = tally
        self._agent = agent
        self._stepped = stepped
        self._statements: list[Statement] = []

    def add(self, statement: Statement) -> None:
        self._statements.append(statement)

    def finish(self) -> None:
        if self._statements:
            self._wait()
        for batch in batches(self._statements, _chars):
            send_all(batch, self._send, self._refused)

    def _wait(self) -> None:
        """Until everything is read, or nothing is any more."""
        least = self._client.agents.state_concepts(self._agent).unread
        since, pause_s = time.monotonic(), POLL_S
        while least and time.monotonic() - since < STALLED_S:
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_POLL_S)
            waiting = self._client.agents.state_concepts(self._agent).unread
            if waiting < least:
                least, since = waiting, time.monotonic()
                self._stepped()

    def _send(self, batch: Sequence[Statement]) -> None:
        answer = self._client.agents.state_concepts(
            self._agent,
            concepts=[_concept(one) for one in batch if isinstance(one, ConceptRecord)],
            relations=[_relation(one) for one in batch if isinstance(one, ConceptRelationRecord)],
        )
        for one in batch:
            if not _keys(one).isdisjoint(answer.unknown):
                self._tally.note(Skipped(one.place, NOT_MENTIONED))
        self._tally.concepts.imported += answer.stated
        self._tally.concepts.unchanged += answer.unchanged

    def _refused(self, item: Statement, error: ApiError) -> None:
        self._tally.note(Skipped(item.place, f"the service refused it: {error.detail}"))


def _concept(one: ConceptRecord) -> dict[str, Any]:
    said = {"name": one.name, "description": one.description, "aliases": list(one.aliases), "kind": one.kind}
    return {"key": one.key, **{name: held for name, held in said.items() if held}}


def _relation(one: ConceptRelationRecord) -> dict[str, Any]:
    ends = {"from_key": one.from_key, "to_key": one.to_key}
    return {**ends, "relationship_type": one.relationship_type, "strength": one.strength}


def _keys(one: Statement) -> set[str]:
    return {one.key} if isinstance(one, ConceptRecord) else {one.from_key, one.to_key}


def _chars(one: Statement) -> int:
    return len(one.description or "") + 1 if isinstance(one, ConceptRecord) else 1
