"""The context of an agent for one query: its blocks, and relevant messages and memories, as text.

Blocks are always included. Searches have a deadline; a part that is late or failed is named in `degraded`, so that it
cannot be mistaken for an empty result. Messages of the active session and items flagged with a hidden topic are
excluded.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache, partial
from hashlib import blake2b, sha256
from typing import TypeVar

import structlog

from souvenir.conversations.agent_search import merged
from souvenir.conversations.concurrent_parts import TimedParts, result_of
from souvenir.conversations.context_text import (
    NEIGHBOUR_TURNS,
    Excerpt,
    excerpts,
    fitted,
    part_shown,
    stable_prefix,
    volatile_tail,
)
from souvenir.conversations.messages import Conversations, MessageHit, MessageQuery, MessageSearch
from souvenir.core.concurrency import Deadline, deadline, time_left
from souvenir.core.errors import DeadlineExceeded, SouvenirError
from souvenir.core.labels import SENSITIVE_TOPICS
from souvenir.core.telemetry import MemoryOperation, Tracing, traced
from souvenir.core.types import EvidenceLevel, Filters, Hit, Memory, PassageKind, Scope, SearchQuery, SearchResult
from souvenir.memories.engine import MemoryEngine
from souvenir.privacy.policy import PrivacyPolicy
from souvenir.store.messages import agents as agent_rows
from souvenir.store.messages import blocks as block_rows
from souvenir.store.messages.agents import require_agent
from souvenir.store.messages.blocks import Block
from souvenir.store.messages.messages import Message
from souvenir.store.privacy import flagged

TOKEN_BYTES = 8
"""Length of the random token in a fence; too long to be guessed."""

T = TypeVar("T")

DEFAULT_MAX_TOKENS = 2_000
DEFAULT_DEADLINE_S = 10.0
"""A client that waits to call its model tolerates no longer delay."""

MAX_MEMORIES = 5

MESSAGES, MEMORIES, DEADLINE, BLOCKS_OVER_BUDGET = "messages", "memories", "deadline", "blocks_over_budget"

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ContextQuery:
    """A request for the context of a prompt.

    :param session_id: The active session, whose messages are excluded.
    :param user: Only messages of conversations with this user.
    :param max_tokens: Limit of the text, by the embedding model's tokenizer.
    :param exclude_topics: Sensitive topics to exclude, in addition to those that the agent's policy hides.
    :param max_results: Limit for messages and memories together, then without surrounding turns; None for no limit.
    :param agent_may_be_new: If true, a namespace that is no agent yet has a context of memories only.
    """

    text: str
    session_id: str | None = None
    user: str | None = None
    max_tokens: int = DEFAULT_MAX_TOKENS
    deadline_s: float = DEFAULT_DEADLINE_S
    exclude_topics: tuple[str, ...] = ()
    max_results: int | None = None
    agent_may_be_new: bool = False


@dataclass(frozen=True, slots=True)
class Dropped:
    """The number of results that are not in the text because the budget is used up."""

    messages: int
    memories: int


@dataclass(frozen=True, slots=True)
class Context:
    """`degraded` names the arms and parts that could not run or were late; empty if all succeeded.

    :param messages: Best first, like `memories`.
    :param shown: The messages and memories that are in the text, best first.
    :param relevance: As in `SearchResult`: the higher one of the two kinds.
    :param stable_prefix: The blocks as text; `volatile_tail` follows it.
    """

    blocks: Sequence[Block]
    messages: Sequence[MessageHit]
    memories: Sequence[Hit]
    stable_prefix: str
    volatile_tail: str
    tokens: int
    relevance: float
    evidence: EvidenceLevel
    degraded: Sequence[str]
    dropped: Dropped
    shown: Sequence[MessageHit | Hit]

    @property
    def text(self) -> str:
        return self.stable_prefix + self.volatile_tail

    @property
    def stable_etag(self) -> str:
        """A digest of the prefix."""
        return sha256(self.stable_prefix.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class _KnownContext:
    """The parts of a context that need no search.

    :param namespace_id: None if the namespace is no agent, so that it has no messages either.
    """

    namespace_id: int | None
    blocks: Sequence[Block]
    hidden_topics: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Talks:
    """The messages found, and the turns around them."""

    found: MessageSearch
    around: Sequence[Message] = ()


class Contexts:
    """Contexts of the agents of one engine. Thread-safe.

    :param max_messages: Maximum number of messages in one context.
    """

    def __init__(self, engine: MemoryEngine, conversations: Conversations, *, max_messages: int) -> None:
        self._engine = engine
        self._conversations = conversations
        self._max_messages = max_messages
        self._in_time = TimedParts()
        self._secret = secrets.token_bytes(32)

    @property
    def tracing(self) -> Tracing:
        return self._engine.tracing

    @traced(MemoryOperation.SEARCH, records=lambda context: len(context.messages) + len(context.memories))
    def build(self, scope: Scope, query: ContextQuery) -> Context:
        """Build the context for a query, at the latest shortly after its deadline.

        :raises AgentNotFound: If there is no such agent.
        :raises DeadlineExceeded: If not even the blocks could be read in time.
        """
        with deadline(time_left(query.deadline_s)) as until:
            known_part = self._in_time.start("context-blocks", partial(self._known, scope, query))
            certain = result_of(known_part, until)
            messages_part = self._in_time.start("context-messages", partial(self._messages, scope, query, certain))
            memories_part = self._in_time.start("context-memories", partial(self._memories, scope, query, certain))
            missing: list[str] = []
            talks = _awaited(MESSAGES, messages_part, until, missing) or _Talks(MessageSearch(()))
            memories = _awaited(MEMORIES, memories_part, until, missing) or SearchResult(query.text, ())
        return self._assembled(query, certain.blocks, talks, memories, missing)

    # --- parts -------------------------------------------------------------------------------------------------

    def _known(self, scope: Scope, query: ContextQuery) -> _KnownContext:
        with self._engine.namespace(scope) as (connection, _):
            if query.agent_may_be_new and agent_rows.find(connection, scope.namespace) is None:
                return _KnownContext(None, (), frozenset(query.exclude_topics))
            agent = require_agent(connection, scope)
            blocks, _ = block_rows.page(connection, agent.namespace_id)
        hidden = frozenset([*PrivacyPolicy.of_json(agent.policy).hidden_topics, *query.exclude_topics])
        return _KnownContext(agent.namespace_id, blocks, hidden)

    def _messages(self, scope: Scope, query: ContextQuery, certain: _KnownContext) -> _Talks:
        if not self._max_messages or certain.namespace_id is None:
            return _Talks(MessageSearch(()))
        wanted = MessageQuery(
            query.text,
            limit=self._max_messages,
            user=query.user,
            exclude_session_id=query.session_id,
            without_topics=tuple(certain.hidden_topics),
        )
        found = self._conversations.search(scope, wanted)
        chosen = [hit.message for hit in found.hits]
        around = (
            self._conversations.neighbours(scope, chosen, before=NEIGHBOUR_TURNS, after=NEIGHBOUR_TURNS)
            if chosen
            else ()
        )
        return _Talks(found, [turn for turn in around if _may_be_shown(turn, query.user, certain.hidden_topics)])

    def _memories(self, scope: Scope, query: ContextQuery, certain: _KnownContext) -> SearchResult:
        with self._engine.namespace(scope) as (connection, namespace):
            hidden = (
                ()
                if namespace is None
                else flagged(connection, PassageKind.MEMORY, namespace.id, certain.hidden_topics)
            )
        filters = Filters(without=tuple(hidden))
        return self._engine.search(scope, SearchQuery(query.text, MAX_MEMORIES, filters=filters))

    # --- the whole ---------------------------------------------------------------------------------------------

    def _token_of(self, text: str) -> str:
        """Return the token of the fence around blocks: the same for the same text, so that prompts can be cached.

        It depends on a secret of this process and on the text itself, so that no block can contain it.
        """
        return blake2b(text.encode(), key=self._secret, digest_size=TOKEN_BYTES).hexdigest()

    def _assembled(
        self,
        query: ContextQuery,
        blocks: Sequence[Block],
        talks: _Talks,
        memories: SearchResult,
        missing: Sequence[str],
    ) -> Context:
        prefix, token = stable_prefix(blocks, self._token_of), secrets.token_hex(TOKEN_BYTES)
        together = merged(talks.found, memories, query.max_results)
        found = together.hits
        messages_found = tuple(hit for hit in found if isinstance(hit, MessageHit))
        memories_found = tuple(hit for hit in found if isinstance(hit, Hit))
        around = talks.around if query.max_results is None else _only(messages_found, talks.around)

        def best(kept: int) -> tuple[list[Memory], list[Excerpt]]:
            messages = [hit.message for hit in found[:kept] if isinstance(hit, MessageHit)]
            return [hit.memory for hit in found[:kept] if isinstance(hit, Hit)], excerpts(messages, around)

        terms_of = self._engine.analyser.terms
        shorten = cache(partial(part_shown, asked=frozenset(terms_of(query.text)), terms_of=terms_of))

        def tail_of(kept: int) -> str:
            return volatile_tail(*best(kept), follows=bool(prefix), shorten=shorten, token=token)

        done = fitted(prefix, tail_of, len(found), self._tokens, max_tokens=query.max_tokens)
        over = [BLOCKS_OVER_BUDGET] if done.tokens > query.max_tokens else []
        return Context(
            blocks=blocks,
            messages=messages_found,
            memories=memories_found,
            stable_prefix=prefix,
            volatile_tail=done.tail,
            tokens=done.tokens,
            relevance=together.relevance,
            evidence=together.evidence,
            degraded=tuple(dict.fromkeys([*together.degraded, *missing, *over])),
            dropped=_dropped(messages_found, memories_found, *best(done.kept)),
            shown=found[: done.kept],
        )

    def _tokens(self, text: str) -> int:
        return len(self._engine.models.serving.embedder.token_offsets(text))


def _awaited(name: str, part: Future[T], until: Deadline, missing: list[str]) -> T | None:
    """Return the result of a part; the name of a failed or late one is added to `missing`, which callers see."""
    try:
        return result_of(part, until)
    except DeadlineExceeded:
        missing += [name, DEADLINE]
    except SouvenirError as error:
        log.warning("context_part_failed", part=name, code=error.code, reason=error.message)
        missing.append(name)
    except Exception:  # noqa: BLE001 - a part's boundary: `TimedParts` logged it, and the blocks are of use without it
        missing.append(name)
    return None


def _only(found: Sequence[MessageHit], turns: Sequence[Message]) -> Sequence[Message]:
    """Return the turns that are results themselves."""
    ids = {hit.message.id for hit in found}
    return [turn for turn in turns if turn.id in ids]


def _dropped(
    messages: Sequence[MessageHit], memories: Sequence[Hit], memories_shown: Sequence[Memory], shown: Sequence[Excerpt]
) -> Dropped:
    """Count the results that did not fit; a found turn in the excerpt of another one was shown."""
    in_text = {turn.id for run in shown for turn in run}
    left_out = sum(hit.message.id not in in_text for hit in messages)
    return Dropped(left_out, len(memories) - len(memories_shown))


def _may_be_shown(turn: Message, user: str | None, hidden_topics: frozenset[str]) -> bool:
    """Return True unless the filters of the search exclude this neighbour of a result."""
    of_others = user is not None and turn.user not in (None, user)
    topics = (turn.metadata or {}).get(SENSITIVE_TOPICS) or ()
    return not of_others and hidden_topics.isdisjoint([topics] if isinstance(topics, str) else topics)
