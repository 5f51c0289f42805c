"""How many requests are worked on at once, by what they cost, and which are refused instead of waiting long.

A class of requests has some places at work and a queue before them, first come first served. The queue is no longer
than what is served in about a second: more would wait for answers that their clients gave up on, and the service would
do the work all the same. Who finds it full is told at once when to come back. Health has no class that could be full.

A place is held until the work is really done, also when the client left or its deadline passed. Everything here runs on
the event loop; `figures` may be read from any thread.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from time import monotonic

from souvenir.errors import Overloaded, ServiceClosing, SouvenirError
from souvenir.settings import EmbedProvider, Settings

WAITING_PER_PLACE = 16
"""Requests that may wait for each place at work, however quick they are."""

PATIENCE = 4
"""A request may wait so many times as long as it was expected to at most: who was let in should be served, also when
the machine is slow for a moment."""

REMOTE_PLACES_PER_CORE = 16
"""Where another server embeds, a place waits for it most of its time and uses no core."""

RETRY_AFTER_MAX_S = 60

RECENT_SHARE = 0.1
"""Weight of the newest request in the mean of how long one takes."""

SPARE_THREADS = 8
"""For what no class counts: health, and answers that are still being sent."""


class CostClass(StrEnum):
    """What a request costs; each class has its own places and its own queue."""

    HEALTH = "health"  # answered whatever else is going on
    LIGHT = "light"  # a look at a few rows
    SEARCH = "search"  # the model and the arrays
    WRITE = "write"  # the model, the disk and the arrays
    LONG = "long"  # whole tables, whole files


class Refusal(StrEnum):
    """Why a request was not done."""

    FULL = "full"  # more would have waited than are served in time
    WAITED = "waited"  # its turn did not come in time
    LEFT = "left"  # its client was gone when its turn came
    CLOSING = "closing"  # the service was told to stop
    DEADLINE = "deadline"  # it was not done in time; its place is held until it is
    BODY_MEMORY = "body_memory"  # the bodies of others fill the memory for them
    BODY_SLOW = "body_slow"  # its body did not arrive in time


_LIGHT, _SEARCH, _WRITE, _LONG = CostClass.LIGHT, CostClass.SEARCH, CostClass.WRITE, CostClass.LONG

COSTS: Mapping[str, CostClass] = {
    "health": CostClass.HEALTH,
    "ready": CostClass.HEALTH,
    "search": _SEARCH,
    "explain_search": _SEARCH,
    "search_batch": _LONG,
    "add_memory": _WRITE,
    "add_batch": _WRITE,
    "upsert_memory": _WRITE,
    "upsert_batch": _WRITE,
    "patch_memory": _WRITE,
    "supersede_by_id": _WRITE,
    "supersede": _WRITE,
    "merge": _WRITE,
    "archive_batch": _WRITE,
    "get_memory": _LIGHT,
    "get_batch": _LIGHT,
    "memory_history": _LIGHT,
    "list_memories": _LIGHT,
    "count_memories": _LIGHT,
    "list_facts": _LIGHT,
    "set_facts": _LONG,
    "split_facts": _LONG,
    "list_tags": _LIGHT,
    "rename_tag": _LONG,
    "merge_tags": _LONG,
    "delete_tag": _LONG,
    "add_link": _LIGHT,
    "list_links": _LIGHT,
    "read_graph": _SEARCH,
    "store_graph": _WRITE,
    "describe_concepts": _LONG,
    "get_description": _LIGHT,
    "undo_description": _WRITE,
    "list_relations": _LIGHT,
    "relate_concepts": _WRITE,
    "unrelate_concepts": _WRITE,
    "remove_link": _LIGHT,
    "delete_memory": _WRITE,
    "delete_batch": _WRITE,
    "delete_by_source": _LONG,
    "delete_by_prefix": _LONG,
    "delete_memories": _LONG,
    "create_agent": _LIGHT,
    "list_agents": _LIGHT,
    "locrit_summary": _SEARCH,
    "locrit_sessions": _LIGHT,
    "locrit_session": _LIGHT,
    "locrit_history": _LIGHT,
    "locrit_message": _LIGHT,
    "locrit_concepts": _SEARCH,
    "locrit_concept": _SEARCH,
    "locrit_related": _SEARCH,
    "locrit_memories": _LIGHT,
    "locrit_stats": _SEARCH,
    "store_conversation": _LONG,
    "delete_locrit_session": _LONG,
    "edit_locrit_message": _WRITE,
    "delete_locrit_message": _WRITE,
    "edit_locrit_concept": _WRITE,
    "delete_locrit_concept": _LONG,
    "add_locrit_memory": _WRITE,
    "delete_locrit_memory": _WRITE,
    "clear_locrit": _LONG,
    "get_agent": _LIGHT,
    "agent_summary": _SEARCH,
    "list_concepts": _SEARCH,
    "get_concept": _SEARCH,
    "find_concept": _SEARCH,
    "update_concept": _WRITE,
    "delete_concept": _LONG,
    "related_concepts": _SEARCH,
    "related_to_name": _SEARCH,
    "search_agent": _SEARCH,
    "search_locrit": _SEARCH,
    "ai_search_locrit": _SEARCH,
    "delete_agent": _LONG,
    "delete_user": _LONG,
    "delete_session": _LONG,
    "delete_message": _WRITE,
    "build_context": _SEARCH,
    "list_topics": _LIGHT,
    "get_topic": _LIGHT,
    "describe_topic": _LIGHT,
    "agent_insights": _LONG,
    "concept_history": _LIGHT,
    "get_access": _LIGHT,
    "set_access": _LIGHT,
    "get_policy": _LIGHT,
    "set_policy": _LIGHT,
    "rescan": _LONG,
    "erase": _LONG,
    "create_block": _LIGHT,
    "list_blocks": _LIGHT,
    "get_block": _LIGHT,
    "update_block": _LIGHT,
    "delete_block": _LIGHT,
    "block_history": _LIGHT,
    "remember": _WRITE,
    "forget": _WRITE,
    "recall": _SEARCH,
    "search_long_term": _SEARCH,
    "list_preferences": _LIGHT,
    "get_preference": _LIGHT,
    "set_preference": _WRITE,
    "forget_preference": _WRITE,
    "append_message": _LIGHT,
    "get_window": _LIGHT,
    "clear_window": _LIGHT,
    "session_context": _SEARCH,
    "agent_stats": _LIGHT,
    "list_users": _LIGHT,
    "export_agent": _LONG,
    "export_graph": _LONG,
    "state_concepts": _WRITE,
    "add_message": _WRITE,
    "add_messages": _LONG,
    "search_messages": _SEARCH,
    "explain_messages": _SEARCH,
    "list_messages": _LIGHT,
    "get_message": _LIGHT,
    "edit_message": _WRITE,
    "start_session": _WRITE,
    "list_sessions": _LIGHT,
    "get_session": _LIGHT,
    "list_session_messages": _LIGHT,
    "change_session": _LIGHT,
    "end_session": _WRITE,
    "is_novel": _SEARCH,
    "deduplicate": _LONG,
    "reembed": _LONG,
    "reload_embedder": _LONG,
    "export_memories": _LONG,
    "import_memories": _LONG,
    "build_index": _LONG,
    "compact": _LONG,
    "prune": _LONG,
    "consolidate": _LONG,
    "enforce_policies": _LONG,
    "list_conflicts": _LIGHT,
    "resolve_conflicts": _LONG,
    "extract": _WRITE,
    "get_extraction": _LIGHT,
    "cancel_extraction": _LIGHT,
    "extract_status": _LIGHT,
    "commit": _LONG,
    "approve": _LONG,
    "undo": _WRITE,
    "rerun": _LIGHT,
    "diff": _SEARCH,
    "list_profiles": _LIGHT,
    "get_profile": _LIGHT,
    "set_profile": _LIGHT,
    "delete_profile": _LIGHT,
    "read_audit": _LIGHT,
    "purge_audit": _LONG,
    "list_jobs": _LIGHT,
    "get_job": _LIGHT,
    "cancel_job": _LIGHT,
    "own_key": _LIGHT,
    "create_key": _LIGHT,
    "list_keys": _LIGHT,
    "update_key": _LIGHT,
    "rotate_key": _LIGHT,
    "revoke_key": _LIGHT,
    "list_backups": _LIGHT,
    "back_up": _LONG,
    "restore": _LONG,
    "list_snapshots": _LIGHT,
    "make_snapshot": _LONG,
    "restore_snapshot": _LONG,
    "stats": _LIGHT,
    "usage": _LIGHT,
    "metrics": CostClass.HEALTH,
    "openapi": _LIGHT,
    "docs": _LIGHT,
    "docs_script": _LIGHT,
    "docs_style": _LIGHT,
    "docs_icon": _LIGHT,
}
"""The class of every route, by its name. Who revokes a key or cancels a job does not wait behind writes."""


def cost_of(route: str) -> CostClass:
    """:raises LookupError: If nobody said what a route costs."""
    try:
        return COSTS[route]
    except KeyError:
        raise LookupError(f"Enter the route {route!r} in COSTS of {__name__}") from None


@dataclass(frozen=True, slots=True)
class LaneFigures:
    """Of one class: now, and since the start. `service_s` is the recent mean from the turn to the answer."""

    at_work: int
    places: int
    waiting: int
    waiting_max: int
    service_s: float
    admitted: int
    refused: Mapping[Refusal, int]


class Lane:
    """The places of one class and the queue before them.

    :param wait_s: A request that would probably wait longer is refused at once.
    """

    def __init__(self, cost: CostClass, places: int, wait_s: float) -> None:
        self.cost = cost
        self._places = places
        self._wait_s = wait_s
        self._at_work = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._service_s = 0.0
        self._admitted = 0
        self._refused: Counter[Refusal] = Counter()
        self._closed = False

    async def enter(self) -> Turn:
        """Wait for a place. The turn that is returned must be ended.

        :raises Overloaded: If the queue is full, or the wait was too long.
        :raises ServiceClosing: If the service was told to stop.
        """
        if self._closed:
            raise self.refused(Refusal.CLOSING, ServiceClosing())
        waits = self._at_work >= self._places
        if waits:
            await self._queue()
        else:
            self._at_work += 1
        self._admitted += 1
        return Turn(self, waited=waits)

    def refused(self, reason: Refusal, error: SouvenirError) -> SouvenirError:
        """Count a refusal of this class and hand its error back."""
        self.count(reason)
        return error

    def count(self, reason: Refusal) -> None:
        self._refused[reason] += 1

    def leave(self, worked_s: float) -> None:
        """The next in the queue takes the place over."""
        share = RECENT_SHARE if self._service_s else 1.0
        self._service_s += share * (worked_s - self._service_s)
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._at_work -= 1

    def close(self) -> None:
        """Refuse those who wait and those who come; what is at work goes on."""
        self._closed = True
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_exception(self.refused(Refusal.CLOSING, ServiceClosing()))

    def figures(self) -> LaneFigures:
        return LaneFigures(
            self._at_work,
            self._places,
            len(self._waiting),
            self._waiting_max,
            self._service_s,
            self._admitted,
            dict(self._refused),
        )

    @property
    def _waiting_max(self) -> int:
        return WAITING_PER_PLACE * self._places

    def refusal(self) -> Overloaded | None:
        """The error for a request that comes now, if it would wait too long; counted."""
        if self._at_work < self._places or self._closed:
            return None
        expected_s = (len(self._waiting) + 1) * self._service_s / self._places
        if len(self._waiting) < self._waiting_max and expected_s <= self._wait_s:
            return None
        self.count(Refusal.FULL)
        return self._overloaded(expected_s)

    async def _queue(self) -> None:
        if (refusal := self.refusal()) is not None:
            raise refusal
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        timer = loop.call_later(PATIENCE * self._wait_s, self._give_up, turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.leave(self._service_s)
            raise
        finally:
            timer.cancel()

    def _give_up(self, turn: asyncio.Future[None]) -> None:
        if not turn.done():
            self._waiting.remove(turn)
            turn.set_exception(self.refused(Refusal.WAITED, self._overloaded(self._wait_s)))

    def _overloaded(self, expected_s: float) -> Overloaded:
        retry_after_s = min(RETRY_AFTER_MAX_S, max(1, math.ceil(expected_s)))
        return Overloaded(
            f"Too many requests of the class {self.cost} are waiting; try again in {retry_after_s} s",
            retry_after_s=retry_after_s,
        )


class Turn:
    """A place that one request holds. `waited`: others went before it."""

    def __init__(self, lane: Lane, *, waited: bool) -> None:
        self._lane: Lane | None = lane
        self.waited = waited
        self._began = monotonic()

    def end(self) -> None:
        """Give the place to the next; ending twice is ending once."""
        lane, self._lane = self._lane, None
        if lane is not None:
            lane.leave(monotonic() - self._began)


class Admission:
    """The lanes of all classes but health."""

    def __init__(self, settings: Settings) -> None:
        cores = os.cpu_count() or 1
        embedding = (1 if settings.embed_provider is EmbedProvider.ONNX else REMOTE_PLACES_PER_CORE) * cores
        places = {
            CostClass.LIGHT: settings.max_reads or max(8, 2 * cores),
            CostClass.SEARCH: settings.max_searches or embedding,
            CostClass.WRITE: settings.max_writes or embedding,
            CostClass.LONG: settings.max_long,
        }
        # A long one takes many seconds, so that nobody could wait for it in less.
        waits = {CostClass.LONG: settings.request_timeout_s / (2 * PATIENCE)}
        self.threads = sum(places.values()) + SPARE_THREADS
        self._lanes = {
            cost: Lane(cost, number, waits.get(cost, settings.queue_wait_s)) for cost, number in places.items()
        }

    def lane(self, cost: CostClass) -> Lane | None:
        """None for health, which always passes."""
        return self._lanes.get(cost)

    def close(self) -> None:
        """From now on whoever is not at work yet is refused with 503."""
        for lane in self._lanes.values():
            lane.close()

    def figures(self) -> Mapping[CostClass, LaneFigures]:
        return {cost: lane.figures() for cost, lane in self._lanes.items()}
