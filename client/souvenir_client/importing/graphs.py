"""Sends entities and relations to the knowledge graph, which stores of them what it does not hold yet."""

from __future__ import annotations

from collections.abc import Sequence

from souvenir_client.errors import ApiError
from souvenir_client.importing.batches import batches, send_all
from souvenir_client.importing.records import EntityRecord, RelationRecord, Skipped
from souvenir_client.importing.report import Tally
from souvenir_client.sync.client import Souvenir

Part = EntityRecord | RelationRecord


class Graphs:
    """Of one import into one namespace. Relations go out last: then an entity stands where the file has it."""

    def __init__(self, client: Souvenir, tally: Tally) -> None:
        self._client = client
        self._tally = tally
        self._entities: list[Part] = []
        self._relations: list[Part] = []
        self._counted: set[str] = set()

    def add(self, record: Part) -> None:
        (self._entities if isinstance(record, EntityRecord) else self._relations).append(record)

    def finish(self) -> None:
        for parts in (self._entities, self._relations):
            for batch in batches(parts, _chars):
                send_all(batch, self._send, self._refused)

    def _send(self, batch: Sequence[Part]) -> None:
        entities = [one for one in batch if isinstance(one, EntityRecord)]
        answer = self._client.graph.store(
            entities=[
                {"name": one.name, "entity_type": one.entity_type, "observations": list(one.observations)}
                for one in entities
            ],
            relations=[
                {"from_entity": one.from_entity, "to_entity": one.to_entity, "relation_type": one.relation_type}
                for one in batch
                if isinstance(one, RelationRecord)
            ],
        )
        names = {one.name for one in entities} - self._counted
        self._counted |= names
        count, changed = self._tally.memories, answer.entities_created + answer.entities_updated
        count.imported += answer.entities_created
        count.updated += answer.entities_updated
        count.unchanged += max(0, len(names) - changed)
        self._tally.links += answer.relations_created

    def _refused(self, item: Part, error: ApiError) -> None:
        self._tally.note(Skipped(item.place, f"the service refused it: {error.detail}"))


def _chars(part: Part) -> int:
    return sum(map(len, part.observations)) if isinstance(part, EntityRecord) else 1
