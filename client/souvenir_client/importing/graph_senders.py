"""Send statements about concepts to an agent, and entities and relations to the knowledge graph."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from souvenir_client.errors import ApiError
from souvenir_client.importing.batches import batches, send_all
from souvenir_client.importing.records import (
    ConceptRelationStatement,
    ConceptStatement,
    ImportedEntity,
    ImportedRelation,
    Skipped,
)
from souvenir_client.importing.report import Tally
from souvenir_client.sync.client import Souvenir

Statement = ConceptStatement | ConceptRelationStatement

POLL_S, LONGEST_POLL_S = 0.5, 8.0
STALLED_S = 600.0
"""The wait ends if the service has indexed nothing for this time."""

NOT_MENTIONED = "no imported text mentions this concept"


class ConceptSender:
    """Sends the statements of one import to one agent, which must exist.

    :param stepped: Called when the service has indexed more messages.
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
        """Wait until everything is indexed, or there is no progress."""
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
            concepts=[_concept(one) for one in batch if isinstance(one, ConceptStatement)],
            relations=[_relation(one) for one in batch if isinstance(one, ConceptRelationStatement)],
        )
        for one in batch:
            if not _keys(one).isdisjoint(answer.unknown):
                self._tally.note(Skipped(one.place, NOT_MENTIONED))
        self._tally.concepts.imported += answer.stated
        self._tally.concepts.unchanged += answer.unchanged

    def _refused(self, item: Statement, error: ApiError) -> None:
        self._tally.note(Skipped(item.place, f"the service refused it: {error.detail}"))


def _concept(one: ConceptStatement) -> dict[str, Any]:
    said = {"name": one.name, "description": one.description, "aliases": list(one.aliases), "kind": one.kind}
    return {"key": one.key, **{name: held for name, held in said.items() if held}}


def _relation(one: ConceptRelationStatement) -> dict[str, Any]:
    ends = {"from_key": one.from_key, "to_key": one.to_key}
    return {**ends, "relationship_type": one.relationship_type, "strength": one.strength}


def _keys(one: Statement) -> set[str]:
    return {one.key} if isinstance(one, ConceptStatement) else {one.from_key, one.to_key}


def _chars(one: Statement) -> int:
    return len(one.description or "") + 1 if isinstance(one, ConceptStatement) else 1


Entry = ImportedEntity | ImportedRelation


class EntitySender:
    """Sends the entities of one import, then the relations, to one namespace."""

    def __init__(self, client: Souvenir, tally: Tally) -> None:
        self._client = client
        self._tally = tally
        self._entities: list[Entry] = []
        self._relations: list[Entry] = []
        self._counted: set[str] = set()

    def add(self, record: Entry) -> None:
        (self._entities if isinstance(record, ImportedEntity) else self._relations).append(record)

    def finish(self) -> None:
        for parts in (self._entities, self._relations):
            for batch in batches(parts, _observed_chars):
                send_all(batch, self._send, self._refused)

    def _send(self, batch: Sequence[Entry]) -> None:
        entities = [one for one in batch if isinstance(one, ImportedEntity)]
        answer = self._client.graph.store(
            entities=[
                {"name": one.name, "entity_type": one.entity_type, "observations": list(one.observations)}
                for one in entities
            ],
            relations=[
                {"from_entity": one.from_entity, "to_entity": one.to_entity, "relation_type": one.relation_type}
                for one in batch
                if isinstance(one, ImportedRelation)
            ],
        )
        names = {one.name for one in entities} - self._counted
        self._counted |= names
        count, changed = self._tally.memories, answer.entities_created + answer.entities_updated
        count.imported += answer.entities_created
        count.updated += answer.entities_updated
        count.unchanged += max(0, len(names) - changed)
        self._tally.links += answer.relations_created

    def _refused(self, item: Entry, error: ApiError) -> None:
        self._tally.note(Skipped(item.place, f"the service refused it: {error.detail}"))


def _observed_chars(part: Entry) -> int:
    return sum(map(len, part.observations)) if isinstance(part, ImportedEntity) else 1
