"""Reads of documents, which are active memories with the key `DOCUMENT_KEY` below the source `DOCUMENTS`.

Each function takes a connection inside a transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from souvenir.core.labels import DOCUMENT_KEY, DOCUMENTS, SEPARATOR
from souvenir.core.stored_json import to_json
from souvenir.store.namespaces import Namespace, visible_condition
from souvenir.store.rows import first, select
from souvenir.store.sql import Connection

_ACTIVE = f"namespace_id = ? AND key = '{DOCUMENT_KEY}' AND archived = 0"


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """:param size: Bytes of the text in UTF-8."""

    id: int
    source: str
    size: int
    pinned: bool


def at_or_below(connection: Connection, namespace: Namespace, source: str) -> Sequence[DocumentRow]:
    """Return the visible documents of a source and of those below it, in the order of their ids."""
    visible, parameters = visible_condition(namespace.sources)
    inside, beyond = _below(source)
    return list(
        select(
            connection,
            DocumentRow,
            f"SELECT id, source, octet_length(text), pinned FROM memories WHERE {_ACTIVE} "
            f"AND (source = ? OR (source >= ? AND source < ?)) AND {visible} ORDER BY id",
            (namespace.id, source, inside, beyond, *parameters),
        )
    )


def every_id(connection: Connection, namespace: Namespace) -> list[int]:
    """Return the ids of all documents, archived ones included, whether they are visible or not."""
    query = f"SELECT id FROM memories WHERE namespace_id = ? AND key = '{DOCUMENT_KEY}' AND source >= ? AND source < ?"
    return list(select(connection, int, query, (namespace.id, *_below(DOCUMENTS))))


def _below(source: str) -> tuple[str, str]:
    """Return the first source below another one, and the first one beyond these.

    The successor of a slash is the least text that is greater than all that begin with the prefix.
    """
    return source + SEPARATOR, source + chr(ord(SEPARATOR) + 1)


def first_among(connection: Connection, namespace: Namespace, sources: Sequence[str]) -> str | None:
    """Return the first of the sources that is a document."""
    return first(
        connection,
        str,
        f"SELECT source FROM memories WHERE {_ACTIVE} AND source IN (SELECT atom FROM json_each(?)) "
        "ORDER BY source LIMIT 1",
        (namespace.id, to_json(list(sources))),
    )
