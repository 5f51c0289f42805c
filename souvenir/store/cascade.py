"""Cascading deletes: a memory with its passages, links and history, a block with its versions.

A `Removal` holds what one transaction deletes in one namespace. It counts, and collects the changes for the indexes.
Which rows are deleted, and when, is decided in `souvenir.store.transaction` and `souvenir.store.pending_removals`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field

from souvenir.core.passages import PassageRemoved
from souvenir.core.stored_json import to_json
from souvenir.core.types import PassageKind, RecordKind
from souvenir.store.admin import jobs
from souvenir.store.graph import mentions, topics
from souvenir.store.learning import extractions
from souvenir.store.passages import remove_passages
from souvenir.store.rows import as_text, ids_parameter, select
from souvenir.store.sql import Connection, SqlValue

_CHOSEN = "IN (SELECT value FROM json_each(?))"


@dataclass(frozen=True, slots=True)
class RemovedRows:
    """Numbers of deleted rows by kind. `vectors` counts one per passage and model."""

    agents: int = 0
    users: int = 0
    sessions: int = 0
    messages: int = 0
    memories: int = 0
    facts: int = 0
    tags: int = 0
    blocks: int = 0
    block_versions: int = 0
    links: int = 0
    history: int = 0
    passages: int = 0
    vectors: int = 0
    mentions: int = 0
    concepts: int = 0
    idempotency_keys: int = 0
    jobs: int = 0

    def __add__(self, other: RemovedRows) -> RemovedRows:
        mine, theirs = asdict(self), asdict(other)
        return RemovedRows(**{name: mine[name] + theirs[name] for name in mine})


@dataclass(slots=True)
class Removal:
    """:param changes: Changes for the namespace's indexes. :param texts: The searched texts of deleted passages."""

    connection: Connection
    removed: RemovedRows = field(default_factory=RemovedRows)
    changes: list[PassageRemoved] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def memories(
        self, ids: Sequence[int], namespace_id: int, *, keep_history: bool = True, forget: bool = True
    ) -> None:
        """:param keep_history: Keep who changed the memories and when, without their content.

        :param forget: False keeps what extraction ledgers hold about the memories.
        """
        self._forget_mentions(RecordKind.MEMORY, ids, namespace_id)
        self.passages(PassageKind.MEMORY, ids)
        chosen = ids_parameter(ids)
        links = self._delete_where("links", f"from_id {_CHOSEN} OR to_id {_CHOSEN}", chosen, chosen)
        history = self._empty_history(chosen) if keep_history else self._delete("history", "memory_id", chosen)
        facts, tags = (self._count(f"{table} WHERE memory_id {_CHOSEN}", chosen) for table in ("facts", "memory_tags"))
        # The schema cascades to facts and tags.
        self._add(memories=self._delete("memories", "id", chosen), links=links, history=history, facts=facts, tags=tags)
        if forget:
            extractions.forget_memories(self.connection, ids)

    def messages(self, ids: Sequence[int], namespace_id: int) -> None:
        extractions.forget_said(self.connection, namespace_id, ids)
        self._forget_mentions(RecordKind.MESSAGE, ids, namespace_id)
        self.passages(PassageKind.MESSAGE, ids)
        chosen = ids_parameter(ids)
        uids = self._delete_named("messages", "uid", chosen)
        self._add(messages=len(uids))
        self._forget_requests(namespace_id, uids)

    def sessions(self, ids: Sequence[int], namespace_id: int) -> None:
        """Delete sessions, which must be empty."""
        chosen = ids_parameter(ids)
        names = self._delete_named("sessions", "name", chosen)
        if names:
            topics.after_session_deletion(self.connection, namespace_id)
        self._add(sessions=len(names))
        self._forget_requests(namespace_id, names)

    def users(self, ids: Sequence[int]) -> None:
        """Delete users, which no message may reference; sessions that reference them have no user afterwards."""
        self._add(users=self._delete("users", "id", ids_parameter(ids)))

    def blocks(self, ids: Sequence[int], namespace_id: int) -> None:
        chosen = ids_parameter(ids)
        versions = self._count(f"block_history WHERE block_id {_CHOSEN}", chosen)
        uids = self._delete_named("blocks", "uid", chosen)
        self._add(blocks=len(uids), block_versions=versions)
        self._forget_requests(namespace_id, uids)

    def passages(self, kind: PassageKind, owner_ids: Sequence[int]) -> None:
        vectors = self._count(
            f"vectors WHERE passage_id IN (SELECT id FROM passages WHERE kind = ? AND owner_id {_CHOSEN})",
            kind.value,
            ids_parameter(owner_ids),
        )
        gone = remove_passages(self.connection, kind, owner_ids)
        self.changes += [PassageRemoved(passage_id, kind) for passage_id, _ in gone]
        self.texts += [text for _, text in gone]
        self._add(passages=len(gone), vectors=vectors)

    def history(self, ids: Sequence[int]) -> None:
        """Delete history rows by their own ids."""
        self._add(history=self._delete("history", "id", ids_parameter(ids)))

    def events(self, ids: Sequence[int]) -> None:
        """Delete events by their own ids."""
        self._delete("events", "id", ids_parameter(ids))

    def requests_of(self, namespace_id: int) -> None:
        """Delete all idempotency keys of a namespace."""
        self._add(idempotency_keys=self._delete_where("idempotency_keys", "namespace_id = ?", namespace_id))

    def agent(self, namespace_id: int, name: str) -> None:
        """Delete the agent record and the jobs of the agent."""
        agents = self._delete_where("agents", "namespace_id = ?", namespace_id)
        self._add(agents=agents, jobs=jobs.delete_of(self.connection, name))

    def _forget_mentions(self, kind: RecordKind, ids: Sequence[int], namespace_id: int) -> None:
        """Remove mentions while their owners exist; concepts without mentions are deleted too."""
        forgotten = mentions.forget(self.connection, namespace_id, kind, ids)
        self._add(mentions=forgotten.mentions, concepts=forgotten.concepts)

    def _forget_requests(self, namespace_id: int, made: Iterable[str]) -> None:
        """Delete the idempotency keys that created one of these: a repeated request creates a new object."""
        condition = (
            "namespace_id = ? AND EXISTS (SELECT 1 FROM json_each(made) WHERE atom IN (SELECT atom FROM json_each(?)))"
        )
        chosen = to_json(list(made))
        self._add(idempotency_keys=self._delete_where("idempotency_keys", condition, namespace_id, chosen))

    def _empty_history(self, chosen: str) -> int:
        self.connection.execute(
            f"UPDATE history SET before = NULL, after = NULL WHERE memory_id {_CHOSEN} "
            "AND (before IS NOT NULL OR after IS NOT NULL)",
            (chosen,),
        )
        return self.connection.changes()

    def _count(self, rest: str, *parameters: SqlValue) -> int:
        return int(self.connection.execute(f"SELECT count(*) FROM {rest}", parameters).get)

    def _delete(self, table: str, column: str, chosen: str) -> int:
        return self._delete_where(table, f"{column} {_CHOSEN}", chosen)

    def _delete_named(self, table: str, name: str, chosen: str) -> list[str]:
        """Delete rows by id; return their names, also those that are damaged."""
        query = f"DELETE FROM {table} WHERE id {_CHOSEN} RETURNING CAST({name} AS BLOB)"
        return list(map(as_text, select(self.connection, bytes, query, (chosen,))))

    def _delete_where(self, table: str, condition: str, *parameters: SqlValue) -> int:
        self.connection.execute(f"DELETE FROM {table} WHERE {condition}", parameters)
        return self.connection.changes()

    def _add(self, **counts: int) -> None:
        self.removed += RemovedRows(**counts)
