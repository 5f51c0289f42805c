"""State machine: after any sequence of changes and crashes, search equals the reference search.

After every step the database and the indexes must agree, and two searches of each agent, one straight from the index
and one as callers ask it, must give the slow search's ranking and scores for what is stored by then.
tests/store/postgres drives the same machine with three replicas on PostgreSQL.
"""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from pydantic import SecretStr

from souvenir.conversations.message_search import MessageQuery
from souvenir.conversations.messages import Conversations
from souvenir.core.settings import Settings
from souvenir.core.types import Filters, MessageRole, PassageKind, Scope, SearchQuery, TurnFilter, Weights
from souvenir.index.analyser import Analyser
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.removals import Removals
from souvenir.store.messages.messages import Message, MessageDraft, MessageFilter
from souvenir.store.selection import Chooses
from tests.fake_embedder import FakeTokenEmbedder
from tests.reference.agreement import TOLERANCE, assert_equals_reference
from tests.reference.passages import SlowPassage
from tests.reference.search import ReferenceSearch
from tests.thoroughness import sampled

ANN, BEN = Scope("ann_agent"), Scope("ben_agent")
MAY = datetime(2023, 5, 8, 12, tzinfo=UTC)
NOW = MAY + timedelta(days=400)
MANY = 10_000

WORDS = (
    "garden bread violin harbour winter teacher engine mountain letter river kitchen pianist ticket planted planting "
    "fly.io v2.1 getUserName the of in 東京都 café gardens Berlin Lisbon Ann Ben Miller Zoe O'Brien "
    "yesterday May 2021 three 12, two"
).split()
RARE = [f"{first}{second}o" for first in ("bam", "dul", "fig", "kov", "nex", "pyr") for second in ("tag", "ril", "sum")]
SLIPS = ["gaden", "mountian", "kitchn", "Millre", "zzzz", "???"]
OPENINGS = [
    *("When did", "how long was", "Who said", "where is", "What year was", "Which", "", "", ""),
    *("What did you recommend about", "Can you summarize", "in May 2023", "last week", "two days before May 9"),
]
ENDS = ["", "", ".", "!", "?", "? ", " [a photo of a cat]", "? [picture: Is it? ]", "]", "？"]
SPEAKERS = [None, None, None, "Ann", "Ben", "Ann Miller", "The", "Zoë O'Brien"]
SESSIONS = ["s1", "s1", "s1", "s2", None]
USERS = [None, None, "mia", "noa"]


def make_sentence(chance: Random, most: int) -> str:
    """Now and then with a word that no other has, so that what neighbours lend can be told apart."""
    words = chance.choices(WORDS, k=chance.randint(1, most))
    return " ".join([*words, *chance.sample(RARE, k=chance.randint(0, 1))]) + chance.choice(ENDS)


def make_texts(chance: Random) -> list[str]:
    """Short ones, and some that chunks, windows and the longest turn of a talk cut differently."""
    short = [make_sentence(chance, 12) for _ in range(30)]
    long = [
        chance.choice([". ", "\n", "? ", ": "]).join(make_sentence(chance, 16) for _ in range(size))
        for size in (6, 8, 9, 10, 12, 14, 20, 40)
    ]
    return [*short, *long, " ".join(chance.choices(WORDS, k=90)), "the of in", "?!"]


TEXTS = make_texts(Random(1))


def make_query(chance: Random) -> SearchQuery:
    words = chance.choices([*WORDS, *SLIPS, *RARE], k=chance.randint(1, 4))
    return SearchQuery(
        text=f"{chance.choice(OPENINGS)} {' '.join(words)}{chance.choice(['', '?'])}".strip(),
        top_k=chance.choice([1, 3, 50]),
        hybrid=chance.random() < 0.85,
        filters=Filters(
            since=chance.choice([None, None, MAY + timedelta(days=1)]),
            until=chance.choice([None, None, MAY + timedelta(days=2)]),
        ),
        weights=Weights(
            vector=chance.choice([0.7, 0.7, 0.0, 0.4, 1.0]),
            recency=chance.choice([0.0, 0.0, 0.3]),
            confidence=chance.choice([0.0, 0.0, 0.2]),
            role=chance.choice([None, None, None, 0.0, 1.0, -0.5]),
        ),
        # No cosine that two of these texts can have.
        threshold=chance.choice([None, None, None, 0.1234]),
        now=NOW,
        explain=chance.random() < 0.3,
        auto_intent=chance.random() < 0.8,
    )


QUERIES = [make_query(Random(number)) for number in range(400)]

# Few draws a step, so that a run has room for many steps.
scopes = st.sampled_from([ANN, ANN, ANN, BEN])
texts = st.sampled_from(TEXTS)
numbers = st.integers(0, 30)
drafts = st.builds(
    MessageDraft,
    role=st.sampled_from([MessageRole.USER, MessageRole.USER, MessageRole.ASSISTANT, MessageRole.SYSTEM]),
    content=texts,
    session_id=st.sampled_from(SESSIONS),
    user=st.sampled_from(USERS),
    speaker=st.sampled_from(SPEAKERS),
    created_at=st.none() | st.sampled_from([MAY + timedelta(days=days) for days in range(5)]),
)


def of_agent(scope: Scope, said: list[MessageDraft]) -> list[MessageDraft]:
    """Nobody has a name who talks with Ben's agent, so that all of its messages are of a chat."""
    return said if scope is ANN else [replace(draft, speaker=None) for draft in said]


def of_turn(query: SearchQuery, told: Message | None, number: int) -> SearchQuery:
    """The query, now and then only of some of the turns."""
    if told is None or number % 2:
        return query
    turn = [
        TurnFilter(session_id=told.session_row),
        TurnFilter(not_session_id=told.session_row, role=MessageRole.USER),
        TurnFilter(user_id=told.user_row),
        TurnFilter(role=told.role),
    ][number // 2 % 4]
    return replace(query, filters=replace(query.filters, turn=turn, without=(told.id,)))


class ConversationMachine(RuleBasedStateMachine):
    """What is stored is read from the database, whose rows other tests hold; the slow search ranks it."""

    def __init__(self) -> None:
        super().__init__()
        self.opened = ExitStack()
        self.folders = 0
        self.embedder = FakeTokenEmbedder()
        self.reference = ReferenceSearch(self.embedder, Analyser())

    @initialize(
        roomy=st.booleans(),
        said=st.lists(drafts, min_size=8, max_size=16),
        first_query=st.integers(0, len(QUERIES) - 1),
    )
    def start(self, roomy: bool, said: list[MessageDraft], first_query: int) -> None:
        self.queries = count(first_query)
        self.root = Path(self.opened.enter_context(TemporaryDirectory(prefix="souvenir-test-")))
        self.data_dir = self.root / "data"
        self.open(roomy)
        self.opened.callback(lambda: self.engine.close())  # noqa: PLW0108 - a restart opens another
        for scope in (ANN, BEN):
            self.say(scope, said)

    def open(self, roomy: bool) -> None:
        """Without room, an agent's index is dropped as soon as that of the other one is loaded."""
        settings = Settings(data_dir=self.data_dir, database_url=self.database_url)
        if not roomy:
            settings = settings.model_copy(update={"index_memory_mb": 0})
        self.engine = MemoryEngine.open(settings, self.embedder)
        self.conversations = Conversations(self.engine)
        self.removals = Removals(self.engine, on_jobs_gone=lambda: None)

    def teardown(self) -> None:
        self.opened.close()

    @property
    def database_url(self) -> SecretStr | None:
        """The database in PostgreSQL, instead of a file."""
        return None

    def stored(self, scope: Scope) -> list[Message]:
        return list(self.conversations.page(scope, MessageFilter(), limit=MANY)[0])

    def one_of(self, scope: Scope, number: int) -> Message | None:
        """Of the same messages the same number chooses the same one."""
        stored = sorted(self.stored(scope), key=lambda one: one.id)
        return stored[number % len(stored)] if stored else None

    # --- what is done ----------------------------------------------------------------------------------------------

    @rule(scope=scopes, said=st.lists(drafts, min_size=1, max_size=4))
    def say(self, scope: Scope, said: list[MessageDraft]) -> None:
        self.conversations.add(scope, of_agent(scope, said))

    @rule(scope=scopes, said=st.lists(drafts, min_size=1, max_size=2), session=st.sampled_from(["s1", "s2"]))
    def say_unindexed(self, scope: Scope, said: list[MessageDraft], session: str) -> None:
        self.conversations.append(scope, session, of_agent(scope, said))

    @rule(scope=scopes)
    def index_pending(self, scope: Scope) -> None:
        self.conversations.index_pending(scope)

    @rule(scope=scopes, number=numbers, content=texts)
    def edit(self, scope: Scope, number: int, content: str) -> None:
        message = self.one_of(scope, number)
        if message is not None:
            self.conversations.edit(scope, message.uid, content=content)

    @rule(
        scope=scopes, number=numbers, chooses=st.sampled_from([Chooses.MESSAGE] * 4 + [Chooses.SESSION, Chooses.USER])
    )
    def remove(self, scope: Scope, number: int, chooses: Chooses) -> None:
        message = self.one_of(scope, number)
        if message is None:
            return
        name = {Chooses.MESSAGE: message.uid, Chooses.SESSION: message.session_id, Chooses.USER: message.user}[chooses]
        if name is not None:
            self.removals.remove(scope, chooses, name)
            assert message not in self.stored(scope)

    @rule()
    def snapshot(self) -> None:
        self.engine.snapshot()

    @rule(roomy=st.booleans())
    def restart(self, roomy: bool) -> None:
        self.engine.close()
        self.open(roomy)

    @rule(roomy=st.booleans())
    def crash(self, roomy: bool) -> None:
        """Go on with the files as they lie there while the engine is open: an older snapshot, and what came since."""
        self.folders += 1
        copy = self.root / f"data{self.folders}"
        shutil.copytree(self.data_dir, copy, ignore=shutil.ignore_patterns("*.partial"))
        self.engine.close()
        self.data_dir = copy
        self.open(roomy)

    # --- what always holds -----------------------------------------------------------------------------------------

    @invariant()
    def the_database_and_the_indexes_agree(self) -> None:
        assert list(self.engine.check()) == []

    @invariant()
    def messages_are_found_as_the_slow_search_finds_them(self) -> None:
        """Other queries at every step: a run asks many of them, and Hypothesis chooses only the first."""
        for scope in (ANN, BEN):
            number = next(self.queries)
            stored = sorted(self.stored(scope), key=lambda one: one.id)
            passages = self.reference.passages.of_messages(stored)
            told = stored[number % len(stored)] if stored else None
            self.recall(scope, passages, of_turn(QUERIES[number % len(QUERIES)], told, number))
            self.ask(scope, stored, passages, QUERIES[(number + 1) % len(QUERIES)], told, number)

    def recall(self, scope: Scope, passages: list[SlowPassage], query: SearchQuery) -> None:
        found = self.engine.recall(scope, PassageKind.MESSAGE, query)
        assert found is not None
        expected = self.reference.rank(passages, query, NOW)
        assert_equals_reference(found, expected, query.top_k)
        for ranked in found.ranked if query.explain and query.hybrid else ():
            parts = found.score_parts(ranked)
            total = sum(term.idf for term in parts.terms)
            lexical = sum(term.idf * term.weight for term in parts.terms) / total if total else 0.0
            assert parts.lexical == pytest.approx(lexical, abs=TOLERANCE)

    def ask(
        self,
        scope: Scope,
        stored: list[Message],
        passages: list[SlowPassage],
        query: SearchQuery,
        told: Message | None,
        number: int,
    ) -> None:
        """As callers ask: by the names of sessions and users."""
        asked = MessageQuery(
            query.text,
            query.top_k,
            since=query.filters.since,
            until=query.filters.until,
            auto_intent=query.auto_intent,
            now=NOW,
        )
        filters = query.filters
        if told is not None and number % 3 == 0:
            asked = replace(asked, session_id=told.session_id, role=told.role)
            filters = replace(filters, turn=TurnFilter(session_id=told.session_row, role=told.role))
        elif told is not None and number % 3 == 1:
            asked = replace(asked, exclude_session_id=told.session_id, user=told.user)
            filters = replace(filters, turn=TurnFilter(not_session_id=told.session_row, user_id=told.user_row))
        found = self.conversations.search(scope, asked)
        plain = SearchQuery(query.text, query.top_k, filters=filters, auto_intent=query.auto_intent)
        expected = self.reference.rank(passages, plain, NOW)
        assert found.degraded == ()
        score_of = {hit.owner_id: hit.score for hit in expected}
        scores = [hit.parts.raw_score for hit in found.hits]
        assert scores == pytest.approx([hit.score for hit in expected[: query.top_k]], abs=TOLERANCE)
        assert scores == pytest.approx([score_of[hit.message.id] for hit in found.hits], abs=TOLERANCE)
        by_id = {message.id: message for message in stored}
        assert [hit.message for hit in found.hits] == [by_id[hit.message.id] for hit in found.hits]


pytestmark = pytest.mark.sqlite_only(reason="tests/store/postgres/test_state_machines.py drives the machine there")
ConversationMachine.TestCase.settings = hypothesis_settings(
    max_examples=sampled(5, 20), stateful_step_count=20, deadline=None
)
TestConversation = ConversationMachine.TestCase
