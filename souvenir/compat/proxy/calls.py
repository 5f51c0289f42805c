"""A call of a model: what is new in it, its context, and its answer.

Nothing here may fail the call: whatever happens, it goes on without memory.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Any

import structlog

from souvenir.compat.proxy.answers import HeardAnswer
from souvenir.compat.proxy.json_bodies import JsonBody
from souvenir.compat.proxy.kept_contexts import KeptContexts, Shown, policy_of
from souvenir.compat.proxy.places import Place
from souvenir.compat.proxy.wires import Turn, Wire
from souvenir.compat.proxy.wires.answers import turns_in
from souvenir.compat.proxy.wires.messages import MAX_CONTENT_CHARS, cut, shortened, storable
from souvenir.compat.proxy.wires.prefixes import KnownPrefixes, RequestState
from souvenir.conversations.context import ContextQuery
from souvenir.core.concurrency import deadline
from souvenir.core.errors import AccessLimited, SouvenirError
from souvenir.core.types import Scope
from souvenir.server.load_shedding import CostClass
from souvenir.server.service import Service

CONTEXT_TIMEOUT_S = 1.0
"""Maximum delay of a call by its context."""
ANY_QUESTION = "What is this about?"
"""Asked for the blocks of a call without a question, such as one with a picture only."""
DEADLINE_SHARE = 0.9
"""Share of it that the search gets."""
MAX_KEPT_ANSWERS = 10_000
"""Maximum number of answers whose session is known."""

_RESPONSE_ID = re.compile(r'"id"\s*:\s*"(resp[^"\\]{1,200})"')
"""The id of an answer, in its JSON and in each event of its stream that brings it whole."""

log = structlog.get_logger(__name__)


class AnsweredSessions:
    """The sessions of answers that the vendor stores, by the id that the next request continues. Thread-safe.

    An id is known to the agent and the key that received the answer only.
    """

    def __init__(self) -> None:
        self._sessions: OrderedDict[tuple[str, str, str], str] = OrderedDict()
        self._lock = Lock()

    def of(self, scope: Scope, answer_id: object) -> str | None:
        if not isinstance(answer_id, str):
            return None
        with self._lock:
            return self._sessions.get((scope.namespace, scope.actor, answer_id))

    def keep(self, place: Place, answer_id: str) -> None:
        key = place.scope.namespace, place.scope.actor, answer_id
        with self._lock:
            self._sessions[key] = place.session_id
            self._sessions.move_to_end(key)
            while len(self._sessions) > MAX_KEPT_ANSWERS:
                self._sessions.popitem(last=False)


class ModelCall:
    """:param body: The request. :param sent: Its values, with the name that the vendor gave the model.

    :param max_results: Returns the maximum number of messages and memories in the context, None for no limit, or
        raises `AccessLimited`; called on a thread.
    """

    def __init__(
        self,
        wire: Wire,
        body: JsonBody,
        sent: Mapping[str, Any],
        place: Place,
        turns: Sequence[Turn],
        prefixes: KnownPrefixes,
        max_results: Callable[[], int | None],
    ) -> None:
        self.place = place
        self._wire = wire
        self.size = len(body.content)
        self._request: tuple[JsonBody, Mapping[str, Any]] | None = (body, sent)
        self._max_results = max_results
        said = (turn.content for turn in reversed(turns) if turn.role == "user" and turn.content.strip())
        self._query = storable(cut(next(said, ""), MAX_CONTENT_CHARS))
        self.news = prefixes.take(place.conversation, turns)
        self.new_turns = tuple(shortened(turn) for turn in self.news.turns)

    async def shown(self, service: Service, caller: str, kept: KeptContexts) -> Shown | None:
        """Return the context; None if there is none in time."""
        before = kept.of(self.news)
        if before is not None and await service.threads.run(self._is_current, before, service):
            return before
        with deadline(CONTEXT_TIMEOUT_S, caller=caller, max_tokens=service.settings.max_request_tokens):
            asked = asyncio.ensure_future(self._ask(service, caller))
        # Not wait_for: the search ends at its own deadline, and keeps its place until then.
        await asyncio.wait((asked,), timeout=CONTEXT_TIMEOUT_S)
        if not asked.done():
            log.warning("proxied_call_without_context", agent=self.place.scope.namespace, reason="late")
            return None
        if (found := asked.result()) is not None:
            kept.keep(self.news, found)
        return found

    def request(self, shown: Shown | None) -> tuple[bytes, str]:
        """Return the request with the context in it, and what `CONTEXT_HEADER` says of it.

        To be called once, since the request is not kept.
        """
        if self._request is None:
            raise RuntimeError("The request was sent already")
        (body, sent), self._request = self._request, None
        if shown is None:
            return body.replaced(sent), "unavailable"
        if not (shown.stable or shown.tail):
            return body.replaced(sent), "none"
        try:
            return body.replaced(self._wire.placed(sent, shown.stable, shown.tail)), "added"
        except (ValueError, RecursionError) as error:
            log.warning("proxied_call_without_context", agent=self.place.scope.namespace, reason=type(error).__name__)
            return body.replaced(sent), "unavailable"

    def begin_answer(self) -> None:
        self.news.note(RequestState.ANSWERING)

    def answer(self, heard: HeardAnswer, sessions: AnsweredSessions) -> Sequence[Turn]:
        """Return the turns of the answer, and note that it was given."""
        text = heard.text()
        turns = tuple(shortened(turn) for turn in turns_in(self._wire, text, heard.content_type))
        if self._wire.name == "openai.responses" and (found := _RESPONSE_ID.search(text)) is not None:
            sessions.keep(self.place, found[1])
        if not turns:
            log.warning("proxied_answer_not_read", agent=self.place.scope.namespace)
        broken = not turns or any(turn.metadata.get("incomplete") for turn in turns)
        self.news.note(RequestState.ANSWERING if broken else RequestState.ANSWERED)
        return turns

    def _is_current(self, shown: Shown, service: Service) -> bool:
        try:
            return shown.max_results == self._max_results() and shown.is_current(service, self.place.scope)
        except SouvenirError:
            # What cannot be checked may have been deleted.
            return False

    async def _ask(self, service: Service, caller: str) -> Shown | None:
        query = ContextQuery(
            self._query or ANY_QUESTION,
            session_id=self.place.session_id,
            user=self.place.user,
            deadline_s=CONTEXT_TIMEOUT_S * DEADLINE_SHARE,
            agent_may_be_new=True,
        )

        def build() -> Shown:
            asked = replace(query, max_results=self._max_results())
            with service.engine.namespace(self.place.scope) as (connection, _):
                # Read before, so that a change meanwhile is noticed.
                policy = policy_of(connection, self.place.scope)
            shown = Shown.of(service.contexts.build(self.place.scope, asked), asked.max_results, policy)
            # Without a question, there are the blocks.
            return shown if self._query else shown.without_tail()

        try:
            places = service.admission.places[CostClass.SEARCH]
            return await places.run_part(caller, partial(service.threads.run, build))
        except AccessLimited:
            return Shown()
        except SouvenirError as error:
            log.warning("proxied_call_without_context", agent=self.place.scope.namespace, reason=error.code)
        except Exception as error:  # the boundary to the call, which goes on without memory
            log.error("proxied_context_failed", agent=self.place.scope.namespace, exc_info=error)
        return None
