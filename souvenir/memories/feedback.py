"""Feedback: judgements that a memory was useful for a query, or was not, and reports of memories that were not found.

A search with `feedback_weight` ranks by them. They belong to the memory: they are deleted and erased with it, and
exports do not contain them. Feedback changes no memory: no text, no history, no `updated_at`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from souvenir.core.errors import FeedbackNotFound, MemoryNotFound
from souvenir.core.types import MemoryDraft, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.store.admin import audit
from souvenir.store.admin.audit import AuditEvent
from souvenir.store.memories import feedback, reads
from souvenir.store.memories.feedback import FeedbackEntry, NewFeedback
from souvenir.store.transaction import Transaction, require_writable


class Feedback:
    """Thread-safe. Memories that are invisible to the scope are reported as missing."""

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine

    def record(self, scope: Scope, new: NewFeedback) -> None:
        """Store a judgement; the privacy policy applies to the query.

        :raises MemoryNotFound: If there is no such memory.
        """
        screened = replace(new, query=self._engine.screening.query(scope, new.query))

        def work(tx: Transaction) -> None:
            tx.memory(new.memory_id)
            feedback.insert(tx.connection, tx.namespace_id, screened, scope.actor, tx.now)

        self._engine.write(scope, work)

    def history(self, scope: Scope, memory_id: int, *, limit: int) -> Sequence[FeedbackEntry]:
        """Return the judgements of a memory by all callers, newest first.

        :raises MemoryNotFound: If there is no such memory.
        """
        with self._engine.namespace(scope) as (connection, namespace):
            if namespace is None or not reads.visible_ids(connection, namespace, [memory_id]):
                raise MemoryNotFound(memory_id)
            return feedback.of_memory(connection, memory_id, limit=limit)

    def retract(self, scope: Scope, feedback_id: int) -> None:
        """Delete a judgement, and record that in the audit log.

        :raises FeedbackNotFound: If the namespace has no such judgement.
        """

        def work(tx: Transaction) -> None:
            memory_id = feedback.delete(tx.connection, tx.namespace_id, feedback_id)
            if memory_id is None:
                raise FeedbackNotFound(feedback_id)
            event = AuditEvent(
                tx.now,
                "feedback.retract",
                scope.actor,
                tx.namespace.name,
                str(memory_id),
                detail=f"feedback {feedback_id}",
            )
            audit.record(tx.connection, [event])

        self._engine.write(scope, work)

    def report_missed(self, scope: Scope, draft: MemoryDraft, context: str | None) -> tuple[int, int]:
        """Store a memory that a search missed, unless its source has an active one with the same text, and a report.

        :return: The id of the memory, and the number of reports of it.
        :raises SourceForbidden: If the scope may not write to the draft's source.
        """
        require_writable(scope, draft.source)
        draft = self._engine.screening.draft(scope, draft)
        context = None if context is None else self._engine.screening.query(scope, context)
        [passages] = self._engine.prepare_drafts([draft])
        with self._engine.namespace(scope) as (connection, namespace):
            # The writer then reads only what was added since.
            first_id = feedback.next_id(connection)
            if namespace is not None:
                first_id = feedback.identical(connection, namespace.id, draft.source, draft.text) or first_id

        def work(tx: Transaction) -> tuple[int, int]:
            memory_id = feedback.identical(tx.connection, tx.namespace_id, draft.source, draft.text, first_id=first_id)
            if memory_id is None:
                memory_id = tx.insert(draft, passages).id
            count = feedback.insert_missed(tx.connection, tx.namespace_id, memory_id, context, scope.actor, tx.now)
            return memory_id, count

        return self._engine.write(scope, work)
