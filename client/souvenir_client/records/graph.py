"""What the service answers in its section `graph`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityRecord:
    id: int
    name: str
    entity_type: str
    observations: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphResponse:
    entities: list[EntityRecord]
    relations: list[RelationRecord]
    next_offset: int | None
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationRecord:
    from_entity: str
    to_entity: str
    relation_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreGraphResponse:
    entities_created: int
    entities_updated: int
    observations_added: int
    relations_created: int
