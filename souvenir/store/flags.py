"""What is flagged with a sensitive topic: `sensitive_topics` of the metadata, a name or a list of names."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

import apsw

from souvenir.notes import SENSITIVE_TOPICS
from souvenir.types import PassageKind

_TABLES: Mapping[PassageKind, str] = MappingProxyType({PassageKind.MEMORY: "memories", PassageKind.MESSAGE: "messages"})


def flagged(connection: apsw.Connection, kind: PassageKind, namespace_id: int, topics: Collection[str]) -> list[int]:
    """Ids of those that are flagged with one of these topics; costs as much as there are flagged ones."""
    if not topics:
        return []
    path = f"'$.{SENSITIVE_TOPICS}'"
    rows: Any = connection.execute(
        f"SELECT id FROM {_TABLES[kind]} WHERE namespace_id = ? AND json_extract(metadata, {path}) IS NOT NULL "
        f"AND EXISTS (SELECT 1 FROM json_each(metadata, {path}) WHERE value IN (SELECT value FROM json_each(?)))",
        (namespace_id, json.dumps(list(topics))),
    )
    return [id_ for (id_,) in rows]
