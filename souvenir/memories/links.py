"""Links that callers make between two memories: one supersedes, blocks, causes, reinforces or relates to another.

A link changes neither memory: it archives nothing, adds no history entry and keeps `updated_at`. The audit log records
who created or removed it.
"""

from __future__ import annotations

from collections.abc import Sequence

from souvenir.core.errors import LinkNotUsable, MemoryNotFound
from souvenir.core.types import Link, LinkType, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.store.admin import audit, transfers
from souvenir.store.admin.audit import AuditEvent
from souvenir.store.memories import links as rows
from souvenir.store.memories import reads
from souvenir.store.transaction import Transaction


def link_type_named(name: str) -> LinkType:
    """:raises LinkNotUsable: If callers cannot create links of this type."""
    try:
        return LinkType(name)
    except ValueError as error:
        raise LinkNotUsable(f"There is no link type {name!r}; send one of {', '.join(LinkType)}") from error


class Links:
    """Thread-safe. Memories that are invisible to the scope are reported as missing."""

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine

    def add(self, scope: Scope, from_id: int, to_id: int, link_type: LinkType) -> Link:
        """Create a link.

        :raises MemoryNotFound: If there is no memory `from_id`.
        :raises LinkNotUsable: If both ids are equal, the other memory does not exist, or the link exists already.
        """
        if from_id == to_id:
            raise LinkNotUsable("A memory cannot be linked with itself; send another to_id")

        def work(tx: Transaction) -> Link:
            tx.memory(from_id)
            if not reads.visible_ids(tx.connection, tx.namespace, [to_id]):
                raise LinkNotUsable(f"There is no memory {to_id} to link with; send the id of one that exists")
            link = Link(from_id, to_id, link_type.value, tx.now)
            if not transfers.insert_link(tx.connection, link):
                raise LinkNotUsable(f"Memory {from_id} already has this link; remove it first to create it again")
            note_link(tx, "link.add", link)
            return link

        return self._engine.write(scope, work)

    def of(
        self, scope: Scope, memory_id: int, *, link_type: LinkType | None = None, incoming: bool = False
    ) -> Sequence[Link]:
        """Return the links from a memory, then with `incoming` the links to it.

        :raises MemoryNotFound: If there is no such memory.
        """
        with self._engine.namespace(scope) as (connection, namespace):
            if namespace is None or not reads.visible_ids(connection, namespace, [memory_id]):
                raise MemoryNotFound(memory_id)
            return rows.links_of(connection, namespace, memory_id, link_type=link_type, incoming=incoming)

    def remove(self, scope: Scope, from_id: int, to_id: int, link_type: LinkType) -> bool:
        """Remove a link; returns True if it existed.

        :raises MemoryNotFound: If there is no memory `from_id`.
        """

        def work(tx: Transaction) -> bool:
            tx.memory(from_id)
            if not reads.visible_ids(tx.connection, tx.namespace, [to_id]):
                return False
            removed = rows.remove_link(tx.connection, from_id, to_id, link_type.value)
            if removed:
                note_link(tx, "link.remove", Link(from_id, to_id, link_type.value, tx.now))
            return removed

        return self._engine.write(scope, work)


def note_link(tx: Transaction, action: str, link: Link) -> None:
    """Record in the audit log who created or removed a link."""
    actor, namespace = tx.scope.actor, tx.namespace.name
    detail = f"{link.type} {link.to_id}"
    audit.record(tx.connection, [AuditEvent(tx.now, action, actor, namespace, str(link.from_id), detail=detail)])
