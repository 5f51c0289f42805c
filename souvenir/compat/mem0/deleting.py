"""Deletion of all memories that meet a condition, and of what would store more of them.

Extractions end before the memories are listed: what one stored before is in the list, and it stores nothing after.
"""

from __future__ import annotations

from functools import partial

from souvenir.compat.mem0.agents import Part
from souvenir.core.timestamps import utc_now
from souvenir.core.types import DeleteOutcome, Scope
from souvenir.server.service import Service
from souvenir.store import namespaces
from souvenir.store.admin import jobs
from souvenir.store.learning import extractions, unfinished
from souvenir.store.learning.extractions import Party
from souvenir.store.memories.conditions import ALWAYS
from souvenir.store.sql import Connection


def delete_part(service: Service, part: Part) -> DeleteOutcome:
    """Delete the memories of a part, except pinned ones, and end the extractions that would store such memories.

    A part that is a whole agent ends all of its jobs, such as imports.
    """
    service.engine.write_rows(partial(_end_jobs, part=part))
    return service.engine.delete_many(part.scope, part.ids(service.engine))


def end_extractions_of(service: Service, scope: Scope, user: str) -> None:
    """End the extractions of conversations with a user, who need not be stored."""

    def end(connection: Connection) -> None:
        extractions.forget_learned_with(connection, scope.namespace, Party.USER, user)

    service.engine.write_rows(end)


def _end_jobs(connection: Connection, part: Part) -> None:
    scope = part.scope
    namespace = namespaces.named(connection, scope.namespace, scope.sources)
    if namespace is None:
        return
    extractions.forget_jobs(connection, unfinished.matching(connection, namespace, part.condition, utc_now()))
    if part.condition == ALWAYS and scope.sources is None:
        jobs.request_cancel_in(connection, scope.namespace)
