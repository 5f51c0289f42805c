"""The context of an agent for one query: its blocks, and relevant messages and memories, as text.

Blocks are always included. Searches have a deadline; a part that is late or failed is named in `degraded`, so that it
cannot be mistaken for an empty result. Messages of the active session and items flagged with a hidden topic are
excluded.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache, partial
from hashlib import blake2b, sha256
from itertools import pairwise
from types import MappingProxyType
from typing import TypeVar

import structlog

from souvenir.conversations.agent_search import AgentSearchResult, AnyHit, merged
from souvenir.conversations.concurrent_parts import TimedParts, result_of
from souvenir.conversations.context_budget import MAX_MISFITS, Choice, Dropped, chosen, dropped_hits
from souvenir.conversations.context_shape import ContextShape, Form
from souvenir.conversations.context_text import (
    Excerpt,
    Layout,
    ResultLines,
    excerpts,
    outlined,
    part_shown,
    result_lines,
    stable_prefix,
    volatile_tail,
)
from souvenir.conversations.message_search import MessageHit, MessageQuery, MessageSearch
from souvenir.conversations.messages import Conversations
from souvenir.core.concurrency import Deadline, deadline, time_left
from souvenir.core.errors import DeadlineExceeded, SouvenirError
from souvenir.core.labels import SENSITIVE_TOPICS
from souvenir.core.settings import Settings
from souvenir.core.telemetry import MemoryOperation, Tracing, traced
from souvenir.core.text import recalled
from souvenir.core.types import (
    EvidenceLevel,
    Filters,
    Hit,
    JsonObject,
    Memory,
    MessageRole,
    Scope,
    SearchQuery,
    SearchResult,
    TimeUse,
)
from souvenir.memories.engine import MemoryEngine
from souvenir.privacy.policy import PrivacyPolicy
from souvenir.retrieval.relevance import evidence_of
from souvenir.store.messages import agents as agent_rows
from souvenir.store.messages import blocks as block_rows
from souvenir.store.messages.agents import require_agent
from souvenir.store.messages.blocks import Block
from souvenir.store.messages.messages import Message

TOKEN_BYTES = 8
"""Length of the random token in a fence; too long to be guessed."""

T = TypeVar("T")
AHit = TypeVar("AHit", MessageHit, Hit)

DEFAULT_MAX_TOKENS = 2_000
DEFAULT_DEADLINE_S = 10.0
"""A client that waits to call its model tolerates no longer delay."""

MAX_MESSAGES, MAX_MEMORIES = 200, 100
"""Number of messages and of memories that are found for a context; its text shows those that fit."""

LINE_TOKENS = 25
"""Tokens of a short result. Only as many are searched for as fill the budget at this length, and `MAX_MISFITS` more."""

ANSWERS_WITH_QUESTION = 20
"""Number of best messages whose preceding question is looked up; the budget for questions hardly has room for more."""

LEAST_MATCH = 0.15
"""How well a hit must match if nothing found is relevant; less, the more relevant the search judges what it found.
Chosen on plain questions: at .2, a fifth of the paraphrased answers are lost; at .12, few contexts are empty."""

LEXICAL_SHARE = 0.5
"""Weight of the words in a match, whose other measure is the cosine."""

DOUBTS: Mapping[EvidenceLevel, str] = MappingProxyType(
    {
        EvidenceLevel.NONE: "Nothing that is stored seems to be about the question. What came closest:",
        EvidenceLevel.WEAK: "What follows may not be about the question.",
    }
)
"""The first line of the found part, unless the evidence is strong."""

MESSAGES, MEMORIES, DEADLINE, BLOCKS_OVER_BUDGET = "messages", "memories", "deadline", "blocks_over_budget"

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ContextQuery:
    """A request for the context of a prompt.

    :param session_id: The active session, whose messages are excluded.
    :param user: Only messages of conversations with this user.
    :param max_tokens: Limit of the text, by the embedding model's tokenizer.
    :param exclude_topics: Sensitive topics to exclude, in addition to those that the agent's policy hides.
    :param min_score: Minimum score of a message or memory; None for no limit.
    :param max_results: Limit for messages and memories together, then without preceding questions; None for no limit.
    :param agent_may_be_new: If true, a namespace that is no agent yet has a context of memories only.
    :param shape: `AUTO` reads it from the text.
    :param explain: If true, the lines of each result are found, and what was left out is listed.
    :param as_of: The context as it was then; None for now. The agent's policy is the present one.
    """

    text: str
    session_id: str | None = None
    user: str | None = None
    max_tokens: int = DEFAULT_MAX_TOKENS
    deadline_s: float = DEFAULT_DEADLINE_S
    exclude_topics: tuple[str, ...] = ()
    min_score: float | None = None
    max_results: int | None = None
    agent_may_be_new: bool = False
    shape: ContextShape = ContextShape.AUTO
    explain: bool = False
    as_of: datetime | None = None

    @property
    def form(self) -> Form:
        return Form.of(self.text, self.shape)


@dataclass(frozen=True, slots=True)
class Context:
    """`degraded` names the arms and parts that could not run or were late; empty if all succeeded.

    :param shown: The messages and memories that are in the text, best first.
    :param records: All that the text shows besides blocks: those, and the questions before them.
    :param relevance: As in `SearchResult`: the higher one of the two kinds.
    :param stable_prefix: The blocks as text; `volatile_tail` follows it.
    :param lines: On request, where the text shows each message and memory, from the first line to the last.
    """

    form: Form
    blocks: Sequence[Block]
    stable_prefix: str
    volatile_tail: str
    tokens: int
    relevance: float
    evidence: EvidenceLevel
    degraded: Sequence[str]
    dropped: Dropped
    shown: Sequence[AnyHit]
    records: Sequence[Memory | Message]
    lines: Sequence[ResultLines] | None = None

    @property
    def messages(self) -> Sequence[MessageHit]:
        return [hit for hit in self.shown if isinstance(hit, MessageHit)]

    @property
    def memories(self) -> Sequence[Hit]:
        return [hit for hit in self.shown if isinstance(hit, Hit)]

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
    """The messages found, those that hardly match, and the question before an answer, by the answer's id."""

    found: MessageSearch
    distant: Sequence[MessageHit] = ()
    questions: Mapping[int, Message] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Recalled:
    """The memories found, and those that hardly match."""

    found: SearchResult
    distant: Sequence[Hit] = ()


class Contexts:
    """Contexts of the agents of one engine. Thread-safe.

    :param max_messages: Maximum number of messages found for one context; None: `MAX_MESSAGES`.
    :param max_memories: Maximum number of memories; None: `MAX_MEMORIES`.
    """

    def __init__(
        self,
        engine: MemoryEngine,
        conversations: Conversations,
        *,
        max_messages: int | None = None,
        max_memories: int | None = None,
    ) -> None:
        self._engine = engine
        self._conversations = conversations
        self._max_messages = MAX_MESSAGES if max_messages is None else max_messages
        self._max_memories = MAX_MEMORIES if max_memories is None else max_memories
        self._in_time = TimedParts()
        self._secret = secrets.token_bytes(32)

    @classmethod
    def of(cls, engine: MemoryEngine, conversations: Conversations, settings: Settings) -> Contexts:
        max_messages, max_memories = settings.max_context_messages, settings.max_context_memories
        return cls(engine, conversations, max_messages=max_messages, max_memories=max_memories)

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
            memories = _awaited(MEMORIES, memories_part, until, missing) or _Recalled(SearchResult(query.text, ()))
        return self._assembled(query, certain.blocks, talks, memories, missing)

    # --- parts -------------------------------------------------------------------------------------------------

    def _known(self, scope: Scope, query: ContextQuery) -> _KnownContext:
        with self._engine.namespace(scope) as (connection, _):
            if query.agent_may_be_new and agent_rows.find(connection, scope.namespace) is None:
                return _KnownContext(None, (), frozenset(query.exclude_topics))
            agent = require_agent(connection, scope)
            blocks, _ = block_rows.page(connection, agent.namespace_id, as_of=query.as_of)
        hidden = frozenset([*PrivacyPolicy.of_json(agent.policy).hidden_topics, *query.exclude_topics])
        return _KnownContext(agent.namespace_id, blocks, hidden)

    def _messages(self, scope: Scope, query: ContextQuery, certain: _KnownContext) -> _Talks:
        if not self._max_messages or certain.namespace_id is None:
            return _Talks(MessageSearch(()))
        wanted = MessageQuery(
            query.text,
            limit=min(self._max_messages, _most_results(query)),
            user=query.user,
            role=MessageRole.USER if query.form.of_users else None,
            exclude_session_id=query.session_id,
            without_topics=tuple(certain.hidden_topics),
            min_score=query.min_score,
        )
        search = self._conversations.search(scope, wanted, query.as_of)
        # The search leaves out what is flagged now; what it found may have been flagged then.
        hits = [hit for hit in search.hits if not _is_flagged(hit.message.metadata, certain.hidden_topics)]
        near, distant = _by_relevance(query, hits, search.relevance, search.time)
        found = replace(search, hits=tuple(near))
        best = [hit.message for hit in found.hits[:ANSWERS_WITH_QUESTION]]
        if query.max_results is not None or query.form.is_outline or not best:
            return _Talks(found, distant)
        turns = self._conversations.neighbours(scope, best, query.as_of, before=1, after=0)
        questions = _questions([turn for turn in turns if _may_be_shown(turn, query.user, certain.hidden_topics)])
        return _Talks(found, distant, questions)

    def _memories(self, scope: Scope, query: ContextQuery, certain: _KnownContext) -> _Recalled:
        if not self._max_memories:
            return _Recalled(SearchResult(query.text, ()))
        hidden = self._engine.screening.flagged_memories(scope, certain.hidden_topics)
        filters = Filters(without=hidden)
        count = min(self._max_memories, _most_results(query))
        wanted = SearchQuery(query.text, count, filters=filters, min_score=query.min_score)
        found = self._engine.search(scope, wanted, query.as_of)
        hits = [
            replace(hit, memory=hit.memory.without_links_to(hidden))
            for hit in found.hits
            if not _is_flagged(hit.memory.metadata, certain.hidden_topics)
        ]
        near, distant = _by_relevance(query, hits, found.relevance, found.time)
        return _Recalled(replace(found, hits=tuple(near)), distant)

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
        memories: _Recalled,
        missing: Sequence[str],
    ) -> Context:
        prefix = stable_prefix(blocks, self._token_of)
        found = merged(talks.found, memories.found, query.max_results)
        tail, shown, tokens = self._fitted(query, prefix, found, talks.questions)
        over = [BLOCKS_OVER_BUDGET] if tokens > query.max_tokens else []
        hits = [one.hit for one in shown]
        dropped, lines = Dropped.of(found.hits, hits), None
        if query.explain:
            distant: list[AnyHit] = [*talks.distant, *memories.distant]
            dropped = replace(dropped, listed=dropped_hits(found.hits, hits, distant, query.max_results))
            note = DOUBTS.get(found.evidence, "")
            lines = result_lines(prefix, *_records(shown), layout=self._layout(query), note=note)
        return Context(
            form=query.form,
            blocks=blocks,
            stable_prefix=prefix,
            volatile_tail=tail,
            tokens=tokens,
            relevance=found.relevance,
            evidence=found.evidence,
            degraded=tuple(dict.fromkeys([*found.degraded, *missing, *over])),
            dropped=dropped,
            shown=hits,
            records=[
                record for one in shown for record in ([one.hit.memory] if isinstance(one.hit, Hit) else one.turns)
            ],
            lines=lines,
        )

    def _fitted(
        self, query: ContextQuery, prefix: str, found: AgentSearchResult, questions: Mapping[int, Message]
    ) -> tuple[str, Sequence[Choice], int]:
        """Return the text of the results that fit next to the prefix, these results, and the tokens of the whole."""
        token, note = secrets.token_hex(TOKEN_BYTES), DOUBTS.get(found.evidence, "")
        layout = self._layout(query)
        left = query.max_tokens - self._tokens(prefix) - self._tokens(recalled(note, token))
        shown = chosen(found.hits, questions, layout, self._tokens, max_tokens=left)
        while True:
            tail = volatile_tail(*_records(shown), follows=bool(prefix), layout=layout, note=note, token=token)
            tokens = self._tokens(prefix + tail)
            if not shown or tokens <= query.max_tokens:
                return tail, shown, tokens
            shown.pop()

    def _layout(self, query: ContextQuery) -> Layout:
        if query.form.is_outline:
            return Layout(outlined, gap="")
        terms_of = self._engine.analyser.terms
        return Layout(cache(partial(part_shown, asked=frozenset(terms_of(query.text)), terms_of=terms_of)))

    def _tokens(self, text: str) -> int:
        return self._engine.models.serving.embedder.token_count(text)


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


def _records(shown: Sequence[Choice]) -> tuple[list[Memory], list[Excerpt]]:
    """Return the memories and the turns that are shown."""
    turns = {turn.id: turn for one in shown for turn in one.turns}
    return [one.hit.memory for one in shown if isinstance(one.hit, Hit)], excerpts(turns.values())


def _most_results(query: ContextQuery) -> int:
    return query.max_tokens // LINE_TOKENS + MAX_MISFITS


def _by_relevance(
    query: ContextQuery, hits: Iterable[AHit], relevance: float, time: TimeUse | None
) -> tuple[list[AHit], list[AHit]]:
    """Return the hits that match the query well enough, by its words or its meaning, and the others.

    All, if it names their period, or if it asks for an outline of what is mentioned at all: such a question says little
    of the single messages that it concerns.
    """
    whole_period = time is not None and time.filtered is not None
    whole_course = query.form.is_outline and evidence_of(relevance) is not EvidenceLevel.NONE
    least = LEAST_MATCH * (1.0 - relevance)
    near, distant = list[AHit](), list[AHit]()
    for hit in hits:
        matches = max(hit.parts.similarity, LEXICAL_SHARE * hit.parts.lexical) >= least
        (near if whole_period or whole_course or matches else distant).append(hit)
    return near, distant


def _questions(turns: Sequence[Message]) -> Mapping[int, Message]:
    """Return the question right before each turn, by the turn's id, if another speaker asked it.

    :param turns: Session by session, in order.
    """
    return {
        later.id: earlier
        for earlier, later in pairwise(turns)
        if (earlier.session_row, earlier.position + 1) == (later.session_row, later.position)
        and (earlier.role, earlier.speaker) != (later.role, later.speaker)
        and earlier.content.rstrip().endswith(("?", "？"))
    }


def _may_be_shown(turn: Message, user: str | None, hidden_topics: frozenset[str]) -> bool:
    """Return True unless the filters of the search exclude this neighbour of a result."""
    of_others = user is not None and turn.user not in (None, user)
    return not of_others and not _is_flagged(turn.metadata, hidden_topics)


def _is_flagged(metadata: JsonObject | None, hidden_topics: frozenset[str]) -> bool:
    topics = (metadata or {}).get(SENSITIVE_TOPICS) or ()
    return not hidden_topics.isdisjoint([topics] if isinstance(topics, str) else topics)
