"""How values stand in the database: times as microseconds, metadata and history as JSON, a row as a `Memory`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from souvenir.moments import from_us, to_us
from souvenir.passages import Passage, Turn
from souvenir.types import Fact, FactsBy, Link, Memory, MessageRole, OriginClass, PassageKind, Profile

PASSAGE_COLUMNS = (
    "id, kind, owner_id, ordinal, text, profile, source, occurred_at, archived, dated, "
    "session_id, position, role, user_id, speaker, fact_id"
)

MEMORY_COLUMNS = (
    "id, text, source, key, metadata, document_at, created_at, updated_at, pinned, archived, origin_class, valid_to"
)


def to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def same_json(one: Any, other: Any) -> bool:
    """Whether two values are one JSON value: keys in any order, but 1, 1.0 and true are three."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def ids_parameter(ids: Iterable[int]) -> str:
    """Any number of ids as one SQL parameter, for `IN (SELECT value FROM json_each(?))`."""
    return json.dumps(list(ids))


def memory_of(row: tuple[Any, ...]) -> Memory:
    """A memory of `MEMORY_COLUMNS`, without its links."""
    return Memory(
        id=row[0],
        text=row[1],
        source=row[2],
        key=row[3],
        metadata=json.loads(row[4]),
        document_at=None if row[5] is None else from_us(row[5]),
        created_at=from_us(row[6]),
        updated_at=from_us(row[7]),
        pinned=bool(row[8]),
        archived=bool(row[9]),
        origin_class=OriginClass(row[10]),
        valid_to=None if row[11] is None else from_us(row[11]),
    )


def passage_of(row: tuple[Any, ...]) -> Passage:
    """A passage of `PASSAGE_COLUMNS`."""
    id_, kind, owner_id, ordinal, text, profile, source, occurred_at, archived, dated, *turn, fact_id = row
    session_id, position, role, user_id, speaker = turn
    return Passage(
        id=id_,
        kind=PassageKind(kind),
        owner_id=owner_id,
        ordinal=ordinal,
        text=text,
        profile=Profile(profile),
        source=source,
        occurred_at=from_us(occurred_at),
        archived=bool(archived),
        dated=bool(dated),
        turn=None if session_id is None else Turn(session_id, position, MessageRole(role), user_id, speaker),
        fact_id=fact_id,
    )


def link_of(row: tuple[Any, ...]) -> Link:
    return Link(row[0], row[1], row[2], from_us(row[3]))


def fact_state(fact: Fact) -> dict[str, Any]:
    return {"id": fact.id, "text": fact.text, "made_by": fact.made_by.value, "created_at": to_us(fact.created_at)}


def fact_of(state: Mapping[str, Any]) -> Fact:
    """A fact as `fact_state` wrote it; one that an import brought along has no id of ours, and 0 here."""
    return Fact(state.get("id", 0), state["text"], FactsBy(state["made_by"]), from_us(state["created_at"]))


def history_state(memory: Memory) -> str:
    """What a change is undone from, and the past is read from: every column, tags and facts.

    Older rows have no times of their own.
    """
    owned: dict[str, Any] = {}
    if memory.tags:
        owned["tags"] = list(memory.tags)
    if memory.facts:
        owned["facts"] = [fact_state(fact) for fact in memory.facts]
    return to_json(
        {
            "text": memory.text,
            "source": memory.source,
            "key": memory.key,
            "metadata": dict(memory.metadata),
            "document_at": None if memory.document_at is None else to_us(memory.document_at),
            "pinned": memory.pinned,
            "archived": memory.archived,
            "origin_class": memory.origin_class.value,
            "valid_to": None if memory.valid_to is None else to_us(memory.valid_to),
            "created_at": to_us(memory.created_at),
            "updated_at": to_us(memory.updated_at),
            **owned,
        }
    )
